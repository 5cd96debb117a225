// What every action may be told, whatever its type (docs/actions/README.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/time.h"

namespace tocsin::actions {

/// Delay of the n-th retry = random(0, min(max, initial · factor^n)), never below the far side's
/// hint. max_attempts 0: until superseded or too old.
struct RetryConfig {
  core::Duration initial = std::chrono::seconds(1);
  double factor = 2;  // ≥ 1
  core::Duration max = std::chrono::minutes(2);
  std::uint32_t max_attempts = 0;
};

/// Token bucket: `burst` at once, `rate` tokens come back every `per`. rate 0: no limit.
struct RateLimitConfig {
  double rate = 0;
  core::Duration per = std::chrono::minutes(1);
  std::uint32_t burst = 1;
};

/// Opens after `failures` transient outcomes in a row, or when more than half of at least 10 in a
/// minute were transient; stays open for `open`, doubling up to `max_open`; then one probe.
struct BreakerConfig {
  std::uint32_t failures = 5;
  core::Duration open = std::chrono::seconds(30);
  core::Duration max_open = std::chrono::minutes(5);
};

struct CommonConfig {
  std::string id;  // stable integration id; default "<receiver>/<type>", "/<n>" when repeated
  bool enabled = true;
  bool shadow = false;            // decide and record, do not send
  bool send_resolved = true;      // for routing: whether a close is owed
  std::vector<std::string> when;  // for routing: matchers an issue must meet for this action
  core::Duration timeout = std::chrono::seconds(10);  // per attempt, hard
  core::Duration connect_timeout = std::chrono::seconds(3);
  core::Duration max_age = std::chrono::hours(24);         // then a notification expires
  core::Duration max_age_close = std::chrono::hours(168);  // closes: somebody has an open incident
  RetryConfig retry;
  RateLimitConfig rate_limit;
  BreakerConfig breaker;
  core::Duration standing_after = std::chrono::minutes(5);  // then people hear that nothing arrives
  core::Duration config_hold = std::chrono::minutes(15);  // how long a configuration error may last
  std::uint32_t concurrency = 4;                          // groups in flight at once
  std::uint32_t max_alerts = 100;                         // for routing: issues per message
  config::Bytes max_payload{262144};
  bool retry_unknown = true;  // on_unknown: retry (same id again) | drop
};

/// Declares the keys above; called on the map of an action before the action's own keys.
void read(config::Reader& in, CommonConfig& cfg);

}  // namespace tocsin::actions
