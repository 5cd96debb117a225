// What routing decided to tell one integration, and how its delivery went
// (docs/routing.md, docs/events.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/labels.h"
#include "core/run_told.h"
#include "core/time.h"

namespace tocsin::core {

enum class NotificationKind { open, update, close, repeat };
std::string_view to_string(NotificationKind kind) noexcept;
std::optional<NotificationKind> notification_kind_from(std::string_view name) noexcept;

/// Who has taken an issue on, as messages say it (docs/acknowledge.md).
struct AckTold {
  std::string by;
  std::string note;
  WallTime at{};
  std::optional<WallTime>
      until;  // unset: until the issue ends, or the router's ack_timeout is over
};

/// One issue inside a notification, with the identity of its episode.
struct NotifiedIssue {
  std::string issue_key;
  std::uint64_t episode = 1;
  Issue issue;
  std::optional<AckTold> acknowledged;  // of this episode, while it fires
};

/// Names one episode of an issue and its newest event.
struct IssueRef {
  std::string issue_key;
  std::uint64_t episode = 1;
  std::string event_id;
};

/// What delivery needs of the issues that a message lists, beside the message as it was rendered.
struct Listing {
  Severity worst = Severity::info;
  std::vector<IssueRef> issues;
  WallTime measured{}, published{}, evaluated{};  // of the first issue
  std::string traceparent;                        // of the first that has one to pass on
  std::string tracestate;
};

/// The issues of a message as they stand in the outbox. Few deliveries ever read them: what is sent
/// is the rendered message.
struct PackedIssues {
  Listing listing;
  std::string text;
};

/// One decided message for one integration; a record of `router-outbox`, keyed by integration.
struct Notification {
  std::string notification_id;  // ntf_…; the idempotency key everywhere
  std::string integration;      // integration id
  std::string type;             // webhook, email, …
  std::string receiver;
  std::string route_id;
  std::string group_key;   // "<matcher path>:{k=\"v\"}"
  std::string group_hash;  // hex SHA-256
  std::uint64_t generation = 1;
  std::string reason;  // first, new_issues, all_resolved, …
  std::string why;     // why this receiver is told, in words, where `reason` alone does not say it
  NotificationKind kind = NotificationKind::open;
  bool firing = true;  // message status: firing while anything told is
  Labels group_labels;
  Labels common_labels;
  std::vector<NotifiedIssue> issues;  // most severe first, then oldest; cut to max_alerts
  std::vector<NotifiedIssue> suppressed;
  /// The runs that `issues` are about, in the order in which they come there; packed with them.
  std::vector<RunTold> runs;
  /// Set in a message from the outbox until unpack() (core/fields/outbox.h): these lists are
  /// empty, and stand here.
  std::shared_ptr<const PackedIssues> packed;
  std::uint64_t firing_count = 0;
  std::uint64_t resolved_count = 0;
  std::uint64_t truncated = 0;
  WallTime decided_at{};
  WallTime expires_at{};
  std::string config_version;
  std::string rendered;  // what every attempt sends, as its action stores it, without credentials
  // Set by delivery before an attempt, no part of the record in the outbox:
  std::vector<std::pair<std::string, std::string>> handles;  // far-side ids of the open incident
  bool minimal = false;  // the full message was refused: status, counts, top issue, link only
};

/// Of the issues of the message, packed or not.
Severity worst_of(const Notification& notification);
Listing listing_of(const Notification& notification);
/// W3C trace context of the first issue that has one fit for a header line; else null.
const Issue* traced(const std::vector<NotifiedIssue>& issues);

enum class DeliveryState {
  pending,
  delivered,
  delivered_via_digest,
  sent_unconfirmed,
  superseded,
  expired,
  dead,
  cancelled,
};
std::string_view to_string(DeliveryState state) noexcept;
std::optional<DeliveryState> delivery_state_from(std::string_view name) noexcept;

enum class OutcomeClass {
  delivered,
  transient,
  throttled,
  configuration,
  gone,
  bad_payload,
  unknown,
};
std::string_view to_string(OutcomeClass outcome) noexcept;

/// One attempt, or the final state, of a notification; a record of `router-deliveries`.
struct Delivery {
  std::string notification_id;
  std::string integration;
  std::string type;
  std::string receiver;
  std::string route_id;
  std::string group_key;
  std::string reason;
  NotificationKind kind = NotificationKind::open;
  std::uint32_t attempt = 1;
  DeliveryState state = DeliveryState::pending;
  OutcomeClass outcome = OutcomeClass::delivered;
  std::string code;    // "204", "smtp 250", "puback", …
  std::string detail;  // redacted, at most 2 KiB
  Duration latency{};
  std::vector<std::pair<std::string, std::string>> handles;  // far-side ids
  std::optional<WallTime> next_attempt_at;
  std::string config_version;
  std::vector<IssueRef> issues;
  struct Stages {
    WallTime measured{}, published{}, evaluated{}, decided{}, sent{}, answered{};
  } stages;
};

}  // namespace tocsin::core
