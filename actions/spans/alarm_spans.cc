#include "actions/spans/alarm_spans.h"

#include <algorithm>
#include <utility>

#include "core/fields/outbox.h"
#include "core/identity.h"

namespace tocsin::actions {
namespace {

using core::WallTime;

constexpr std::size_t kMostMessages =
    50'000;  // an attempt of an older one finds its trace by its issue
constexpr std::size_t kMostEvents = 50'000;
constexpr std::size_t kMostLinks = 100;

/// The earliest of these that is known; else `otherwise`.
WallTime earliest(std::initializer_list<WallTime> times, WallTime otherwise) {
  WallTime out = otherwise;
  for (const WallTime one : times) {
    if (one != WallTime{}) out = std::min(out, one);
  }
  return out;
}

void add(Span& span, const char* name, const std::string& value) {
  if (!value.empty()) span.attributes.emplace_back(name, value);
}

void add(Span& span, const char* name, std::uint64_t value) {
  span.attributes.emplace_back(name, static_cast<std::int64_t>(value));
}

Span event_of(const core::NotifiedIssue& told, const SpanContext& context) {
  const core::Issue& issue = told.issue;
  Span out;
  out.trace = context.trace;
  out.id = event_span(issue.event_id);
  out.parent = context.parent;
  out.state = issue.tracestate;
  const bool firing = issue.status == core::IssueStatus::firing;
  out.name = issue.rule + (firing ? " fired" : " resolved");
  out.end = issue.evaluated_at != WallTime{} ? issue.evaluated_at : issue.time;
  out.start = earliest({issue.measured_at, issue.published_at}, out.end);
  add(out, "tocsin.event.id", issue.event_id);
  add(out, "tocsin.issue.key", told.issue_key);
  add(out, "tocsin.issue.episode", told.episode);
  add(out, "tocsin.rule", issue.rule);
  add(out, "tocsin.severity", std::string(core::to_string(issue.severity)));
  add(out, "tocsin.job", issue.run.job);
  if (issue.run.uid != core::RunUid{}) add(out, "tocsin.run.uid", core::to_text(issue.run.uid));
  add(out, "tocsin.run.attempt", issue.run.attempt);
  if (issue.step) out.attributes.emplace_back("tocsin.step", *issue.step);
  if (issue.evidence.tensor) add(out, "tocsin.tensor", issue.evidence.tensor->name);
  add(out, "tocsin.summary", issue.summary);
  return out;
}

Span message_of(const core::Notification& message, const SpanContext& context) {
  Span out;
  out.trace = context.trace;
  out.id = message_span(message.notification_id);
  out.parent = context.parent;
  out.name = "tell " + message.receiver;
  out.kind = SpanKind::producer;
  out.start = out.end = message.decided_at;
  add(out, "tocsin.notification.id", message.notification_id);
  add(out, "tocsin.integration", message.integration);
  add(out, "tocsin.integration.type", message.type);
  add(out, "tocsin.receiver", message.receiver);
  add(out, "tocsin.route", message.route_id);
  add(out, "tocsin.group", message.group_key);
  add(out, "tocsin.reason", message.reason);
  add(out, "tocsin.kind", std::string(core::to_string(message.kind)));
  add(out, "tocsin.firing", message.firing_count);
  add(out, "tocsin.resolved", message.resolved_count);
  return out;
}

bool is_sent(const core::Delivery& delivery) {
  return delivery.stages.sent != WallTime{} && delivery.stages.answered != WallTime{};
}

}  // namespace

std::vector<Span> AlarmSpans::of(core::Notification notification) {
  std::vector<Span> out;
  const core::Listing listing = core::listing_of(notification);
  auto context = context_of(listing);
  if (!context || !core::unpack(notification)) return out;
  Span message = message_of(notification, *context);
  WallTime judged{};  // the newest event that is news
  const core::Issue* origin = core::traced(notification.issues);
  for (const core::NotifiedIssue& one : notification.issues) {
    const SpanContext own = context_of(one.issue.traceparent, one.issue_key, one.episode);
    const std::string id = event_span(one.issue.event_id);
    const bool begins =
        origin == nullptr ? &one == &notification.issues.front() : &one.issue == origin;
    if (begins) {
      message.parent = id;
    } else if (message.links.size() < kMostLinks) {
      message.links.push_back({own.trace, id});
    }
    if (!own.sampled || !is_news(one.issue.event_id)) continue;
    out.push_back(event_of(one, own));
    judged = std::max(judged, out.back().end);
  }
  if (judged != WallTime{}) message.start = std::min(judged, message.end);
  if (context->sampled) out.push_back(std::move(message));
  remember(notification.notification_id, std::move(*context));
  return out;
}

std::optional<Span> AlarmSpans::of(const core::Delivery& delivery) {
  if (!is_sent(delivery)) return std::nullopt;
  SpanContext context;
  if (const auto known = messages_.find(delivery.notification_id); known != messages_.end()) {
    context = known->second;
  } else if (!delivery.issues.empty()) {
    context = context_of("", delivery.issues.front().issue_key, delivery.issues.front().episode);
  } else {
    return std::nullopt;
  }
  if (!context.sampled) return std::nullopt;
  Span out;
  out.trace = context.trace;
  out.id = attempt_span(delivery.notification_id, delivery.attempt);
  out.parent = message_span(delivery.notification_id);
  out.name = "send " + delivery.type;
  out.kind = SpanKind::client;
  out.start = delivery.stages.sent;
  out.end = std::max(delivery.stages.sent, delivery.stages.answered);
  add(out, "tocsin.notification.id", delivery.notification_id);
  add(out, "tocsin.integration", delivery.integration);
  add(out, "tocsin.receiver", delivery.receiver);
  add(out, "tocsin.attempt", delivery.attempt);
  add(out, "tocsin.state", std::string(core::to_string(delivery.state)));
  add(out, "tocsin.outcome", std::string(core::to_string(delivery.outcome)));
  add(out, "tocsin.code", delivery.code);
  if (delivery.outcome != core::OutcomeClass::delivered) {
    out.error = delivery.detail.empty() ? delivery.code : delivery.detail;
  }
  return out;
}

void AlarmSpans::remember(const std::string& notification_id, SpanContext context) {
  if (!messages_.insert_or_assign(notification_id, std::move(context)).second) return;
  message_order_.push_back(notification_id);
  if (message_order_.size() <= kMostMessages) return;
  messages_.erase(message_order_.front());
  message_order_.pop_front();
}

bool AlarmSpans::is_news(const std::string& event_id) {
  if (!events_.insert(event_id).second) return false;
  event_order_.push_back(event_id);
  if (event_order_.size() > kMostEvents) {
    events_.erase(event_order_.front());
    event_order_.pop_front();
  }
  return true;
}

void AlarmSpans::clear() {
  messages_.clear();
  message_order_.clear();
  events_.clear();
  event_order_.clear();
}

}  // namespace tocsin::actions
