// What every chat tool shares, over HTTP: the message, its limits with cuts that keep the finding, the
// one message of an incident that is changed when the incident is over. Internal to actions.
//
// A chat tool is a struct of its own keys that derives from ChatIntegration, with its markup, its limits
// and `body`; builtin/mattermost.cc is the one to copy, builtin/discord.cc one that changes its messages.
#pragma once

#include <string>

#include "actions/integration/http_action.h"
#include "actions/integration/http_dialog.h"
#include "actions/message/chat_message.h"
#include "core/value.h"

namespace tocsin::actions {

class ChatIntegration : public HttpIntegration {
 public:
  ChatIntegration(const ChatMarkup& markup, const ChatLimits& limits)
      : markup_(markup), limits_(limits) {}

  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const final;
  [[nodiscard]] Handles handles(const HttpResponse& response,
                                const core::Notification& notification) const final;

 protected:
  /// The request that shows the message, without credentials.
  [[nodiscard]] virtual core::Value body(const ChatMessage& message) const = 0;
  /// What the tool calls the message that it took; empty: it says nothing, or no message can be
  /// changed.
  [[nodiscard]] virtual std::string message_id(const HttpResponse& /*response*/) const {
    return {};
  }

  /// The message to change: that of an incident of which something is over. Empty: post a new one, for
  /// news that only changes an old message reaches nobody.
  static std::string message_to_change(const core::Notification& notification);

  ChatMarkup markup_;
  ChatLimits limits_;
};

/// The message as one attachment in the colour of its tone, as tools take it that speak like Slack's old
/// webhooks: fallback, color, text, fields, footer.
core::Value attachment(const ChatMessage& message, const ChatMarkup& markup);

/// How receivers and lanes treat a chat: people read it, and it has one message per second to give.
ActionDescriptor chat_descriptor(std::string_view name, std::string_view summary,
                                 std::shared_ptr<const ActionConfig> (*read)(config::Reader& in));

/// `url` with `more` behind its path, before its query.
std::string below_path(const std::string& url, std::string_view more);
/// `url` with `parameter` ("wait=true") in its query.
std::string with_parameter(const std::string& url, std::string_view parameter);

}  // namespace tocsin::actions
