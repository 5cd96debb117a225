// Posts each notification to a Mattermost channel, by an incoming webhook.
//
// This is the action to copy: an integration that posts JSON for people. In a copy, change what stands
// behind each line "Change:". For a service that programs read, derive from HttpIntegration and
// override `render` in place of `body`, as webhook.cc does.
//
// Change: this head. It says what is sent, when it is tried again, and what the far side needs.
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

// Change: how the service is kept from reading names of jobs and tensors as markup.
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

// Change: the name of the struct.
struct Mattermost final : ChatIntegration {
  // Change: one field per key of this integration. url, bearer_token, headers, proxy and tls are there
  // already.
  std::string channel;
  std::string username;

  // Change: the service's markup (slack.cc spells one out), its limits, and what `url` means.
  Mattermost()
      : ChatIntegration(markdown(mattermost_text),
                        // A post has at most 16383 characters.
                        {.title = 500, .text = 1500, .value = 400, .fields = 10, .body = 16'000}) {
    url_means_ = "the incoming webhook, https://chat.example.com/hooks/…";
  }

  // Change: name, field and help of each key. Parsing, the page and the schema come from here.
  void keys(config::Reader& in) override {
    in.optional("channel", channel, "another channel than the webhook's, by its name in URLs");
    in.optional("username", username, "name of the sender, if the server allows it");
  }

  // Change: the JSON, the same in every attempt. It is stored: a credential belongs into `complete`,
  // as ntfy.cc shows. Where an answer means something else than usual, override `classify`.
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

// Change: the name, and what it does in one sentence.
ActionDescriptor mattermost() {
  return chat_descriptor("mattermost", "Posts to a Mattermost channel.", read_http<Mattermost>);
}

}  // namespace tocsin::actions
