#include "actions/stop/stop_guard.h"

#include <utility>

#include "actions/contract/label_is.h"

namespace tocsin::actions {
namespace {

Refusal guard(std::string text) {
  return {Refusal::Then::told, StopFailure::refused, "refused", std::move(text)};
}

// The fence. Of a run that nobody has heard of nothing newer is known either (the ledger is asked
// too): its command carries no launch, and a hook that has one refuses it.
std::optional<Refusal> fenced(std::uint32_t attempt,
                              const std::optional<core::CurrentRun>& current) {
  if (!current) return std::nullopt;
  if (current->attempt > attempt) return stale(current->attempt, "is running");
  if (current->attempt < attempt) {
    return Refusal{Refusal::Then::not_yet, StopFailure::stale, "launch_unknown",
                   "attempt " + std::to_string(attempt) + " is not in the registry yet"};
  }
  if (current->ended) {
    return Refusal{Refusal::Then::silent, StopFailure::stale, "already_ended",
                   "it has ended already"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> refusal(const core::Issue& issue, const StopGuards& guards,
                               const std::optional<core::CurrentRun>& current) {
  if (issue.run.uid.nil() || issue.run.attempt == 0) {
    return guard("the issue names no run and attempt");
  }
  if (issue.shadow) {
    Refusal out = guard("the rule is in shadow");
    out.then = Refusal::Then::silent;
    return out;
  }
  if (issue.labels.get("protected") == "true") return guard("it is protected");
  for (const std::string& text : guards.deny) {
    if (meets(issue, text)) return guard("deny: " + text);
  }
  for (const std::string& text : guards.allow) {
    if (!meets(issue, text)) return guard("allow: " + text + " is not met");
  }
  if (issue.step.value_or(0) < guards.min_step) {
    return guard("step " + std::to_string(issue.step.value_or(0)) + " is below min_step " +
                 std::to_string(guards.min_step));
  }
  if (issue.evidence.occurrences < guards.min_consecutive) {
    return guard("seen " + std::to_string(issue.evidence.occurrences) +
                 " times, min_consecutive is " + std::to_string(guards.min_consecutive));
  }
  return fenced(issue.run.attempt, current);
}

Refusal stale(std::uint32_t newest, const std::string& what) {
  return {Refusal::Then::told, StopFailure::stale, "stale",
          "stale, attempt " + std::to_string(newest) + " " + what};
}

}  // namespace tocsin::actions
