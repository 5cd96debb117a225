// Port: carrying a notification out. Routing decides whether and when; an action decides how.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::core {

/// What one attempt came to.
struct AttemptOutcome {
  OutcomeClass outcome = OutcomeClass::delivered;
  bool confirmed = true;  // false: MQTT QoS 0, UDP: final state sent_unconfirmed
  std::string code;
  std::string detail;  // redacted
  std::optional<Duration> retry_after;
  std::vector<std::pair<std::string, std::string>> handles;
  /// Not asked (again) yet, by our own choice: the attempt says nothing of the far side, and no breaker
  /// counts it. With `transient`, or with `unknown` where an earlier attempt has asked.
  bool held = false;
  bool declined = false;  // nothing was sent on purpose (dry run, guard): final state cancelled
  /// What people must be told of it (a stop that was held back): written with the attempt's record.
  std::vector<Issue> issues;
  /// What is published by it: written in one unit with the attempt's record, all or nothing.
  std::vector<OutRecord> records;
};

/// One integration of a receiver: configured once, used from delivery threads.
class Action {
 public:
  virtual ~Action() = default;
  /// The message as stored in the outbox: bytes that every attempt sends again, no credentials.
  [[nodiscard]] virtual Result<std::string> render(const Notification& notification) const = 0;
  /// One attempt; blocks at most until `deadline` (monotonic budget). Thread-safe.
  virtual AttemptOutcome execute(const Notification& notification, std::uint32_t attempt,
                                 std::chrono::milliseconds budget) = 0;
};

}  // namespace tocsin::core
