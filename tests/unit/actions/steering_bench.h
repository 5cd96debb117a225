// What tests of actions that steer a running job share: a run that goes on, and ranks that answer.
#pragma once

#include <string>
#include <utility>

#include "core/json.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

struct SteeringBench : Workbench {
  SteeringBench() {
    current.attempt = 1;
    current.world_size = 2;
    current.step = 400;
    current.step_seconds = 0.5;
    current.step_at = kStart - 2s;
    current.launch = {{"h1", "b/1"}};
    environment.current_run = [this](const core::RunUid&) { return current; };
    environment.steering = &ledger;
  }
  /// The ledger as the topics `commands` and `acks` give it back, in the order of a restart.
  void restart() {
    restarted.emplace_back(std::make_unique<SteeringLedger>());
    for (const core::Ack& ack : acks) restarted.back()->on_ack(ack);
    if (!commands.empty()) restarted.back()->on_command(commands.back());
    environment.steering = restarted.back().get();
  }
  void answer(std::uint32_t rank, const std::string& phase, const std::string& reason = "",
              std::int64_t step = 431) {
    core::Ack ack;
    ack.command_id = commands.back().command_id;
    ack.revision = commands.back().revision;
    ack.action = commands.back().action;
    ack.run = kRun;
    ack.attempt = 1;
    ack.rank = rank;
    ack.phase = phase;
    ack.reason = reason;
    ack.step = step;
    acks.push_back(ack);
    environment.steering->on_ack(ack);
  }
  std::vector<core::Command> due() {
    return environment.steering->due([this](const core::RunUid&) { return current; }, clock.now());
  }

  core::CurrentRun current;
  SteeringLedger ledger;
  std::vector<core::Ack> acks;
  std::vector<std::unique_ptr<SteeringLedger>> restarted;
};

inline core::Notification steering_episode(std::uint64_t episode) {
  auto out = sample_notification("ntf_" + std::to_string(episode));
  out.issues[0].episode = episode;
  return out;
}

}  // namespace tocsin::actions::testing_support
