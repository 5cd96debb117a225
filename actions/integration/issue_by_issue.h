// What actions share that do something about the run of each issue of a message. Internal to actions.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "actions/message/episode_words.h"
#include "core/action.h"
#include "core/command.h"
#include "core/notification.h"

namespace tocsin::actions {

inline core::AttemptOutcome declined(std::string code, std::string detail) {
  core::AttemptOutcome out;
  out.declined = true;
  out.code = std::move(code);
  out.detail = std::move(detail);
  return out;
}

/// One issue after the other. The first whose outcome is not `delivered` is the answer; else the
/// attempt is declined where each of them was.
inline core::AttemptOutcome issue_by_issue(
    const std::vector<core::NotifiedIssue>& issues,
    const std::function<core::AttemptOutcome(const core::NotifiedIssue&)>& act) {
  if (issues.empty()) return declined("not_firing", "no issue of the message is firing");
  core::AttemptOutcome out;
  bool done = false;
  for (const core::NotifiedIssue& notified : issues) {
    core::AttemptOutcome one = act(notified);
    if (one.outcome != core::OutcomeClass::delivered) return one;
    done = done || !one.declined;
    if (out.code.empty() || !one.declined) out.code = one.code;
    out.detail += (out.detail.empty() ? "" : "; ") + one.detail;
    out.handles.insert(out.handles.end(), one.handles.begin(), one.handles.end());
    std::move(one.issues.begin(), one.issues.end(), std::back_inserter(out.issues));
  }
  out.declined = !done;
  return out;
}

/// Why a command is written.
inline core::CommandReason reason_of(const core::NotifiedIssue& notified) {
  const core::Issue& issue = notified.issue;
  return {issue.rule, notified.issue_key, notified.episode, issue.event_id,
          issue.summary.empty() ? evidence_sentence(issue) : issue.summary};
}

/// It could not be written.
inline core::AttemptOutcome not_written(core::AttemptOutcome out, const core::Error& error) {
  out.outcome =
      error.retryable() ? core::OutcomeClass::transient : core::OutcomeClass::configuration;
  out.code = to_string(error.code);
  out.detail = error.message;
  return out;
}

}  // namespace tocsin::actions
