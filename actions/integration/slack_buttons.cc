#include "actions/integration/slack_buttons.h"

#include <string>
#include <utility>

#include "actions/contract/answer_target.h"

namespace tocsin::actions {
namespace {

core::Value plain_text(const std::string& text) {
  return core::ValueMap{{"type", "plain_text"}, {"text", text}};
}

core::Value slack_button(const AnswerButton& button) {
  core::ValueMap out{{"type", "button"},
                     {"text", plain_text(button.text)},
                     {"action_id", std::string(kSlackButtons) + "_" +
                                       button.value.substr(0, button.value.find('-'))},
                     {"value", button.value}};
  if (button.first) out.emplace_back("style", "primary");
  if (button.severe) out.emplace_back("style", "danger");
  if (button.question.empty()) return out;
  core::ValueMap confirm{{"title", plain_text(button.text + "?")},
                         {"text", plain_text(button.question)},
                         {"confirm", plain_text(button.yes)},
                         {"deny", plain_text(button.no)}};
  if (button.severe) confirm.emplace_back("style", "danger");
  out.emplace_back("confirm", std::move(confirm));
  return out;
}

}  // namespace

core::Value slack_buttons(const std::vector<AnswerButton>& buttons) {
  core::ValueList elements;
  for (const AnswerButton& button : buttons) elements.push_back(slack_button(button));
  return core::ValueMap{{"type", "actions"},
                        {"block_id", std::string(kSlackButtons)},
                        {"elements", std::move(elements)}};
}

}  // namespace tocsin::actions
