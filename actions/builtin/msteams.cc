// Posts each notification to a Microsoft Teams channel or chat, by a webhook of Workflows.
//
// Sends       POST: one Adaptive Card 1.4 of rich text, which Teams shows without markup.
// Retries     by the table in http_outcome.cc; Retry-After obeyed.
// Idempotent  no: an answer that does not come may mean a message twice.
// Needs       a workflow "Post to a channel when a webhook request is received". 202 means that it
//             took the request; it cannot change a message.
// Source      learn.microsoft.com: create incoming webhooks with Workflows; Adaptive Cards schema 1.4.

#include "actions/integration/chat_action.h"

namespace tocsin::actions {
namespace {

core::ValueMap run_of_text(const std::string& text, std::string_view key = "",
                           std::string_view value = "") {
  core::ValueMap out{{"type", "TextRun"}, {"text", text}};
  if (!key.empty()) out.emplace_back(std::string(key), std::string(value));
  return out;
}

core::Value rich(core::ValueList runs) {
  return core::ValueMap{{"type", "RichTextBlock"}, {"inlines", std::move(runs)}};
}

struct MsTeams final : ChatIntegration {
  MsTeams()
      : ChatIntegration({.bold = "",
                         .bold_end = "",
                         .code = "",
                         .code_end = "",
                         .plain = [](std::string_view text) { return std::string(text); },
                         .link = nullptr},
                        // 28 KB, counted in UTF-16: twice the bytes of ASCII.
                        {.title = 240, .text = 1500, .value = 400, .fields = 10, .body = 14'000}) {
    url_means_ = "the workflow's webhook";
  }

  void keys(config::Reader& /*in*/) override {}

  void check(config::Reader& in) const override {
    const auto url = http_.url.reveal();
    if (in.has("url") && url && url->find(".webhook.office.com/") != std::string::npos) {
      in.error("url",
               "Office 365 connectors are retired; create a workflow with a webhook trigger");
    }
  }

  [[nodiscard]] core::Value body(const ChatMessage& message) const override {
    core::ValueMap title = run_of_text(message.title, "weight", "Bolder");
    title.emplace_back("size", "Medium");
    core::ValueList card{core::ValueMap{{"type", "Container"},
                                        {"style", std::string(style(message.tone))},
                                        {"bleed", true},
                                        {"items", core::ValueList{rich({std::move(title)})}}}};
    const auto line = [&](const std::string& text, std::string_view key = "",
                          std::string_view value = "") {
      if (!text.empty()) card.push_back(rich({run_of_text(text, key, value)}));
    };
    line(message.summary);
    line(message.description);
    if (!message.console.empty()) line(kConsoleHeading, "weight", "Bolder");
    for (const std::string& text : message.console) line(text, "fontType", "Monospace");
    for (const auto& [name, value] : message.fields) {
      card.push_back(rich({run_of_text(name + ": ", "weight", "Bolder"), run_of_text(value)}));
    }
    if (!message.advice.empty()) line("What to do", "weight", "Bolder");
    for (const std::string& text : message.advice) line(text);
    line(message.followed, "weight", "Bolder");
    for (const std::string& text : message.followers) line("• " + text);
    line(message.hidden);
    line(message.command, "fontType", "Monospace");
    line(message.footer, "size", "Small");
    core::ValueList buttons;
    for (const auto& [name, url] : message.links) {
      buttons.emplace_back(
          core::ValueMap{{"type", "Action.OpenUrl"}, {"title", name}, {"url", url}});
    }
    core::ValueMap content{{"$schema", "http://adaptivecards.io/schemas/adaptive-card.json"},
                           {"type", "AdaptiveCard"},
                           {"version", "1.4"},
                           {"fallbackText", message.title},
                           {"msteams", core::ValueMap{{"width", "Full"}}},
                           {"body", std::move(card)}};
    if (!buttons.empty()) content.emplace_back("actions", std::move(buttons));
    return core::ValueMap{
        {"type", "message"},
        {"attachments",
         core::ValueList{core::ValueMap{{"contentType", "application/vnd.microsoft.card.adaptive"},
                                        {"contentUrl", core::Value()},
                                        {"content", std::move(content)}}}}};
  }

 private:
  static std::string_view style(std::string_view tone) {
    if (tone == "resolved") return "good";
    if (tone == "warning") return "warning";
    return tone == "info" ? "accent" : "attention";
  }
};

}  // namespace

ActionDescriptor msteams() {
  return chat_descriptor("msteams", "Posts to a Microsoft Teams channel.", read_http<MsTeams>);
}

}  // namespace tocsin::actions
