// What a tool's webhook says: pure, without topics and clocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

/// Somebody has answered an alarm in a tool, or it says something else.
struct InboundEvent {
  enum class Kind { other, acknowledged, unacknowledged };
  Kind kind = Kind::other;
  std::string id;                         // of the event, where the tool names it
  std::string group;                      // the hash under which we opened the incident
  std::string by;                         // who, as the tool calls them; empty: it does not say
  std::optional<core::WallTime> at = {};  // when, where the tool says it
};

inline constexpr std::size_t kMostOfAHook = std::size_t{512} << 10;

/// Webhooks v3 of PagerDuty. invalid_argument: no event.
core::Result<InboundEvent> read_pagerduty_hook(std::string_view body);
/// The outgoing webhook of Jira Service Management operations and of Opsgenie.
core::Result<InboundEvent> read_jsm_hook(std::string_view body);

/// X-PagerDuty-Signature: "v1=<hex>", several between commas while a secret is rotated. True: one of
/// them is the HMAC-SHA256 of the exact bytes of the body.
bool has_pagerduty_signature(std::string_view header, std::string_view secret,
                             std::string_view body);

}  // namespace tocsin::app
