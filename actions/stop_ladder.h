// How far a stop has come: cooperative first, then signals (routing-and-actions §6.2).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actions/local_process.h"
#include "core/command.h"
#include "core/issue.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::actions {

/// wire-and-api §9.7.
enum class StopState {
  requested,
  awaiting_approval,
  cooperative,
  checkpointing,
  platform_graceful,
  platform_force,
  stopped,
  failed,
  cancelled,
  rejected_stale,
  already_ended,
  expired,
  refused,
};
std::string_view to_string(StopState state) noexcept;
/// stopped and everything after it: nothing more will be done.
bool is_final(StopState state) noexcept;

/// One step of one command, for the log, telemetry and whoever shows it.
struct StopTransition {
  std::string command_id;
  core::RunUid run;
  std::uint32_t attempt = 1;
  StopState from = StopState::requested;
  StopState to = StopState::requested;
  std::string reason;
  core::WallTime at{};
};

/// A signal that has to be sent now to the process behind the fence.
struct StopSignal {
  std::string command_id;
  ProcessFence fence;
  int number = 0;  // SIGTERM or SIGKILL
};

/// What looking at the process behind a fence showed.
enum class Observed {
  ended,     // proof: the process is gone
  stale,     // the fence names another process, boot or host
  denied,    // the signal was not permitted
  signalled  // the signal was taken
};

/// Pure state machine over the stop commands of this node; lives on one strand. Times are
/// arguments, deadlines count from the command's issued_at, so that reading `commands` and `acks`
/// again after a restart leads to the same state, and no second stop (§5.4 K16): feed both up to
/// their ends before the first tick().
///
/// Deadlines and permissions come from the command's args: mode, deadline{ack, graceful, total},
/// grace (SIGTERM to SIGKILL), allow_force, fence{pid, pid_start, boot_id, host}. Without a fence
/// only the cooperative path exists.
class StopLadder {
 public:
  struct Step {
    std::vector<StopSignal> signals;
    std::vector<StopTransition> transitions;
  };

  /// Other actions than stop, dry runs and lower revisions of a known slot are passed over.
  Step on_command(const core::Command& command, core::WallTime now);
  Step on_ack(const core::Ack& ack, core::WallTime now);
  Step on_job(const core::JobEvent& event, core::WallTime now);
  /// The command was withdrawn (tombstone of its slot).
  Step on_withdrawn(const core::RunUid& run, core::WallTime now);
  Step on_observed(const std::string& command_id, Observed what, core::WallTime now);
  Step tick(core::WallTime now);

  [[nodiscard]] std::optional<core::WallTime> next_deadline() const;
  [[nodiscard]] std::optional<StopState> state(const std::string& command_id) const;
  /// Fences of commands that are not final, to be watched for the process's end.
  [[nodiscard]] std::vector<std::pair<std::string, ProcessFence>> watched() const;

 private:
  struct Stop;
  static void move(Stop& stop, StopState to, std::string reason, core::WallTime now, Step& step);
  static void signal(Stop& stop, StopState to, std::string reason, core::WallTime now, Step& step);
  static void advance(Stop& stop, core::WallTime now, Step& step);
  std::map<std::string, std::shared_ptr<Stop>> stops_;  // by command id
};

/// Port: processes of this machine. The real one is LocalProcess.
class ProcessControl {
 public:
  virtual ~ProcessControl() = default;
  /// Sends the signal (0: only looks) to the process behind the fence.
  virtual Observed send(const ProcessFence& fence, int signal) = 0;
};
/// pidfd-based; keeps one descriptor per fence until the process has ended.
std::unique_ptr<ProcessControl> local_process_control(std::string this_host);

/// The ladder and the processes it ends, joined: what a node agent feeds and ticks. Lives on one
/// strand. Commands for runs on other hosts are passed over.
class LocalStopAgent {
 public:
  LocalStopAgent(std::string host, std::unique_ptr<ProcessControl> processes, core::Log& log,
                 core::Telemetry& telemetry);

  std::vector<StopTransition> on_command(const core::Command& command, core::WallTime now);
  std::vector<StopTransition> on_ack(const core::Ack& ack, core::WallTime now);
  std::vector<StopTransition> on_job(const core::JobEvent& event, core::WallTime now);
  std::vector<StopTransition> on_withdrawn(const core::RunUid& run, core::WallTime now);
  /// Looks at the watched processes and at the deadlines: about every 100 ms while busy().
  std::vector<StopTransition> tick(core::WallTime now);
  /// True while some stop is not final.
  [[nodiscard]] bool busy() const;
  [[nodiscard]] std::optional<StopState> state(const std::string& command_id) const {
    return ladder_.state(command_id);
  }

 private:
  std::vector<StopTransition> carry_out(StopLadder::Step step, core::WallTime now);
  std::string host_;
  std::unique_ptr<ProcessControl> processes_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  StopLadder ladder_;
};

}  // namespace tocsin::actions
