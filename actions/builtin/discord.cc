// Posts each notification to a Discord channel, by a webhook, and changes the message when the incident
// is over.
//
// Sends       POST ?wait=true, or PATCH …/messages/<id>: the title as content, the rest as an embed;
//             mentions nobody (allowed_mentions).
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       a webhook of the channel.
// Source      discord.com/developers: webhook resource, message resource (embed limits).

#include <algorithm>
#include <cctype>
#include <charconv>

#include "actions/integration/chat_action.h"
#include "actions/message/tone.h"

namespace tocsin::actions {
namespace {

struct Discord final : ChatIntegration {
  Discord()
      : ChatIntegration(
            markdown([](std::string_view text) { return backslashed(text, "\\`*_~|<>[]()#:@-"); }),
            // An embed's description has at most 4096 characters, hence the whole.
            {.title = 500, .text = 700, .value = 300, .fields = 9, .body = 4'200}) {
    url_means_ = "the webhook, https://discord.com/api/webhooks/…";
  }

  void keys(config::Reader& /*in*/) override {}

  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    core::ValueList fields;
    for (const auto& [name, value] : message.fields) {
      fields.emplace_back(core::ValueMap{{"name", name}, {"value", value}, {"inline", true}});
    }
    core::ValueMap embed{{"description", paragraphs({finding(message), rest(message, markup_),
                                                     link_line(message, markup_)})},
                         {"color", colour(message.tone)},
                         {"fields", std::move(fields)}};
    if (!message.footer.empty()) {
      embed.emplace_back("footer", core::ValueMap{{"text", message.footer}});
    }
    return core::ValueMap{{"content", bold(message.title, markup_)},
                          {"embeds", core::ValueList{std::move(embed)}},
                          {"allowed_mentions", core::ValueMap{{"parse", core::ValueList{}}}}};
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const std::string known = message_to_change(attempt.notification);
    if (known.empty()) {
      request.url = with_parameter(request.url, "wait=true");
    } else {
      request.method = "PATCH";
      request.url = below_path(request.url, "/messages/" + known);
    }
    return core::ok();
  }

  [[nodiscard]] std::string message_id(const HttpResponse& response) const override {
    std::string id = core::text_at(json_answer(response), "id");
    const bool number =
        std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    return number ? id : std::string();
  }

  [[nodiscard]] bool lost(const HttpResponse& response) const override {
    constexpr std::int64_t kUnknownMessage = 10'008;
    const core::Value answer = json_answer(response);
    const auto* code = core::as<std::int64_t>(core::find(answer, "code"));
    return response.status == 404 && code != nullptr && *code == kUnknownMessage;
  }

 private:
  /// As a number.
  static std::int64_t colour(std::string_view tone) {
    const std::string_view hex = tone_named(tone).colour.substr(1);
    std::int64_t out = 0;
    std::from_chars(hex.data(), hex.data() + hex.size(), out, 16);
    return out;
  }
};

}  // namespace

ActionDescriptor discord() {
  return chat_descriptor("discord", "Posts to a Discord channel.", read_http<Discord>);
}

}  // namespace tocsin::actions
