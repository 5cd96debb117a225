#include "rules/declared/chain.h"

#include <utility>

#include "rules/contract/selection.h"
#include "rules/declared/step_axis.h"

namespace tocsin::rules::declared {

std::int64_t Chain::far(const Links& links, const Moment& from, const Moment& to) {
  return links.within.steps ? StepAxis::steps(from.place, to.place) : distance(to.time, from.time);
}
bool Chain::near(const Links& links, const Moment& from, const Moment& to) {
  return far(links, from, to) <= links.within.amount;
}

void Chain::take(const Links& links, std::uint64_t hits, const Moment& at) {
  starts_.resize(links.count);
  const bool broken = (hits >> links.count) != 0;
  if (broken) {
    // What has begun here is not broken by what hit in the same step.
    for (Moment& start : starts_) start = {};
  }
  if (links.awaits()) {
    if ((hits & 1U) != 0 && !starts_[0].known()) starts_[0] = at;
    return;
  }
  for (std::size_t k = links.count; k-- > 0;) {
    if ((hits & (std::uint64_t{1} << k)) == 0) continue;
    const Moment start = k == 0 ? at : starts_[k - 1];
    const bool last = k + 1 == links.count;
    if (start.known() && near(links, start, at)) {
      starts_[k] = start;
      if (last) {
        first_ = start;
        last_ = held_at_ = at;
        held_ = again_ = true;
      }
    } else if (last && held_) {
      held_at_ = at;
      again_ = true;
    }
  }
}

bool Chain::settle(const Links& links, const Moment& at) {
  starts_.resize(links.count);
  if (links.awaits()) {
    const Moment& start = starts_[0];
    again_ = start.known() && far(links, start, at) >= links.within.amount;
    if (again_) {
      first_ = start;
      last_ = held_at_ = at;
    }
  }
  const bool holds = std::exchange(again_, false);
  quiet_ = holds ? 0 : quiet_ + 1;
  // Its last rule is silent for as long as the whole may take: that was that.
  if (held_ && !near(links, held_at_, at)) held_ = false;
  return holds;
}

bool Chain::idle(const Links& links, const Moment& at) const {
  constexpr std::uint32_t kQuiet = 65536;  // longer than any clear_after
  if (held_ || quiet_ < kQuiet) return false;
  for (const Moment& start : starts_) {
    if (start.known() && (links.awaits() || near(links, start, at))) return false;
  }
  return true;
}

}  // namespace tocsin::rules::declared
