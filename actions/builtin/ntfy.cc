// Publishes each notification to a topic of ntfy, which shows it on telephones and desktops.
//
// Sends       POST to the server's root: JSON with title, message, priority and buttons.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       a topic on ntfy.sh or on a server of your own.
// Source      docs.ntfy.sh/publish: publish as JSON, action buttons, limitations.

#include <algorithm>

#include "actions/integration/chat_action.h"

namespace tocsin::actions {
namespace {

struct Ntfy final : ChatIntegration {
  config::Secret topic;

  Ntfy()
      : ChatIntegration({.bold = "",
                         .bold_end = "",
                         .code = "$ ",
                         .code_end = "",
                         .plain = [](std::string_view text) { return std::string(text); },
                         .link = nullptr},
                        // A longer message becomes an attachment.
                        {.title = 240, .text = 700, .value = 300, .fields = 8, .body = 4'096}) {
    http_.url = config::Secret::from_value("https://ntfy.sh");
    url_means_ = "the server; default https://ntfy.sh";
  }

  void keys(config::Reader& in) override {
    in.secret("topic", topic,
              "who knows it can read and write it, unless the server asks for a token", true);
  }

  void check(config::Reader& in) const override {
    const auto name = topic.reveal();
    if (name && (name->size() > 64 || !std::all_of(name->begin(), name->end(), is_topic))) {
      in.error("topic", "expected up to 64 letters, digits, - and _");
    }
  }

  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    constexpr std::size_t kMaxButtons = 3;
    core::ValueList buttons;
    for (const auto& [name, url] : message.links) {
      if (buttons.size() == kMaxButtons) break;
      buttons.emplace_back(core::ValueMap{{"action", "view"}, {"label", name}, {"url", url}});
    }
    core::ValueMap out{{"title", message.title},
                       {"message", paragraphs({finding(message), field_lines(message, markup_),
                                               rest(message, markup_)})},
                       {"priority", priority(message.tone)}};
    if (!buttons.empty()) {
      out.emplace_back("click", message.links.front().second);
      out.emplace_back("actions", std::move(buttons));
    }
    return out;
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const auto name = attempt.opened.reveal(topic, "topic");
    if (!name) return name.error();
    request.body.insert(1, "\"topic\":" + core::to_json(*name) + ",");
    return core::ok();
  }

 private:
  static bool is_topic(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }
  static int priority(std::string_view tone) {
    if (tone == "critical") return 5;
    if (tone == "error") return 4;
    return tone == "warning" ? 3 : 2;
  }
};

}  // namespace

ActionDescriptor ntfy() {
  return chat_descriptor("ntfy", "Notifies telephones by ntfy.", read_http<Ntfy>);
}

}  // namespace tocsin::actions
