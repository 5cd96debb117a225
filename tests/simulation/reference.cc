#include "tests/simulation/reference.h"

#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {

Reference reference_of(World& world) {
  app::EvaluateOptions options;
  options.rules = world.rules();
  options.engine = world.scenario().engine;
  options.engine.snapshot_interval = std::chrono::hours(1000);
  core::NullLog log;
  core::NullTelemetry telemetry;
  app::EvaluateStage stage(std::move(options), log, telemetry);
  Reference out;
  app::Instant now;
  if (!stage.open(now)) return out;
  for (std::int32_t p = 0; p < world.scenario().partitions; ++p) {
    const core::Position never{{"telemetry", p}, -1};
    if (!stage.restored(p, {&never, 1}, now)) return out;
    stage.started(p, now);
  }
  const auto keep = [&] {
    for (const auto& one : stage.take(now).records) {
      if (one.record.topic != "issues") continue;
      const auto decoded = ingest::decode_event(view_of({one.record, 0, 0}));
      if (!decoded) continue;
      if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
        out.issues.emplace(issue->event_id, *issue);
      } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
        out.attempts[job->run.uid].insert(job->run.attempt);
      }
    }
  };
  for (const auto& stored : world.telemetry()) {
    now.wall = core::wall_time(stored.record.timestamp);
    (void)stage.handle(view_of(stored), {now, false});
    keep();
  }
  keep();
  return out;
}

}  // namespace tocsin::simulation
