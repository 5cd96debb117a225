// The frame of actions that ask a running job for something short of a stop, and follow what its
// ranks answer. Internal to actions.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/integration/attempt_notes.h"
#include "actions/integration/command_frame.h"
#include "actions/steer/steering_ledger.h"

namespace tocsin::actions {

/// What the ranks made of a command.
struct SteeringResult {
  enum class State : std::uint8_t { waiting, applied, partly, refused, silent };
  State state = State::waiting;
  std::uint32_t ranks = 1;
  std::uint32_t applied = 0;
  std::optional<std::int64_t> step;  // from which on it holds, of the first rank that said so
  std::string words;                 // "2 of 2 ranks applied it from step 431"
};

/// `over`: nobody waits for further answers.
SteeringResult steering_result(const SteeringAnswers& answers, std::uint32_t ranks, bool over);

class SteeringFrame {
 public:
  /// The command for one issue, or why there is none.
  using Composed = std::variant<core::Command, core::AttemptOutcome>;
  using Compose =
      std::function<Composed(const core::NotifiedIssue& one, const core::CurrentRun& current)>;
  /// Adds to the outcome what people are told of it.
  using Tell = std::function<void(const core::NotifiedIssue& one, const core::Command& command,
                                  const SteeringResult& result, core::AttemptOutcome& outcome)>;

  /// `slot`: where it asks. `wait`: how long answers are waited for.
  SteeringFrame(const Environment& environment, std::string slot, SteeringLimits limits,
                core::Duration wait);

  /// Firing issues of runs that may be asked; those that Tocsin itself made of a delivery or a stop ask
  /// for nothing.
  [[nodiscard]] static std::vector<core::NotifiedIssue> targets(
      const core::Notification& notification);
  [[nodiscard]] std::string id_of(const core::NotifiedIssue& one) const;
  /// A command without its args: id, run, launch, times, reason.
  [[nodiscard]] core::Command begin(const core::NotifiedIssue& one,
                                    const core::CurrentRun& current) const;
  [[nodiscard]] std::uint64_t asked(const core::NotifiedIssue& one) const;
  [[nodiscard]] core::WallTime now() const { return frame_.now(); }

  /// Asks for each issue once. `unknown` and held while answers are to come: the next attempt looks
  /// again. `what`: "to capture gradients"; the words of the detail.
  core::AttemptOutcome carry_out(const core::Notification& notification, const Compose& compose,
                                 const Tell& tell = {});

 private:
  core::AttemptOutcome one_issue(const core::Notification& notification,
                                 const core::NotifiedIssue& one, const Compose& compose,
                                 const Tell& tell);
  core::AttemptOutcome ask(const core::NotifiedIssue& one, const Compose& compose);
  core::AttemptOutcome follow(const core::NotifiedIssue& one, const core::Command& command,
                              const Tell& tell) const;
  [[nodiscard]] core::AttemptOutcome not_asked(SteeringLedger::Answer answer,
                                               const std::string& name) const;

  std::string slot_;
  SteeringLimits limits_;
  core::Duration wait_;
  CommandFrame frame_;
  AttemptNotes notes_;  // what was declined: a later attempt says the same
  SteeringLedger own_;  // where nobody keeps one
  SteeringLedger* ledger_;
};

}  // namespace tocsin::actions
