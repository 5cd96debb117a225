#include "collectors/hook/publish/session_counters.h"

#include <string>
#include <utility>

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

ValueMap session_counters(const Identity& identity, const StepCounter& counter,
                          const CaptureControl& capture, const NameTable& names,
                          const FrameBatcher& frames, const TensorRows& rows) {
  const StepCounter::Steps& steps = counter.steps();
  const Governor& governor = capture.governor();
  core::ValueList left_out;
  for (std::string& name : rows.left_out()) left_out.emplace_back(std::move(name));
  core::ValueList warnings;
  for (const std::string& text : capture.plan().config().warnings) warnings.emplace_back(text);
  core::ValueList phases;
  for (const std::string& name : capture.plan().config().phases) phases.emplace_back(name);
  return {
      {"run", core::to_text(identity.run)},
      {"job", identity.job},
      {"attempt", std::int64_t{identity.attempt}},
      {"rank", std::int64_t{identity.rank}},
      {"world_size", std::int64_t{identity.world_size}},
      {"worker", identity.worker},
      {"workers", capture.plan().workers()},
      {"dry_run", capture.plan().config().dry_run},
      {"paused", capture.paused()},
      {"capture_warnings", std::move(warnings)},
      {"ledger_on", capture.plan().config().ledger},
      {"step_by", capture.plan().config().step_by},
      {"phases", std::move(phases)},
      {"step_ended", counter.ended()},
      {"mode", std::string(core::to_string(counter.mode()))},
      {"step", counter.step()},
      {"global_step", counter.global_step()},
      {"steps",
       ValueMap{
           {"global", steps[0]}, {"train", steps[1]}, {"eval", steps[2]}, {"predict", steps[3]}}},
      {"sampled_steps_total", capture.sampled_steps()},
      {"rows_total", frames.rows()},
      {"scalars_total", frames.scalars()},
      {"ledger_scalars_total", frames.ledger_scalars()},
      {"scalars_since_step", frames.scalars_since_step()},
      {"frames_total", frames.frames()},
      {"errors_total", frames.errors()},
      {"cut_names_total", names.cut()},
      {"hook_seconds_total", static_cast<double>(capture.cost().count()) * 1e-9},
      {"overhead_share", governor.share()},
      {"effective_interval", capture.plan().smallest_every() * governor.stretch().costly},
      {"governor", governed(capture)},
      {"delta_bytes", rows.kept_bytes()},
      {"delta_left_out", std::move(left_out)},
      {"views_left_out_total", rows.not_gathered()},
      {"launch", identity.launch},
  };
}

}  // namespace tocsin::hook
