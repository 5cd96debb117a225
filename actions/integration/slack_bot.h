// Slack's Web API for messages: a channel, one root message per incident, and the thread below it. Internal
// to actions.
#pragma once

#include <string>

#include "actions/integration/http_action.h"

namespace tocsin::actions {

/// The keys of a bot and what they make of a request. Without `token` there is none, and a webhook posts.
///
/// An end changes the root message of its incident (chat.update). News is a new message or, with
/// `threading`, a reply below the root.
struct SlackBot {
  static constexpr char kApi[] = "https://slack.com/api";

  config::Secret token;
  std::string channel;
  bool threading = false;

  void keys(config::Reader& in);
  void check(config::Reader& in) const;

  /// Method, token, channel and place of the message. `root`: the message to change, as message_id() has
  /// it; empty: a new one.
  core::Status complete(HttpRequest& request, const HttpAttempt& attempt,
                        const std::string& root) const;

  // The answers of both methods: `ok` in a 200.
  static core::AttemptOutcome classify(const HttpResult& result, core::WallTime now);
  /// "<channel id> <ts>": chat.update takes no name of a channel.
  static std::string message_id(const HttpResponse& response);
  /// The root was deleted, or cannot be changed any more.
  static bool lost(const HttpResponse& response);
};

}  // namespace tocsin::actions
