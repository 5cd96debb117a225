#include "core/issue.h"

namespace tocsin::core {

std::string_view to_string(IssueStatus status) noexcept {
  return status == IssueStatus::firing ? "firing" : "resolved";
}

std::string_view to_string(Resolution resolution) noexcept {
  switch (resolution) {
    case Resolution::none:
      return "";
    case Resolution::recovered:
      return "recovered";
    case Resolution::job_ended:
      return "job_ended";
    case Resolution::superseded:
      return "superseded";
    case Resolution::expired:
      return "expired";
    case Resolution::manual:
      return "manual";
    case Resolution::rule_removed:
      return "rule_removed";
    case Resolution::rule_changed:
      return "rule_changed";
  }
  return "";
}

std::string_view to_string(JobPhase phase) noexcept {
  switch (phase) {
    case JobPhase::started:
      return "started";
    case JobPhase::heartbeat:
      return "heartbeat";
    case JobPhase::ended:
      return "ended";
  }
  return "";
}

std::string_view to_string(RuleState state) noexcept {
  switch (state) {
    case RuleState::no_data:
      return "NoData";
    case RuleState::in_progress:
      return "InProgress";
    case RuleState::issues_found:
      return "IssuesFound";
    case RuleState::no_issues_found:
      return "NoIssuesFound";
    case RuleState::error:
      return "Error";
    case RuleState::stopped:
      return "Stopped";
  }
  return "";
}

}  // namespace tocsin::core
