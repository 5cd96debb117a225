// Lifecycles to write and read back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/lifecycle.h"

namespace tocsin::ingest::fixture {

/// One of each event, with everything that it can say.
inline std::vector<std::pair<std::string, core::Lifecycle>> lifecycles() {
  using core::Lifecycle;
  using core::LifecycleEvent;
  Lifecycle start;
  start.event = LifecycleEvent::start;
  start.job = "digits";
  start.labels = {{"team", "nlp"}, {"größe", "ü"}};
  start.framework = "pytorch 2.3";
  start.version = "0.1.0";
  start.pid = 4711;
  start.pid_start = 99;
  start.boot_id = "0011aabb-0000-4000-8000-000000000000";
  start.opened = 7;
  start.host = "h";
  start.node = "n";
  start.launcher = "torchrun";
  start.launch = "torchrun/abc/0";
  start.worker_name = "worker_3";
  start.platform = "slurm";
  start.platform_ref = core::ValueMap{{"cluster", "c"}, {"job", 12}};
  start.continues_from = 400;
  start.capture = core::Value(
      core::ValueMap{{"every", "10 steps"}, {"scalars", core::ValueList{1, 2.5, true}}});
  Lifecycle heartbeat;
  heartbeat.launch = "torchrun/abc/0";
  heartbeat.step = 12;
  Lifecycle preflight;
  preflight.event = LifecycleEvent::preflight;
  preflight.findings = core::ValueList{core::ValueMap{{"kind", "no_optimizer"}, {"count", 1}}};
  Lifecycle died;
  died.event = LifecycleEvent::died;
  died.died_worker = "worker_1";
  died.died_incarnation = 1767323045678;
  died.pid = 4712;
  died.signal = 9;
  Lifecycle applied;
  applied.event = LifecycleEvent::applied;
  applied.command_id = "cmd_x";
  applied.version = "v2";
  applied.effective_step = 30;
  applied.left_out = core::ValueList{"delta of embedding.weight"};
  Lifecycle gap;
  gap.event = LifecycleEvent::gap;
  gap.lane = "bulk";
  gap.reason = "queue full";
  gap.frames = 3;
  gap.rows = 300;
  gap.first_step = 5;
  gap.last_step = 9;
  Lifecycle leave;
  leave.event = LifecycleEvent::leave;
  leave.reason = "scaled down";
  Lifecycle end;
  end.event = LifecycleEvent::end;
  end.outcome = "failed";
  end.exit_code = -11;
  end.error = "segmentation fault";
  end.step = 77;
  Lifecycle least;
  least.event = LifecycleEvent::start;
  return {{"start", start},         {"heartbeat", heartbeat},
          {"preflight", preflight}, {"died", died},
          {"applied", applied},     {"gap", gap},
          {"leave", leave},         {"end", end},
          {"start_least", least}};
}

}  // namespace tocsin::ingest::fixture
