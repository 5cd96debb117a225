// A stop command with its fence, and what a worker answers.
#pragma once

#include <string>
#include <vector>

#include "actions/stop/stop_ladder.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

inline const ProcessFence kFence{4711, 998877, "b", "h1"};

inline core::Command stop_command(bool allow_force = false) {
  core::Command out;
  out.command_id = "cmd_one";
  out.action = "stop";
  out.run = kRun;
  out.attempt = 1;
  out.issued_at = kStart;
  out.expires_at = kStart + 10min;
  out.args = core::ValueMap{
      {"mode", "checkpoint_then_stop"},
      {"deadline", core::ValueMap{{"ack", "30s"}, {"graceful", "2m"}, {"total", "3m"}}},
      {"grace", "20s"},
      {"allow_force", allow_force},
      {"fence", fence_value(kFence)}};
  return out;
}

inline core::Ack ack(const std::string& phase, const std::string& reason = "") {
  core::Ack out;
  out.command_id = "cmd_one";
  out.action = "stop";
  out.phase = phase;
  out.run = kRun;
  out.attempt = 1;
  out.step = 413;
  out.worker = "worker_0";
  out.reason = reason;
  return out;
}

inline std::vector<StopState> states(const std::vector<StopTransition>& transitions) {
  std::vector<StopState> out;
  for (const auto& one : transitions) out.push_back(one.to);
  return out;
}

}  // namespace tocsin::actions::testing_support
