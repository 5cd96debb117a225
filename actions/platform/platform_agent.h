// The stop ladder of runs whose platform is not a process of a node: what the leader feeds and ticks
// (docs/stopping-on-platforms.md).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actions/platform/platform_caller.h"
#include "actions/stop/stop_ladder.h"
#include "core/command.h"
#include "core/issue.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::actions {

/// `action` of the records by which a platform's rungs are known: kept apart from what a run answers.
inline constexpr std::string_view kPlatformAck = "stop/platform";

/// The ladder and the platforms that it asks, joined. Lives on one strand; knows no clock.
///
/// Feed everything up to the ends of `commands`, `acks` and `registry` before the first tick(). A rung
/// is recorded (record_of) and durable before the platform is asked: after a kill -9 the record says
/// that the rung was reached, and the platform, read first, whether it was asked.
class PlatformAgent {
 public:
  PlatformAgent(std::vector<PlatformStop*> platforms, PlatformCaller& caller, core::Log& log,
                core::Telemetry& telemetry);

  using Steps = std::vector<StopTransition>;
  /// Runs of a node's own processes are passed over: their agent ends them.
  Steps on_command(const core::Command& command, core::WallTime now);
  /// An answer of a run, or a record of this agent from before.
  Steps on_ack(const core::Ack& ack, core::WallTime now);
  Steps on_job(const core::JobEvent& event, core::WallTime now);
  Steps on_withdrawn(const core::RunUid& run, core::WallTime now);
  /// What platforms have answered, and what is due.
  Steps tick(core::WallTime now);
  /// Asks platforms for what is recorded. Only once every transition so far is durable.
  void ask(core::WallTime now);

  /// What happened before `at` is no news: StopTransition::replayed, and not counted.
  void started(core::WallTime at) { started_ = at; }
  /// The record of a transition, on `acks`; nullopt: it is not one of a platform's rungs.
  [[nodiscard]] std::optional<core::Ack> record_of(const StopTransition& transition,
                                                   const std::string& node) const;

 private:
  struct Rung {
    PlatformRung rung = PlatformRung::graceful;
    bool asked = false;  // the platform has taken it
    bool in_flight = false;
    core::WallTime next{};  // when it is asked or looked at again
    core::Duration pause{};
    std::string trouble;  // of the last call that led to nothing
  };
  [[nodiscard]] PlatformStop* platform_of(const core::Value& fence) const;
  Steps carried(StopLadder::Step step, core::WallTime now);
  Steps answered(const PlatformCall& call, const PlatformAnswer& answer, core::WallTime now);
  void measure();

  std::vector<PlatformStop*> platforms_;
  PlatformCaller& caller_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  StopTiming timing_{telemetry_};
  core::WallTime started_{};
  StopLadder ladder_;
  std::map<std::string, Rung> rungs_;       // by command id, of those whose platform is asked
  std::map<std::string, core::Ack> early_;  // records of this agent, read before their command
};

}  // namespace tocsin::actions
