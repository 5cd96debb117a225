// Posts each notification to a Mattermost channel, by an incoming webhook.
//
// This is the action to copy (CONTRIBUTING.md): change what stands behind each line "Change:", and this
// head. What programs read derives from HttpIntegration and has `render` in place of `body`: webhook.cc.
//
// Sends       POST: the title as text, the rest as an attachment with fields.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       an incoming webhook; a server in a private network needs allow_private. A webhook cannot
//             change its messages.
// Source      developers.mattermost.com: incoming webhooks, message attachments.

#include "actions/integration/chat_action.h"

namespace tocsin::actions {
namespace {

// Change: how names of jobs and tensors are kept from being read as markup. Slack's form of a mention,
// <!channel>, is translated before the backslash is looked at.
std::string mattermost_text(std::string_view text) { return unmentioned(text, "\\`*_~|[]>#!"); }

// Change: the name of the struct, and one field per key. url, bearer_token, headers and tls are there.
struct Mattermost final : ChatIntegration {
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

  // Change: the JSON. It is stored: a credential belongs into `complete`, as ntfy.cc shows. Where an
  // answer means something else than usual, override `classify`.
  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    core::ValueMap out{{"text", bold(message.title, markup_)},
                       {"attachments", core::ValueList{attachment(message, markup_)}}};
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
