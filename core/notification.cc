#include "core/notification.h"

#include <algorithm>
#include <array>
#include <optional>

namespace tocsin::core {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"open", "update", "close", "repeat"};
constexpr std::array<std::string_view, 8> kStates{
    "pending", "delivered", "delivered_via_digest", "sent_unconfirmed", "superseded", "expired",
    "dead",    "cancelled"};
constexpr std::array<std::string_view, 7> kOutcomes{
    "delivered", "transient", "throttled", "configuration", "gone", "bad_payload", "unknown"};

template <typename E, std::size_t N>
std::optional<E> find(const std::array<std::string_view, N>& names, std::string_view wanted) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == wanted) return static_cast<E>(i);
  }
  return std::nullopt;
}

/// It becomes a header line: nothing but what the recommendation allows gets through.
bool fit(std::string_view text, std::size_t limit) {
  return text.size() <= limit &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

constexpr std::size_t kMaxTraceparent = 128;
constexpr std::size_t kMaxTracestate = 512;

}  // namespace

Severity worst_of(const Notification& notification) {
  if (notification.packed) return notification.packed->listing.worst;
  Severity worst = Severity::info;
  for (const NotifiedIssue& one : notification.issues) {
    worst = std::max(worst, one.issue.severity);
  }
  return worst;
}

const Issue* traced(const std::vector<NotifiedIssue>& issues) {
  const auto found = std::find_if(issues.begin(), issues.end(), [](const NotifiedIssue& one) {
    return !one.issue.traceparent.empty() && fit(one.issue.traceparent, kMaxTraceparent);
  });
  return found == issues.end() ? nullptr : &found->issue;
}

Listing listing_of(const Notification& notification) {
  if (notification.packed) return notification.packed->listing;
  Listing out;
  out.worst = worst_of(notification);
  out.issues.reserve(notification.issues.size());
  for (const NotifiedIssue& one : notification.issues) {
    out.issues.push_back({one.issue_key, one.episode, one.issue.event_id});
  }
  if (!notification.issues.empty()) {
    const Issue& first = notification.issues.front().issue;
    out.measured = first.measured_at;
    out.published = first.published_at;
    out.evaluated = first.evaluated_at;
  }
  if (const Issue* issue = traced(notification.issues)) {
    out.traceparent = issue->traceparent;
    if (fit(issue->tracestate, kMaxTracestate)) out.tracestate = issue->tracestate;
  }
  return out;
}

std::string_view to_string(NotificationKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}
std::optional<NotificationKind> notification_kind_from(std::string_view name) noexcept {
  return find<NotificationKind>(kKinds, name);
}
std::string_view to_string(DeliveryState state) noexcept {
  return kStates[static_cast<std::size_t>(state)];
}
std::optional<DeliveryState> delivery_state_from(std::string_view name) noexcept {
  return find<DeliveryState>(kStates, name);
}
std::string_view to_string(OutcomeClass outcome) noexcept {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

}  // namespace tocsin::core
