#include "app/view/replay_plan.h"

#include <algorithm>
#include <utility>

#include "core/delivery_type.h"
#include "core/fields/outbox.h"
#include "core/replay.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr core::Duration kShortestLife = 1h;

/// The issue as it stands now; null: no topic has it, so that nothing is known.
const TopicView::SeenIssue* seen_of(const TopicView& view, const core::NotifiedIssue& told) {
  const auto found = view.issues().find(told.issue_key);
  return found == view.issues().end() ? nullptr : &found->second;
}

bool same_episode(const TopicView::SeenIssue& seen, const core::NotifiedIssue& told) {
  return told.issue.starts_at == core::WallTime{} || seen.since <= told.issue.starts_at ||
         seen.newest.starts_at == told.issue.starts_at;
}

// Of the episode that was told.
bool fires_still(const TopicView& view, const core::NotifiedIssue& told) {
  const auto* seen = seen_of(view, told);
  if (seen == nullptr) return told.issue.status == core::IssueStatus::firing;
  return same_episode(*seen, told) && seen->newest.status == core::IssueStatus::firing;
}

bool fires_at_all(const TopicView& view, const core::NotifiedIssue& told) {
  const auto* seen = seen_of(view, told);
  return seen != nullptr && seen->newest.status == core::IssueStatus::firing;
}

std::string objection(const core::Notification& message, const TopicView& view) {
  if (message.kind == core::NotificationKind::close) {
    const bool again = std::any_of(message.issues.begin(), message.issues.end(),
                                   [&](const auto& one) { return fires_at_all(view, one); });
    return again ? "an issue of this incident fires again: a close would hide it" : "";
  }
  const bool fires = std::any_of(message.issues.begin(), message.issues.end(),
                                 [&](const auto& one) { return fires_still(view, one); });
  return fires ? "" : "its issues are over: nobody would close what it opens";
}

// What changed of its issues since.
void refresh(core::Notification& message, const TopicView& view) {
  for (core::NotifiedIssue& one : message.issues) {
    const auto* seen = seen_of(view, one);
    if (seen == nullptr || !same_episode(*seen, one)) continue;
    const bool fired = one.issue.status == core::IssueStatus::firing;
    const bool fires = seen->newest.status == core::IssueStatus::firing;
    one.issue = seen->newest;
    if (fired && !fires && message.firing_count > 0) {
      --message.firing_count;
      ++message.resolved_count;
    }
    if (!fired && fires && message.resolved_count > 0) {
      ++message.firing_count;
      --message.resolved_count;
    }
  }
  message.rendered.clear();  // each attempt makes it anew of the issues
}

}  // namespace

ReplayPlan plan_replay(core::Notification notification, const TopicView& view,
                       const ReplayTerms& terms, core::WallTime now) {
  ReplayPlan out{std::move(notification), {}};
  core::Notification& message = out.notification;
  if (core::commands_a_run(message.type)) {
    out.refused = "a command to a run is not sent again: a run is stopped by tocsin stop RUN";
    return out;
  }
  if (message.notification_id.find('/') != std::string::npos) {
    out.refused = "it is the delivery of one recipient: the message itself was sent";
    return out;
  }
  if (auto read = core::unpack(message); !read) {
    out.refused = "its issues cannot be read: " + read.error().message;
    return out;
  }
  if (!terms.force) out.refused = objection(message, view);
  if (!out.refused.empty()) return out;
  const core::Duration life = message.expires_at - message.decided_at;
  if (!terms.as_was) refresh(message, view);
  message.reason = std::string(core::kReplayedReason);
  message.expires_at = now + std::max(life, kShortestLife);
  return out;
}

}  // namespace tocsin::app
