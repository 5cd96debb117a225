#include "actions/integration/chat_action.h"

#include <algorithm>

#include "actions/message/tone.h"

namespace tocsin::actions {

namespace {
constexpr std::string_view kMessageId = "message_id";
}  // namespace

Rendered ChatIntegration::render(const core::Notification& notification,
                                 const Sender& sender) const {
  ChatMessage message = chat_message(notification, sender, markup_, limits_);
  std::string text = core::to_json(body(message));
  while (text.size() > limits_.body && shorten(message)) text = core::to_json(body(message));
  return {"application/json; charset=utf-8", std::move(text), {}};
}

Handles ChatIntegration::handles(const HttpResponse& response,
                                 const core::Notification& notification) const {
  // A digest tells of several incidents: none of them may change it.
  if (notification.reason == "digest") return {};
  std::string id = message_id(response);
  if (id.empty()) return {};
  return {{std::string(kMessageId), std::move(id)}};
}

std::string ChatIntegration::message_to_change(const core::Notification& notification) {
  const bool over = notification.kind == core::NotificationKind::close ||
                    (notification.kind == core::NotificationKind::update &&
                     notification.reason == "some_resolved");
  if (!over) return {};
  const auto found = std::find_if(notification.handles.begin(), notification.handles.end(),
                                  [](const auto& handle) { return handle.first == kMessageId; });
  return found == notification.handles.end() ? std::string() : found->second;
}

core::Value attachment(const ChatMessage& message, const ChatMarkup& markup) {
  core::ValueList fields;
  for (const auto& [name, value] : message.fields) {
    fields.emplace_back(core::ValueMap{{"short", true}, {"title", name}, {"value", value}});
  }
  return core::ValueMap{
      {"fallback", message.title},
      {"color", std::string(tone_named(message.tone).colour)},
      {"text", paragraphs({finding(message), rest(message, markup), link_line(message, markup)})},
      {"fields", std::move(fields)},
      {"footer", message.footer}};
}

ActionDescriptor chat_descriptor(std::string_view name, std::string_view summary,
                                 std::shared_ptr<const ActionConfig> (*read)(config::Reader& in)) {
  CommonConfig defaults;
  defaults.rate_limit = {60, std::chrono::minutes(1), 5};
  return {name, summary, {.human = true, .stateful = false}, read, defaults};
}

std::string below_path(const std::string& url, std::string_view more) {
  const std::size_t end = std::min(url.find('?'), url.size());
  std::string out = url.substr(0, end);
  while (out.ends_with('/')) out.pop_back();
  return out + std::string(more) + url.substr(end);
}

std::string with_parameter(const std::string& url, std::string_view parameter) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + std::string(parameter);
}

}  // namespace tocsin::actions
