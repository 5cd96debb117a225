#include "routing/tables/repeats.h"

#include <algorithm>
#include <utility>

namespace tocsin::routing {

IssueState* Repeats::find(const Outline& outline) const {
  if (size_ == 0) return nullptr;
  for (std::size_t at = place_of(outline[0]); slots_[at].state != nullptr; at = next(at)) {
    if (slots_[at].outline == outline) return slots_[at].state;
  }
  return nullptr;
}

void Repeats::remember(IssueState& state, const Outline& outline) {
  forget(state);
  // An outline holds the labels: the same one of another issue is none that can be trusted.
  if (find(outline) != nullptr) return;
  if (4 * (size_ + 1) > 3 * slots_.size()) grow();
  put({outline, &state});
  state.outline = outline[0];
  state.outlined = true;
  ++size_;
}

void Repeats::forget(IssueState& state) {
  if (!std::exchange(state.outlined, false)) return;
  std::size_t at = place_of(state.outline);
  while (slots_[at].state != &state) at = next(at);
  --size_;
  close_gap(at);
}

void Repeats::put(const Slot& one) {
  std::size_t at = place_of(one.outline[0]);
  while (slots_[at].state != nullptr) at = next(at);
  slots_[at] = one;
}

/// What stands behind moves up, so that a search never ends at a gap that was made.
void Repeats::close_gap(std::size_t gap) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = next(gap); slots_[at].state != nullptr; at = next(at)) {
    const std::size_t wanted = place_of(slots_[at].outline[0]);
    if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap] = {};
}

void Repeats::grow() {
  std::vector<Slot> before(std::max<std::size_t>(2 * slots_.size(), 64));
  before.swap(slots_);
  for (const Slot& one : before) {
    if (one.state != nullptr) put(one);
  }
}

}  // namespace tocsin::routing
