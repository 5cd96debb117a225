// Posts each notification to a Slack channel, by an incoming webhook or as a bot.
//
// Sends       POST to the webhook's URL, or to chat.postMessage and chat.update with a bot's token: Block
//             Kit sections, and the title as the text of the notification.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       a Slack app with an incoming webhook, or with a bot that is in the channel. A webhook cannot
//             change its messages; a bot can, and answers in threads (integration/slack_bot.h).
// Source      docs.slack.dev: sending messages using incoming webhooks; Block Kit reference;
//             chat.postMessage, chat.update.

#include "actions/integration/chat_action.h"
#include "actions/integration/slack_bot.h"
#include "actions/integration/slack_buttons.h"

namespace tocsin::actions {
namespace {

struct Slack final : ChatIntegration {
  SlackBot bot;

  Slack()
      : ChatIntegration({.bold = "*",
                         .bold_end = "",
                         .code = "```",
                         .code_end = "```",
                         .plain = with_entities,
                         .link =
                             [](const std::string& name, const std::string& url) {
                               return "<" + with_entities(url) + "|" + name + ">";
                             }},
                        {.title = 500,
                         .text = 900,
                         .value = 350,
                         .console = 2500,
                         .fields = 10,
                         .body = 16'000}) {
    http_.url = config::Secret::from_value(SlackBot::kApi);  // a bot's; check() wants a webhook's
    url_means_ =
        "the incoming webhook, https://hooks.slack.com/services/…; with `token` not needed";
  }

  void keys(config::Reader& in) override { bot.keys(in); }

  void check(config::Reader& in) const override {
    bot.check(in);
    if (in.describing() || bot.token.set() || in.has("url") || in.has("url_file")) return;
    in.error("url", "missing key \"url\" or \"url_file\" (a webhook), or \"token\" (a bot)");
  }

  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    core::ValueList blocks;
    const auto section = [&](const std::string& text) {
      if (text.empty()) return;
      blocks.emplace_back(core::ValueMap{{"type", "section"}, {"text", mrkdwn(text)}});
    };
    section(bold(message.title, markup_));
    section(finding(message));
    section(console_text(message, markup_));
    core::ValueList fields;
    for (const auto& [name, value] : message.fields) {
      fields.push_back(mrkdwn(bold(name, markup_) + "\n" + value));
    }
    if (!fields.empty()) {
      blocks.emplace_back(core::ValueMap{{"type", "section"}, {"fields", std::move(fields)}});
    }
    section(advice_text(message, markup_));
    section(followed_text(message, markup_));
    section(command_text(message, markup_));
    core::ValueList small;
    for (const std::string& text : {link_line(message, markup_), message.footer}) {
      if (!text.empty()) small.push_back(mrkdwn(text));
    }
    if (!small.empty()) {
      blocks.emplace_back(core::ValueMap{{"type", "context"}, {"elements", std::move(small)}});
    }
    if (!message.buttons.empty()) blocks.push_back(slack_buttons(message.buttons));
    return core::ValueMap{
        {"text", message.title}, {"blocks", std::move(blocks)}, {"unfurl_links", false}};
  }

  [[nodiscard]] core::AttemptOutcome classify(const HttpResult& result,
                                              core::WallTime now) const override {
    if (bot.token.set()) return SlackBot::classify(result, now);
    core::AttemptOutcome out = actions::classify(result, now);
    if (out.outcome == core::OutcomeClass::delivered && result.response.body != "ok") {
      out.outcome = core::OutcomeClass::configuration;  // somebody else answered: a page of a proxy
      out.code = "not_slack";
      out.detail = "expected the answer ok, found " + result.response.body;
    }
    return out;
  }

  [[nodiscard]] bool takes_buttons() const override { return bot.token.set(); }

  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    if (!bot.token.set()) return core::ok();
    return bot.complete(request, attempt, message_to_change(attempt.notification));
  }

  [[nodiscard]] std::string message_id(const HttpResponse& response) const override {
    return bot.token.set() ? SlackBot::message_id(response) : std::string();
  }

  [[nodiscard]] bool lost(const HttpResponse& response) const override {
    return bot.token.set() && SlackBot::lost(response);
  }

 private:
  static core::Value mrkdwn(const std::string& text) {
    return core::ValueMap{{"type", "mrkdwn"}, {"text", text}};
  }
};

}  // namespace

ActionDescriptor slack() {
  return chat_descriptor("slack", "Posts to a Slack channel.", read_http<Slack>);
}

}  // namespace tocsin::actions
