// What a session has counted, for stats() and the last words of a run.
#include <utility>

#include "collectors/hook/publish/session.h"
#include "core/mutex.h"

namespace tocsin::hook {

using core::ValueMap;

namespace {

/// What the governor takes, and from whom.
ValueMap governed(const CaptureControl& capture) {
  const Governor::Stretch& stretch = capture.governor().stretch();
  return {
      {"factor", stretch.costly}, {"small_factor", stretch.small}, {"thinned", capture.thinned()}};
}

}  // namespace

ValueMap Session::counters() const {
  const core::MutexLock lock(mutex_);
  const StepCounter::Steps& steps = steps_.steps();
  const Governor& governor = capture_.governor();
  core::ValueList left_out;
  for (std::string& name : statistics_.left_out()) left_out.emplace_back(std::move(name));
  core::ValueList warnings;
  for (const std::string& text : capture_.plan().config().warnings) warnings.emplace_back(text);
  core::ValueList phases;
  for (const std::string& name : capture_.plan().config().phases) phases.emplace_back(name);
  return {
      {"run", core::to_text(options_.identity.run)},
      {"job", options_.identity.job},
      {"attempt", std::int64_t{options_.identity.attempt}},
      {"rank", std::int64_t{options_.identity.rank}},
      {"world_size", std::int64_t{options_.identity.world_size}},
      {"worker", options_.identity.worker},
      {"workers", capture_.plan().workers()},
      {"dry_run", capture_.plan().config().dry_run},
      {"paused", capture_.paused()},
      {"capture_warnings", std::move(warnings)},
      {"ledger_on", capture_.plan().config().ledger},
      {"step_by", capture_.plan().config().step_by},
      {"phases", std::move(phases)},
      {"step_ended", steps_.ended()},
      {"mode", std::string(core::to_string(steps_.mode()))},
      {"step", steps_.step()},
      {"global_step", steps_.global_step()},
      {"steps",
       ValueMap{
           {"global", steps[0]}, {"train", steps[1]}, {"eval", steps[2]}, {"predict", steps[3]}}},
      {"sampled_steps_total", capture_.sampled_steps()},
      {"rows_total", frames_.rows()},
      {"scalars_total", frames_.scalars()},
      {"ledger_scalars_total", frames_.ledger_scalars()},
      {"scalars_since_step", frames_.scalars_since_step()},
      {"frames_total", frames_.frames()},
      {"errors_total", frames_.errors()},
      {"cut_names_total", cut_names_},
      {"hook_seconds_total", static_cast<double>(capture_.cost().count()) * 1e-9},
      {"overhead_share", governor.share()},
      {"effective_interval", capture_.plan().smallest_every() * governor.stretch().costly},
      {"governor", governed(capture_)},
      {"delta_bytes", statistics_.kept_bytes()},
      {"delta_left_out", std::move(left_out)},
      {"views_left_out_total", not_gathered_},
      {"launch", options_.identity.launch},
  };
}

}  // namespace tocsin::hook
