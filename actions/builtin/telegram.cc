// Sends each notification to a Telegram chat, by a bot, and changes the message when the incident is
// over.
//
// Sends       POST /bot<token>/sendMessage, or editMessageText: HTML, no previews of links.
// Retries     by the table in http_outcome.cc; the answer's retry_after obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       a bot's token, and the bot in the chat.
// Source      core.telegram.org/bots/api: making requests, sendMessage, editMessageText.

#include <optional>

#include "actions/integration/chat_action.h"

namespace tocsin::actions {
namespace {

bool names(const std::string& text, std::initializer_list<std::string_view> any) {
  for (const std::string_view one : any) {
    if (text.find(one) != std::string::npos) return true;
  }
  return false;
}

struct Telegram final : ChatIntegration {
  config::Secret token;
  std::string chat_id;
  std::int64_t thread = 0;

  Telegram()
      : ChatIntegration({.bold = "<b>",
                         .bold_end = "</b>",
                         .code = "<pre>",
                         .code_end = "</pre>",
                         .plain = with_entities,
                         .link =
                             [](const std::string& name, const std::string& url) {
                               return "<a href=\"" + with_entities(url) + "\">" + name + "</a>";
                             }},
                        // A text has at most 4096 characters.
                        {.title = 500, .text = 700, .value = 300, .fields = 10, .body = 4'096}) {
    http_.url = config::Secret::from_value("https://api.telegram.org");
    url_means_ = "another Bot API server; default https://api.telegram.org";
  }

  void keys(config::Reader& in) override {
    in.secret("bot_token", token, "the bot's token, as @BotFather gave it", true);
    in.required("chat_id", chat_id, "number of the chat, or @name of a public channel");
    in.optional("message_thread_id", thread, config::at_least<std::int64_t>(0),
                "topic of a forum; 0: none");
  }

  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    core::ValueMap out{{"chat_id", chat_id},
                       {"text", paragraphs({bold(message.title, markup_), finding(message),
                                            field_lines(message, markup_), rest(message, markup_),
                                            link_line(message, markup_), message.footer})},
                       {"parse_mode", "HTML"},
                       {"link_preview_options", core::ValueMap{{"is_disabled", true}}}};
    if (thread > 0) out.emplace_back("message_thread_id", thread);
    return out;
  }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const auto opened = attempt.opened.reveal(token, "bot_token");
    if (!opened) return opened.error();
    const std::string known = message_to_change(attempt.notification);
    request.url = below_path(
        request.url, "/bot" + *opened + (known.empty() ? "/sendMessage" : "/editMessageText"));
    if (!known.empty()) request.body.insert(1, "\"message_id\":" + known + ",");
    return core::ok();
  }

  [[nodiscard]] core::AttemptOutcome classify(const HttpResult& result,
                                              core::WallTime now) const override {
    core::AttemptOutcome out = actions::classify(result, now);
    if (result.failure != HttpFailure::none) return out;
    const core::Value answer = json_answer(result.response);
    const std::string why = core::text_at(answer, "description");
    if (out.outcome == core::OutcomeClass::delivered) {
      if (core::find(answer, "ok") == nullptr) {
        out.outcome = core::OutcomeClass::configuration;  // somebody else answered
        out.code = "not_telegram";
      }
    } else if (names(why, {"message is not modified"})) {
      out.outcome = core::OutcomeClass::delivered;
    } else if (result.response.status == 400 &&
               names(why,
                     {"chat not found", "supergroup", "thread not found", "TOPIC", "rights"})) {
      out.outcome = core::OutcomeClass::configuration;
    }
    if (const core::Value* parameters = core::find(answer, "parameters")) {
      const auto* seconds = core::as<std::int64_t>(core::find(*parameters, "retry_after"));
      if (seconds != nullptr && *seconds > 0) {
        out.retry_after = std::min<core::Duration>(
            std::chrono::seconds(std::min<std::int64_t>(*seconds, 86'400)), kLongestRetryAfter);
      }
    }
    return out;
  }

  [[nodiscard]] std::string message_id(const HttpResponse& response) const override {
    const core::Value answer = json_answer(response);
    const core::Value* message = core::find(answer, "result");
    const auto* id =
        message == nullptr ? nullptr : core::as<std::int64_t>(core::find(*message, "message_id"));
    return id == nullptr ? std::string() : std::to_string(*id);
  }

  [[nodiscard]] bool lost(const HttpResponse& response) const override {
    return response.status == 400 &&
           names(core::text_at(json_answer(response), "description"),
                 {"message to edit not found", "message can't be edited"});
  }
};

}  // namespace

ActionDescriptor telegram() {
  return chat_descriptor("telegram", "Sends to a Telegram chat.", read_http<Telegram>);
}

}  // namespace tocsin::actions
