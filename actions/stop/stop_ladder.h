// How far a stop has come: cooperative first, then signals (docs/actions/stop_training.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/stop/local_process.h"
#include "actions/stop/stop_timing.h"
#include "core/command.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::actions {

/// docs/events.md.
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
  core::WallTime at{};  // when it happened, which may be long before it was read
  std::string job;      // of the run, as far as is known
  core::Labels labels;
  std::string rule;       // that asked for the stop
  bool replayed = false;  // happened before this agent was started: not news
};

/// A signal that has to be sent now to the process behind the fence.
struct StopSignal {
  std::string command_id;
  ProcessFence fence;
  int number = 0;  // SIGTERM or SIGKILL; of a platform: its stop, or its harder one
};

/// What looking at the process behind a fence showed.
enum class Observed {
  ended,     // proof: the process is gone
  stale,     // the fence names another process, boot or host
  denied,    // the signal was not permitted
  signalled  // the signal was taken
};

/// Whose stops a ladder carries, and how it speaks of them.
struct StopReach {
  /// Can what the command's fence names be ended from here? Empty: a process of this machine can.
  std::function<bool(const core::Command&)> reaches;
  std::string what = "process";    // "the … has ended"
  std::string gentle = "SIGTERM";  // "still running after …"
  std::string hard = "SIGKILL";    // "still there after …"
  std::string nothing = "there is no process to signal";
  bool pauses = false;             // mode `pause` may be carried out as well
  bool grace_after_force = false;  // what was ended hard has the grace to go, else ten seconds
};

struct StopCase;

/// Pure state machine over the stop commands of this node; lives on one strand. Times are
/// arguments, deadlines count from the command's issued_at, so that reading `commands`, `acks` and
/// `registry` again after a restart leads to the same state, in whatever order the three are read,
/// and to no second stop: feed all up to their ends before the first tick().
///
/// A stop is meant for one attempt. As soon as a newer one of its run is known, by a job event or
/// by a command to it, or a hook has refused the command as stale, it ends and nothing is
/// signalled, also where the newer attempt runs in the same process. Acks are told apart by command
/// id alone: the attempt that a rank states is the one of its own header, which the engine may have
/// joined to another (docs/launches.md).
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

  explicit StopLadder(StopReach reach = {})
      : reach_(std::make_shared<const StopReach>(std::move(reach))) {}

  /// Other actions than stop and dry runs are passed over, and what is not newer than what is
  /// known of its attempt.
  Step on_command(const core::Command& command, core::WallTime now);
  /// A command to the same run on another node: what it says about older attempts here.
  Step on_foreign(const core::Command& command, core::WallTime now);
  Step on_ack(const core::Ack& ack, core::WallTime now);
  Step on_job(const core::JobEvent& event, core::WallTime now);
  /// The command was withdrawn (tombstone of its slot).
  Step on_withdrawn(const core::RunUid& run, core::WallTime now);
  /// `detail`: what was seen, in words; empty: the ladder's own.
  Step on_observed(const std::string& command_id, Observed what, core::WallTime now,
                   const std::string& detail = {});
  /// A step that this ladder took before a restart, as it was recorded then: it is not taken again.
  void on_recorded(const std::string& command_id, StopState state, core::WallTime at);
  Step tick(core::WallTime now);

  /// Where every stop stands that is still known, by command id.
  [[nodiscard]] std::map<std::string, StopState> states() const;
  /// Fences of commands that are not final, to be watched for the process's end.
  [[nodiscard]] std::vector<std::pair<std::string, ProcessFence>> watched() const;
  /// The newest revision of a stop that is known; null: none is.
  [[nodiscard]] const core::Command* command(const std::string& command_id) const;

 private:
  bool is_known(const core::Command& command);
  struct Run {
    std::uint32_t attempt = 0;  // the newest that is known
    std::optional<core::WallTime> ended_at;
    std::string outcome;
    std::string job;
    core::Labels labels;
  };
  using Case = std::shared_ptr<StopCase>;
  /// Ends what was meant for older attempts of the run.
  void replaced(const core::RunUid& run, std::uint32_t attempt, core::WallTime at, Step& step);
  void apply(StopCase& stop, const core::Ack& ack, core::WallTime now, Step& step);
  void ended(StopCase& stop, const Run& run, core::WallTime now, Step& step) const;
  void make_room();

  std::shared_ptr<const StopReach> reach_;  // its cases know it too
  std::map<std::string, Case> stops_;       // by command id
  std::map<core::RunUid, Run> runs_;        // newest attempts
  std::deque<core::RunUid> runs_by_age_;    // for forgetting
  std::deque<core::Ack> early_;             // acks read before their command
};

/// What people are told of it: the issue of a stop that failed, was refused, has expired or was
/// meant for an attempt that is replaced; nullopt for every other transition.
std::optional<core::Issue> stop_failed_issue(const StopTransition& transition,
                                             const std::string& cluster);
/// The same of all that is younger than a day, replayed or not: what came to its end while nobody
/// was here is told too, and what was told before has the same event id, which the router drops.
std::vector<core::Issue> stop_failed_issues(const std::vector<StopTransition>& transitions,
                                            const std::string& cluster, core::WallTime now);

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
///
/// Feed everything up to the ends of `commands`, `acks` and `registry` before the first tick():
/// until then no process is looked at and nothing signalled.
class LocalStopAgent {
 public:
  LocalStopAgent(std::string host, std::unique_ptr<ProcessControl> processes, core::Log& log,
                 core::Telemetry& telemetry);

  /// Told of every step of a stop, before the signal that belongs to it is sent.
  using Listener = std::function<void(const StopTransition& transition)>;
  void tell(Listener listener) { listener_ = std::move(listener); }
  /// Of which fences somebody else ends what they name. Empty: of none.
  void leave(std::function<bool(const core::Value& fence)> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }
  /// What happened before `at` is no news: StopTransition::replayed, and not counted.
  void started(core::WallTime at) { started_ = at; }

  std::vector<StopTransition> on_command(const core::Command& command, core::WallTime now);
  std::vector<StopTransition> on_ack(const core::Ack& ack, core::WallTime now);
  std::vector<StopTransition> on_job(const core::JobEvent& event, core::WallTime now);
  std::vector<StopTransition> on_withdrawn(const core::RunUid& run, core::WallTime now);
  /// Looks at the watched processes and at the deadlines: about every 100 ms.
  std::vector<StopTransition> tick(core::WallTime now);

 private:
  std::vector<StopTransition> carry_out(StopLadder::Step step, core::WallTime now);
  /// Shows how many stops are under way, and where they stand.
  void measure();
  std::string host_;
  std::unique_ptr<ProcessControl> processes_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  StopTiming timing_{telemetry_};
  Listener listener_;
  std::function<bool(const core::Value& fence)> elsewhere_;
  core::WallTime started_{};
  bool ticking_ = false;
  StopLadder ladder_;
};

}  // namespace tocsin::actions
