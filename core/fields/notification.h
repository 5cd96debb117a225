// What routing decided to tell (the outbox), and how its delivery went.
#pragma once

#include <cmath>

#include "core/fields/archive.h"
#include "core/fields/issue.h"
#include "core/fields/run_told.h"
#include "core/fields/words.h"
#include "core/notification.h"

namespace tocsin::core {

/// An event with all that stands outside its data: nothing of it is lost.
template <typename A>
void event_fields(A& io, Of<A, Issue>& issue) {
  io.field("event_id", issue.event_id, "its newest event");
  io.field("source", issue.source, "source of that event");
  io.field("sequence", issue.sequence, "its number at that source");
  io.field("time", issue.time, "when it was seen");
  io.field("traceparent", issue.traceparent, "W3C trace context", How::omit_if_empty);
  io.field("tracestate", issue.tracestate, "W3C trace context", How::omit_if_empty);
  io.field("data", issue, "the event's data", How::required);
}

template <typename A>
void fields(A& io, Of<A, AckTold>& ack) {
  io.field("by", ack.by, "who acknowledged the issue");
  io.field("note", ack.note, "what they wrote");
  io.field("at", ack.at, "when");
  io.field("until", ack.until, "when the acknowledgement ends, if that was said",
           How::omit_if_empty);
}

/// In a record the whole event; in a message one flat object.
template <typename A>
void fields(A& io, Of<A, NotifiedIssue>& notified) {
  io.field("issue_key", notified.issue_key, "the same for all episodes of an issue");
  io.field("episode", notified.episode, "counts its firings");
  if constexpr (A::kMessage) {
    io.field("event_id", notified.issue.event_id, "its newest event");
    io.field("fingerprint", fingerprint(notified.issue.labels),
             "hash of its labels, as Prometheus has it");
    fields(io, notified.issue);
  } else {
    event_fields(io, notified.issue);
  }
  io.field("acknowledged", notified.acknowledged, "who has taken the issue on", How::omit_if_empty);
}

/// All but its issues and what is sent of them.
template <typename A>
void head_fields(A& io, Of<A, Notification>& notification) {
  io.field("notification_id", notification.notification_id, "the same in every attempt",
           How::required);
  io.field("integration", notification.integration, "id of the integration", How::required);
  io.field("type", notification.type, "webhook, email, …");
  io.field("receiver", notification.receiver, "receiver of the configuration");
  io.field("route_id", notification.route_id, "route that led there");
  io.field("group_key", notification.group_key, "matchers and labels of the group");
  io.field("group_hash", notification.group_hash, "its hash");
  io.field("generation", notification.generation, "how often the group has come into being");
  io.field("reason", notification.reason, "first, new_issues, all_resolved, …");
  io.field("why", notification.why, "why this receiver is told: escalation, fallback",
           How::omit_if_empty);
  io.field("kind", notification.kind, "open, update, close or repeat");
  io.field("firing", notification.firing, "something that was told still fires");
  io.field("group_labels", notification.group_labels, "labels that make the group");
  io.field("common_labels", notification.common_labels, "labels that all its issues share");
  io.field("firing_count", notification.firing_count, "issues that fire");
  io.field("resolved_count", notification.resolved_count, "issues that are over");
  io.field("truncated", notification.truncated, "issues beyond the limit of the message");
  io.field("decided_at", notification.decided_at, "when it was decided");
  io.field("expires_at", notification.expires_at, "when it is no longer worth telling");
  io.field("config_version", notification.config_version, "configuration that decided");
}

template <typename A>
void issue_lists(A& io, Of<A, Notification>& notification) {
  io.field("issues", notification.issues, "most severe first, then oldest");
  io.field("suppressed", notification.suppressed, "silenced or inhibited ones");
  io.field("runs", notification.runs, "the runs that the issues are about",
           A::kMessage ? How::plain : How::omit_if_empty);
}

/// A message in one JSON object, as the outbox once had them.
template <typename A>
void fields(A& io, Of<A, Notification>& notification) {
  head_fields(io, notification);
  issue_lists(io, notification);
  io.field("rendered", notification.rendered, "the bytes that are sent");
}

template <typename A>
void row(A& io, Of<A, IssueRef>& issue) {
  io.item(issue.issue_key);
  io.item(issue.episode);
  io.item(issue.event_id);
}

template <typename A>
void fields(A& io, Of<A, Listing>& listing) {
  io.field("worst", Number{listing.worst, Severity::critical}, "", How::required);
  io.rows("issues", listing.issues);
  io.field("measured", listing.measured);
  io.field("published", listing.published);
  io.field("evaluated", listing.evaluated);
  io.field("traceparent", listing.traceparent, "", How::omit_if_empty);
  io.field("tracestate", listing.tracestate, "", How::omit_if_empty);
}

template <typename A>
void fields(A& io, Of<A, IssueRef>& issue) {
  io.field("issue_key", issue.issue_key, "the same for all episodes of an issue");
  io.field("episode", issue.episode, "counts its firings");
  io.field("event_id", issue.event_id, "its event");
}

template <typename A>
void fields(A& io, Of<A, Delivery::Stages>& stages) {
  io.field("measured", stages.measured, "in the training process");
  io.field("published", stages.published, "its record was appended");
  io.field("evaluated", stages.evaluated, "a rule judged it");
  io.field("decided", stages.decided, "routing decided to tell");
  io.field("sent", stages.sent, "this attempt began");
  io.field("answered", stages.answered, "the far side answered");
}

template <typename A>
void fields(A& io, Of<A, Delivery>& delivery) {
  constexpr double kNanosecondsPerMillisecond = 1e6;
  io.field("notification_id", delivery.notification_id, "the notification", How::required);
  io.field("integration", delivery.integration, "id of the integration");
  io.field("type", delivery.type, "webhook, email, …");
  io.field("receiver", delivery.receiver, "receiver of the configuration");
  io.field("route_id", delivery.route_id, "route that led there");
  io.field("group_key", delivery.group_key, "matchers and labels of the group");
  io.field("reason", delivery.reason, "why it was told: first, new_issues, …");
  io.field("kind", delivery.kind, "open, update, close or repeat");
  io.field("attempt", delivery.attempt, "from 1");
  io.field("state", delivery.state, "pending: will be tried again; any other is final",
           How::required);
  io.field("class", delivery.outcome, "how the attempt ended");
  io.field("code", delivery.code, "what the far side said: 204, smtp 250, …");
  io.field("detail", delivery.detail, "in words, without secrets");
  double milliseconds = static_cast<double>(delivery.latency.count()) / kNanosecondsPerMillisecond;
  io.field("latency_ms", milliseconds, "duration of the attempt");
  if constexpr (A::kReading) {
    const double latency = milliseconds * kNanosecondsPerMillisecond;
    if (std::fabs(latency) < 9.2e18) delivery.latency = Duration{std::llround(latency)};
  }
  io.field("handles", delivery.handles, "ids of the far side");
  io.field("next_attempt_at", delivery.next_attempt_at, "when it is tried again");
  io.field("config_version", delivery.config_version, "configuration that decided");
  io.field("issues", delivery.issues, "what was told");
  io.field("stages", delivery.stages, "times on the way");
}

}  // namespace tocsin::core
