// What Slack says when somebody presses a button of a message: pure, without topics and clocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// One press of a button of ours.
struct SlackClick {
  std::string user;              // its member ID
  std::string user_name;         // as Slack calls them
  bool of_our_workspace = true;  // false: somebody of another one, in a shared channel
  std::string value;             // of the button
  std::string response_url;  // takes answers for 30 minutes; whoever has it can write: a credential
  core::Value message;       // in which it was pressed; null: it has none
};

inline constexpr std::size_t kMostOfAClick = std::size_t{512} << 10;
/// A request whose time differs more from ours is none of now.
inline constexpr core::Duration kSlackClockMayDiffer = std::chrono::minutes(5);

/// X-Slack-Signature: "v0=<hex>" of the HMAC-SHA256 of "v0:<timestamp>:<body>", the exact bytes.
bool has_slack_signature(std::string_view header, std::string_view timestamp,
                         std::string_view secret, std::string_view body);
/// X-Slack-Request-Timestamp: whole seconds; nullopt: it is none.
std::optional<core::WallTime> slack_timestamp(std::string_view header);

/// A body of application/x-www-form-urlencoded whose `payload` is JSON. nullopt: something else than a
/// press of one of our buttons. invalid_argument: no such body.
core::Result<std::optional<SlackClick>> read_slack_click(std::string_view body);

/// Who has pressed, as records of who changed what have it: "slack:ada (U02ABC3DE)".
std::string slack_person(const SlackClick& click);

}  // namespace tocsin::app
