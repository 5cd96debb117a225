#include "app/api/tick_pace.h"

#include <algorithm>
#include <utility>

namespace tocsin::app {

void TickPace::moved(const core::RunUid& run, bool values) {
  moved_.insert(run);
  values_ = values_ || values;
}

std::optional<core::Duration> TickPace::due_in(core::Duration now) const {
  if (moved_.empty()) return std::nullopt;
  const std::optional<core::Duration>& before = values_ ? told_values_ : told_;
  if (!before) return core::Duration{0};
  const core::Duration due = *before + (values_ ? kValuesEvery : kSamplesEvery);
  return std::max(due - now, core::Duration{0});
}

std::set<core::RunUid> TickPace::take(core::Duration now) {
  if (due_in(now) != core::Duration{0}) return {};
  told_ = now;
  if (std::exchange(values_, false)) told_values_ = now;
  return std::exchange(moved_, {});
}

}  // namespace tocsin::app
