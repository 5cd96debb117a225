#include "actions/steer/steering_frame.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "actions/contract/own_issues.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::Command;
using core::OutcomeClass;

bool final_word(const core::Ack& ack) {
  return ack.phase == "applied" || ack.phase == "ended" || ack.phase == "refused";
}

std::string steered_run_name(const core::RunRef& run) {
  return (run.job.empty() ? "" : run.job + ", ") + "run " + to_text(run.uid);
}

std::string ranks_of(std::uint32_t some, std::uint32_t all) {
  return std::to_string(some) + " of " + std::to_string(all) + (all == 1 ? " rank" : " ranks");
}

/// The reasons of those that refused, each once.
std::string refusals(const SteeringAnswers& answers) {
  std::vector<std::string> reasons;
  for (const auto& one : answers) {
    const core::Ack& ack = one.second;
    if (ack.phase != "refused") continue;
    if (std::find(reasons.begin(), reasons.end(), ack.reason) == reasons.end()) {
      reasons.push_back(ack.reason);
    }
  }
  std::string out;
  for (const std::string& reason : reasons) out += (out.empty() ? "" : ", ") + reason;
  return out;
}

struct Tally {
  std::uint32_t applied = 0;
  std::uint32_t refused = 0;
  std::uint32_t heard = 0;  // nothing but `received`
  std::optional<std::int64_t> step;
  std::string without;  // what the hook left out
};

Tally tally_of(const SteeringAnswers& answers) {
  Tally out;
  for (const auto& one : answers) {
    const core::Ack& ack = one.second;
    if (!final_word(ack)) {
      ++out.heard;
    } else if (ack.phase == "refused") {
      ++out.refused;
    } else {
      ++out.applied;
      if (!out.step && ack.phase == "applied") out.step = ack.effective_step.value_or(ack.step);
      if (ack.phase == "applied" && out.without.empty()) out.without = ack.reason;
    }
  }
  return out;
}

std::string tally_words(const Tally& tally, const SteeringAnswers& answers, std::uint32_t ranks) {
  std::string out = ranks_of(tally.applied, ranks) + " applied it";
  if (tally.step) out += " from step " + std::to_string(*tally.step);
  if (!tally.without.empty()) out += ", " + tally.without;
  if (tally.refused > 0) {
    out += "; " + std::to_string(tally.refused) + " refused: " + refusals(answers);
  }
  if (tally.heard > 0) {
    out +=
        "; " + std::to_string(tally.heard) + " received it, but the training loop has not taken it";
  }
  const std::uint32_t spoke = tally.applied + tally.refused + tally.heard;
  if (spoke < ranks) out += "; " + std::to_string(ranks - spoke) + " did not answer";
  return out;
}

}  // namespace

SteeringResult steering_result(const SteeringAnswers& answers, std::uint32_t ranks, bool over) {
  using State = SteeringResult::State;
  const Tally tally = tally_of(answers);
  SteeringResult out;
  out.ranks = std::max<std::uint32_t>({1, ranks, static_cast<std::uint32_t>(answers.size())});
  out.applied = tally.applied;
  out.step = tally.step;
  out.words = tally_words(tally, answers, out.ranks);
  // A rank that refused in these terms is perhaps asked in others.
  const bool may_change = std::any_of(answers.begin(), answers.end(), [](const auto& one) {
    return one.second.phase == "refused" &&
           (one.second.reason == "stale" || one.second.reason == "too_late");
  });
  const bool all = tally.applied + tally.refused >= out.ranks && !may_change;
  if (!all && !over) return out;
  if (tally.applied >= out.ranks) {
    out.state = State::applied;
  } else if (tally.applied > 0) {
    out.state = State::partly;
  } else {
    out.state = tally.refused > 0 ? State::refused : State::silent;
  }
  return out;
}

SteeringFrame::SteeringFrame(const Environment& environment, std::string slot,
                             SteeringLimits limits, core::Duration wait)
    : slot_(std::move(slot)),
      limits_(limits),
      wait_(wait),
      frame_(environment),
      ledger_(environment.steering != nullptr ? environment.steering : &own_) {}

std::vector<core::NotifiedIssue> SteeringFrame::targets(const core::Notification& notification) {
  std::vector<core::NotifiedIssue> out;
  for (const core::NotifiedIssue& one : notification.issues) {
    if (one.issue.status == core::IssueStatus::firing && !is_own_issue(one.issue.rule)) {
      out.push_back(one);
    }
  }
  return out;
}

std::string SteeringFrame::id_of(const core::NotifiedIssue& one) const {
  return core::command_id(one.issue.run.uid, one.issue.run.attempt, slot_,
                          one.issue_key + "/" + std::to_string(one.episode));
}

std::uint64_t SteeringFrame::asked(const core::NotifiedIssue& one) const {
  return ledger_->asked(one.issue.run.uid, slot_, one.issue.run.attempt);
}

Command SteeringFrame::begin(const core::NotifiedIssue& one,
                             const core::CurrentRun& current) const {
  Command out;
  out.command_id = id_of(one);
  out.action = slot_;
  out.run = one.issue.run.uid;
  out.attempt = one.issue.run.attempt;
  out.launch = current.launch;
  out.issued_at = frame_.now();
  out.revision = static_cast<std::uint64_t>(std::max<std::int64_t>(
      1, core::nanoseconds(std::min(one.issue.starts_at, out.issued_at)) / 1'000'000));
  out.expires_at = out.issued_at + wait_;
  out.requested_by = "router";
  out.reason = reason_of(one);
  return out;
}

AttemptOutcome SteeringFrame::carry_out(const core::Notification& notification,
                                        const Compose& compose, const Tell& tell) {
  const auto issues = targets(notification);
  if (issues.empty()) return declined("not_firing", "no issue of the message asks a run for it");
  AttemptOutcome out;
  bool done = false;
  for (const core::NotifiedIssue& issue : issues) {
    AttemptOutcome one = one_issue(notification, issue, compose, tell);
    // What cannot be written is no reason to ask no other run; what waits is said last.
    const bool worse =
        one.outcome != OutcomeClass::delivered && out.outcome == OutcomeClass::delivered;
    done = done || !one.declined;
    if (worse || out.code.empty() || (!one.declined && out.outcome == OutcomeClass::delivered)) {
      out.code = one.code;
    }
    if (worse) {
      out.outcome = one.outcome;
      out.held = one.held;
      out.retry_after = one.retry_after;
    }
    out.detail += (out.detail.empty() ? "" : "; ") + one.detail;
    std::move(one.handles.begin(), one.handles.end(), std::back_inserter(out.handles));
    std::move(one.issues.begin(), one.issues.end(), std::back_inserter(out.issues));
  }
  out.declined = !done;
  return out;
}

AttemptOutcome SteeringFrame::one_issue(const core::Notification& notification,
                                        const core::NotifiedIssue& one, const Compose& compose,
                                        const Tell& tell) {
  const std::string id = id_of(one);
  const std::string note = notification.notification_id + "/" + id;
  if (const std::string said = notes_.at(note); !said.empty()) {
    const std::size_t space = said.find(' ');
    return declined(said.substr(0, space), said.substr(space + 1));
  }
  AttemptOutcome out;
  if (const auto before = ledger_->find(one.issue.run.uid, slot_, id)) {
    out = follow(one, *before, tell);
  } else {
    out = ask(one, compose);
    if (out.code == "asked") out = follow(one, *ledger_->find(one.issue.run.uid, slot_, id), tell);
  }
  if (out.declined && out.outcome == OutcomeClass::delivered) {
    notes_.set(note, out.code + " " + out.detail);
  }
  return out;
}

AttemptOutcome SteeringFrame::ask(const core::NotifiedIssue& one, const Compose& compose) {
  const core::RunRef& run = one.issue.run;
  const std::string name = steered_run_name(run);
  if (ledger_->known(run.uid, slot_, id_of(one))) {
    return declined("already_requested", name + " was asked before by " + id_of(one));
  }
  const auto current = frame_.current(run.uid);
  if (!current || current->ended) return declined("ended", name + " has ended");
  if (current->attempt != run.attempt) {
    return declined("stale", name + " now runs as attempt " + std::to_string(current->attempt));
  }
  Composed composed = compose(one, *current);
  if (auto* why = std::get_if<AttemptOutcome>(&composed)) return std::move(*why);
  auto& command = std::get<Command>(composed);
  const auto answer = ledger_->reserve(command, limits_);
  if (answer != SteeringLedger::Answer::ask) return not_asked(answer, name);
  AttemptOutcome out = frame_.write(command, "", [&] { ledger_->release(command); });
  if (out.outcome == OutcomeClass::delivered) out.code = "asked";
  return out;
}

AttemptOutcome SteeringFrame::not_asked(SteeringLedger::Answer answer,
                                        const std::string& name) const {
  switch (answer) {
    case SteeringLedger::Answer::too_soon:
      return declined("too_soon",
                      name + " was asked less than " + core::to_text(limits_.every) + " ago");
    case SteeringLedger::Answer::too_many:
      return declined("too_many", name + " was asked " + std::to_string(limits_.most) + " times");
    default:
      return declined("already_requested", name + " was asked before");
  }
}

AttemptOutcome SteeringFrame::follow(const core::NotifiedIssue& one, const Command& command,
                                     const Tell& tell) const {
  using State = SteeringResult::State;
  const auto current = frame_.current(command.run);
  const bool gone = !current || current->ended || current->attempt != command.attempt;
  const bool over = gone || frame_.now() - command.issued_at >= wait_;
  const SteeringResult result = steering_result(ledger_->answers(command.command_id),
                                                current ? current->world_size : 1, over);
  AttemptOutcome out;
  out.handles = {{"command_id", command.command_id}};
  out.detail = steered_run_name(one.issue.run) + ": " + result.words + " (" + command.command_id +
               ")" + (gone ? "; the run has ended" : "");
  switch (result.state) {
    case State::waiting:
      out.outcome = OutcomeClass::unknown;
      out.held = true;
      out.retry_after = std::chrono::seconds(1);
      out.code = "asked";
      return out;
    case State::applied:
      out.code = "applied";
      break;
    case State::partly:
      out.code = "partly_applied";
      break;
    case State::refused:
      out.code = "refused";
      out.declined = true;
      break;
    case State::silent:
      out.code = "no_answer";
      out.declined = true;
      break;
  }
  if (tell) tell(one, command, result, out);
  return out;
}

}  // namespace tocsin::actions
