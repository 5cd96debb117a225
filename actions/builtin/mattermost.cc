// Posts each notification to a Mattermost channel, by an incoming webhook.
//
// Sends       POST: the title as text, the rest as an attachment with fields.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       an incoming webhook; a server in a private network needs allow_private. A webhook cannot
//             change its messages.
// Source      developers.mattermost.com: incoming webhooks, message attachments.

#include "actions/integration/chat_action.h"
#include "actions/message/tone.h"

namespace tocsin::actions {
namespace {

/// Mentions are looked for in the text as it is shown, so a backslash does not hold them back: an
/// invisible character behind the @ does. Slack's form, <!channel>, is translated before that: there
/// the backslash does.
std::string mattermost_text(std::string_view text) {
  std::string out;
  for (const char c : backslashed(text, "\\`*_~|[]>#!")) {
    out += c;
    if (c == '@') out += "\u200b";
  }
  return out;
}

struct Mattermost final : ChatIntegration {
  std::string channel;
  std::string username;

  Mattermost()
      : ChatIntegration(
            {.bold = "**",
             .bold_end = "",
             .code = "```\n",
             .code_end = "\n```",
             .plain = mattermost_text,
             .link = [](const std::string& name,
                        const std::string& url) { return "[" + name + "](" + url + ")"; },
             .escapes_code = false},
            // A post has at most 16383 characters.
            {.title = 500, .text = 1500, .value = 400, .fields = 10, .body = 16'000}) {
    url_means_ = "the incoming webhook, https://chat.example.com/hooks/…";
  }

  void keys(config::Reader& in) override {
    in.optional("channel", channel, "another channel than the webhook's, by its name in URLs");
    in.optional("username", username, "name of the sender, if the server allows it");
  }

  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    core::ValueList fields;
    for (const auto& [name, value] : message.fields) {
      fields.emplace_back(core::ValueMap{{"short", true}, {"title", name}, {"value", value}});
    }
    core::ValueMap out{
        {"text", bold(message.title, markup_)},
        {"attachments", core::ValueList{core::ValueMap{
                            {"fallback", message.title},
                            {"color", std::string(tone_named(message.tone).colour)},
                            {"text", paragraphs({finding(message), rest(message, markup_),
                                                 link_line(message, markup_)})},
                            {"fields", std::move(fields)},
                            {"footer", message.footer}}}}};
    if (!channel.empty()) out.emplace_back("channel", channel);
    if (!username.empty()) out.emplace_back("username", username);
    return out;
  }
};

}  // namespace

ActionDescriptor mattermost() {
  return chat_descriptor("mattermost", "Posts to a Mattermost channel.", read_http<Mattermost>);
}

}  // namespace tocsin::actions
