#include "collectors/hook/publish/step_values.h"

namespace tocsin::hook {

bool StepValues::scalar(std::uint64_t name, double value, bool due) {
  // The ledger has a budget of its own, and no grid.
  const Name* found = due ? nullptr : names_.find(name);
  if (!due && (found == nullptr || found->role != core::Role::ledger)) return false;
  announcer_.ensure_started();
  if (found = frames_.use(name); found != nullptr) frames_.add_scalar(*found, value);
  return true;
}

void StepValues::span(std::uint64_t name, std::uint64_t track, std::int64_t start,
                      std::int64_t duration, std::uint64_t args) {
  announcer_.ensure_started();
  if (track == 0) {
    if (phase_track_ == 0) {
      NameInfo info;
      info.type = core::DictionaryType::track;
      phase_track_ = names_.put("phase", info, plan_);
    }
    track = phase_track_;
  }
  for (const std::uint64_t id : {name, track, args}) {
    if (id != 0) names_.use(id);
  }
  frames_.add_span(name, track, start, duration, args);
}

}  // namespace tocsin::hook
