#include "rules/engine/memory/step_clock.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tocsin::rules {

void LeastOf::grow(std::size_t wanted) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(wanted, 4));
  std::vector<std::int64_t> nodes(2 * size, kNone);
  for (std::size_t i = 0; i < size_; ++i) nodes[size + i] = nodes_[size_ + i];
  for (std::size_t at = size - 1; at >= 1; --at) {
    nodes[at] = std::min(nodes[2 * at], nodes[2 * at + 1]);
  }
  nodes_ = std::move(nodes);
  size_ = size;
}

void StepClock::count(const Presence& presence, std::ptrdiff_t by) {
  const auto add = [&](std::size_t& number, bool counts) {
    if (counts) number = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(number) + by);
  };
  for (std::size_t m = 0; m < kModes; ++m) {
    add(active_[m], presence.counted && (presence.active & (1U << m)) != 0);
    add(with_data_[m], presence.present && presence.seen[m] != kNever);
  }
  add(takers_, presence.counted && presence.active != 0);
  add(present_, presence.present);
  add(gone_, presence.present && presence.gone);
}

void StepClock::update(std::size_t worker, const Presence& presence) {
  if (worker >= standings_.size()) standings_.resize(worker + 1);
  if (standings_[worker] == presence) return;
  const Presence before = std::exchange(standings_[worker], presence);
  // From frame to frame little of it changes: a mark, or the newest step of one mode.
  bool counts = before.present != presence.present || before.gone != presence.gone ||
                before.counted != presence.counted || before.active != presence.active;
  for (std::size_t m = 0; m < kModes; ++m) {
    const auto takes_part = [m](const Presence& one) {
      return one.counted && (one.active & (1U << m)) != 0;
    };
    const bool takes = takes_part(presence);
    const bool other = takes != takes_part(before);
    if (other || before.mark[m] != presence.mark[m]) {
      marks_[m].set(worker, takes ? presence.mark[m] : LeastOf::kNone);
    }
    if (other || before.pass != presence.pass) {
      passes_[m].set(worker, takes ? std::int64_t{presence.pass} : LeastOf::kNone);
    }
    if (before.present != presence.present || before.seen[m] != presence.seen[m]) {
      newest_[m].set(worker, presence.present ? ~presence.seen[m] : ~kNever);
      counts = counts || before.seen[m] == kNever || presence.seen[m] == kNever;
    }
  }
  if (!counts) return;
  count(before, -1);
  count(presence, 1);
}

}  // namespace tocsin::rules
