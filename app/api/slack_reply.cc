#include "app/api/slack_reply.h"

#include <utility>

#include "actions/actions.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::size_t kMostBlocks = 50;      // of Slack's messages
constexpr std::size_t kMostLinesAdded = 10;  // elements of a context block
constexpr std::size_t kMostOfAReply = 2900;  // a text object takes 3000
constexpr const char* kOutcomeBlock = "tocsin_outcome";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : core::visible(text, kMostOfAReply / 5)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string purpose_of(const std::string& value) { return value.substr(0, value.find('-')); }

bool is_about_a_stop(const std::string& purpose) {
  return purpose == "approve" || purpose == "cancel";
}

// The buttons that are left; null: none is.
Value remaining_buttons(const Value& block, const std::string& pressed) {
  const auto* elements = core::as<ValueList>(core::find(block, "elements"));
  ValueList left;
  for (const Value& element : elements == nullptr ? ValueList() : *elements) {
    const std::string purpose = purpose_of(core::text_at(element, "value"));
    const bool over = purpose == pressed || (is_about_a_stop(purpose) && is_about_a_stop(pressed));
    if (!over) left.push_back(element);
  }
  if (left.empty()) return {};
  return ValueMap{
      {"type", "actions"}, {"block_id", core::text_at(block, "block_id")}, {"elements", left}};
}

Value mrkdwn_of(const std::string& text) {
  return ValueMap{{"type", "mrkdwn"}, {"text", escaped(text)}};
}

}  // namespace

std::string slack_whisper(const std::string& text) {
  return core::to_json(ValueMap{
      {"response_type", "ephemeral"}, {"replace_original", false}, {"text", escaped(text)}});
}

std::string slack_changed_message(const SlackClick& click, const std::string& text) {
  const auto* blocks = core::as<ValueList>(core::find(click.message, "blocks"));
  if (blocks == nullptr || blocks->empty() || blocks->size() > kMostBlocks) return {};
  const std::string pressed = purpose_of(click.value);
  ValueList lines;  // what was done here before, and now
  ValueList out;
  Value buttons;
  for (const Value& block : *blocks) {
    const std::string id = core::text_at(block, "block_id");
    if (id == actions::kSlackButtons) {
      buttons = remaining_buttons(block, pressed);
    } else if (id == kOutcomeBlock) {
      const auto* before = core::as<ValueList>(core::find(block, "elements"));
      if (before != nullptr && before->size() < kMostLinesAdded) lines = *before;
    } else {
      out.push_back(block);
    }
  }
  lines.push_back(mrkdwn_of(text));
  if (out.size() + 2 > kMostBlocks) return {};
  out.emplace_back(
      ValueMap{{"type", "context"}, {"block_id", kOutcomeBlock}, {"elements", std::move(lines)}});
  if (!buttons.is_null()) out.push_back(std::move(buttons));
  return core::to_json(ValueMap{{"replace_original", true},
                                {"text", core::text_at(click.message, "text")},
                                {"blocks", std::move(out)}});
}

}  // namespace tocsin::app
