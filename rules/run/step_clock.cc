#include "rules/run/step_clock.h"

#include <algorithm>
#include <bit>

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

void StepClock::count(const Standing& standing, std::ptrdiff_t by) {
  const auto add = [&](std::size_t& number, bool counts) {
    if (counts) number = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(number) + by);
  };
  for (std::size_t m = 0; m < kModes; ++m) {
    add(active_[m], standing.counted && (standing.active & (1U << m)) != 0);
    add(with_data_[m], standing.present && standing.seen[m] != kNever);
  }
  add(takers_, standing.counted && standing.active != 0);
  add(present_, standing.present);
  add(gone_, standing.present && standing.gone);
}

void StepClock::update(std::size_t worker, const Standing& standing) {
  if (worker >= standings_.size()) standings_.resize(worker + 1);
  Standing& before = standings_[worker];
  if (before == standing) return;
  count(before, -1);
  count(standing, 1);
  before = standing;
  for (std::size_t m = 0; m < kModes; ++m) {
    const bool takes_part = standing.counted && (standing.active & (1U << m)) != 0;
    marks_[m].set(worker, takes_part ? standing.mark[m] : LeastOf::kNone);
    passes_[m].set(worker, takes_part ? std::int64_t{standing.pass} : LeastOf::kNone);
    newest_[m].set(worker, standing.present ? ~standing.seen[m] : ~kNever);
  }
}

}  // namespace tocsin::rules
