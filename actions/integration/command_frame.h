// The frame of actions that write a command about the run of an issue: the clock, the run as it is
// now, and the write that gives a reservation back if it fails. Internal to actions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actions/contract/descriptor.h"
#include "actions/integration/issue_by_issue.h"
#include "core/clock.h"
#include "core/current_run.h"
#include "core/function_ref.h"

namespace tocsin::actions {

/// Tried again later, without an effect so far.
inline core::AttemptOutcome held(std::string code, std::string detail) {
  core::AttemptOutcome out;
  out.outcome = core::OutcomeClass::transient;
  out.held = true;
  out.code = std::move(code);
  out.detail = std::move(detail);
  return out;
}

/// What such an action takes from its Environment. Used from many threads.
class CommandFrame {
 public:
  explicit CommandFrame(const Environment& environment)
      : clock_(*environment.clock),
        send_(environment.send_command),
        current_run_(environment.current_run) {}

  [[nodiscard]] core::WallTime now() const { return clock_.now(); }
  /// nullopt: nobody knows the run.
  [[nodiscard]] std::optional<core::CurrentRun> current(const core::RunUid& run) const {
    return current_run_ ? current_run_(run) : std::nullopt;
  }
  /// Writes a command that a ledger has reserved: `requested` with `detail`. If it cannot be
  /// written, `release` gives the reservation back.
  [[nodiscard]] core::AttemptOutcome write(const core::Command& command, std::string detail,
                                           core::FunctionRef<void()> release) const {
    core::AttemptOutcome out;
    out.handles = {{"command_id", command.command_id}};
    if (const auto written = send_(command); !written) {
      release();
      return not_written(std::move(out), written.error());
    }
    out.code = "requested";
    out.detail = std::move(detail);
    return out;
  }

 private:
  core::Clock& clock_;
  std::function<core::Status(const core::Command&)> send_;
  std::function<std::optional<core::CurrentRun>(const core::RunUid&)> current_run_;
};

/// Errors: failed_precondition if the environment has no topic for commands.
template <class CommandAction, class Config>
core::Result<std::unique_ptr<core::Action>> make_command_action(const Config& config,
                                                                const Environment& environment,
                                                                const IntegrationName& name) {
  if (!environment.send_command) {
    return core::Error{core::Code::failed_precondition,
                       name.id + ": no commands topic to write to"};
  }
  return std::unique_ptr<core::Action>(std::make_unique<CommandAction>(config, environment, name));
}

}  // namespace tocsin::actions
