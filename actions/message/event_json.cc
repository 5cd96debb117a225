#include "actions/message/event_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "actions/message/episode_words.h"
#include "actions/message/headline.h"
#include "actions/message/run_words.h"
#include "core/fields/message_text.h"
#include "core/fields/notification.h"
#include "core/fields/out.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

using core::Value;
using core::ValueMap;

const char* status(const core::Notification& notification) {
  return notification.firing ? "firing" : "resolved";
}

struct Counts {
  const core::Notification& notification;
};
template <typename A>
void fields(A& io, const Counts& of) {
  io.field("firing", of.notification.firing_count);
  io.field("resolved", of.notification.resolved_count);
  io.field("suppressed", std::uint64_t{of.notification.suppressed.size()});
  io.field("truncated", of.notification.truncated);
}

constexpr std::size_t kShortFormText = 300;
constexpr std::size_t kMaxEndingText = 1000;

/// What is left when the full message was refused: the issue that it is named for, what was found, and
/// how it ended.
struct TopIssue {
  const core::NotifiedIssue& notified;
  const core::Notification& notification;
};
template <typename A>
void fields(A& io, const TopIssue& of) {
  constexpr core::How kOptional = core::How::omit_if_empty;
  const core::Issue& issue = of.notified.issue;
  io.field("issue_key", of.notified.issue_key);
  io.field("episode", of.notified.episode);
  io.field("event_id", issue.event_id);
  io.field("status", issue.status);
  io.field("rule", issue.rule);
  io.field("severity", issue.severity);
  io.field("summary", core::visible(first_line(issue), kShortFormText));
  io.field("seen", core::visible(seen(issue), kShortFormText), "", kOptional);
  io.field("step", issue.step);
  io.field("starts_at", issue.starts_at);
  io.field("ends_at", issue.ends_at);
  io.field("resolution", issue.resolution);
  io.field("outcome", outcome_words(of.notification, issue), "", kOptional);
  io.field("acknowledged", of.notified.acknowledged, "", kOptional);
  io.field("run_uid", issue.run.uid, "", core::How::null_if_empty);
}

struct Native {
  const core::Notification& notification;
  const Sender& sender;
};
template <typename A>
void fields(A& io, const Native& body) {
  const core::Notification& notification = body.notification;
  io.field("status", status(notification));
  io.field("headline", headline(notification));
  io.field("kind", notification.kind);
  io.field("reason", notification.reason);
  io.field("why", notification.why, "", core::How::omit_if_empty);
  io.field("notification_id", notification.notification_id);
  io.field("receiver", notification.receiver);
  io.field("group_key", notification.group_key);
  io.field("group_labels", notification.group_labels);
  io.field("common_labels", notification.common_labels);
  io.field("counts", Counts{notification});
  io.field("decided_at", notification.decided_at);
  io.field("external_url", body.sender.external_url);
  if (!notification.minimal) {
    io.field("issues", notification.issues);
    io.field("runs", notification.runs);
  } else {
    std::vector<TopIssue> top;
    if (const auto* lead = lead_of(notification)) top.push_back({*lead, notification});
    io.field("issues", top);
  }
}

/// An alert as Prometheus Alertmanager tells it.
struct Alert {
  const core::Issue& issue;
  const core::Notification& notification;
  const Sender& sender;
};
template <typename A>
void fields(A& io, const Alert& alert) {
  const core::Issue& issue = alert.issue;
  io.field("status", issue.status);
  io.field("labels", issue.labels);
  io.object("annotations", "", [&](auto& in) {
    core::annotation_fields(in, issue);
    for (const auto& [name, text] : ending_annotations(alert.notification, issue)) {
      in.field(name, text);
    }
  });
  io.field("startsAt", core::to_rfc3339(begin_of(issue, alert.notification)));
  // Go's zero time is how that format says "not over yet".
  io.field("endsAt", issue.ends_at ? core::to_rfc3339(*issue.ends_at) : "0001-01-01T00:00:00Z");
  io.field("generatorURL",
           issue.generator_url.empty() ? alert.sender.external_url : issue.generator_url);
  io.field("fingerprint", core::fingerprint(issue.labels));
}

}  // namespace

TraceContext trace_of(const core::Notification& notification) {
  core::Listing listing = core::listing_of(notification);
  return {std::move(listing.traceparent), std::move(listing.tracestate)};
}

core::WallTime begin_of(const core::Issue& issue, const core::Notification& notification) {
  if (issue.starts_at != core::WallTime{}) return issue.starts_at;
  return issue.time != core::WallTime{} ? issue.time : notification.decided_at;
}

std::vector<std::pair<std::string, std::string>> ending_annotations(
    const core::Notification& notification, const core::Issue& issue) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) out.emplace_back(name, core::visible(text, kMaxEndingText));
  };
  std::string ended = resolution_words(issue);
  if (!ended.empty() && issue.ending) {
    if (issue.ending->step) ended += " at step " + std::to_string(*issue.ending->step);
    if (!issue.ending->summary.empty()) ended += ": " + issue.ending->summary;
  }
  add("ending", ended);
  const core::RunTold* told = run_of(notification, issue);
  if (told == nullptr) return out;
  add("outcome", run_outcome(*told));
  if (!told->stop) return out;
  add("stop", told->stop->command_id);
  if (told->stop->checkpoint) add("checkpoint", checkpoint_place(*told->stop->checkpoint));
  return out;
}

std::string native(const core::Notification& notification, const Sender& sender) {
  std::string out;
  core::append_message(out, Native{notification, sender});
  return out;
}

Value alertmanager_v4(const core::Notification& notification, const Sender& sender) {
  core::ValueList alerts;
  const std::size_t shown = notification.minimal
                                ? std::min<std::size_t>(1, notification.issues.size())
                                : notification.issues.size();
  alerts.reserve(shown);
  for (std::size_t i = 0; i < shown; ++i) {
    alerts.push_back(
        core::message_value(Alert{notification.issues[i].issue, notification, sender}));
  }
  return ValueMap{
      {"version", "4"},
      {"groupKey", notification.group_key},
      {"truncatedAlerts", notification.truncated + (notification.issues.size() - shown)},
      {"status", status(notification)},
      {"receiver", notification.receiver},
      {"groupLabels", core::message_value(notification.group_labels)},
      {"commonLabels", core::message_value(notification.common_labels)},
      {"commonAnnotations", ValueMap{}},
      {"externalURL", sender.external_url},
      {"alerts", std::move(alerts)}};
}

std::string cloud_event(const core::Notification& notification, const Sender& sender) {
  ValueMap head{{"specversion", "1.0"},
                {"type", "dev.tocsin.notification.v1"},
                {"source", "/" + sender.cluster + "/router"},
                {"id", notification.notification_id},
                {"time", core::to_rfc3339(notification.decided_at)},
                {"datacontenttype", "application/json"}};
  if (const auto* lead = lead_of(notification)) {
    const core::NotifiedIssue& top = *lead;
    const std::string run = run_text(top.issue.run);
    if (!run.empty()) head.emplace_back("subject", run);
    head.emplace_back("correlationid", top.issue_key + "/" + std::to_string(top.episode));
    // No attribute of a CloudEvent is empty.
    if (!top.issue.event_id.empty()) head.emplace_back("causationid", top.issue.event_id);
    const auto traced = trace_of(notification);
    if (!traced.parent.empty()) head.emplace_back("traceparent", traced.parent);
    if (!traced.state.empty()) head.emplace_back("tracestate", traced.state);
  }
  std::string out = core::to_json(head);
  out.back() = ',';
  out += "\"data\":";
  core::append_message(out, Native{notification, sender});
  out += '}';
  return out;
}

}  // namespace tocsin::actions
