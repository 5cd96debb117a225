#include "app/view/delivery_history.h"

#include <algorithm>
#include <utility>

#include "actions/actions.h"
#include "app/view/view_words.h"
#include "core/fields/outbox.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostOfAReason = 200;  // bytes

std::string first_issue(core::Notification notification) {
  if (!core::unpack(notification) || notification.issues.empty()) return {};
  return issue_headline(notification.issues.front().issue);
}

core::Delivery head_of(const core::Notification& notification) {
  core::Delivery out;
  out.notification_id = notification.notification_id;
  out.integration = notification.integration;
  out.type = notification.type;
  out.receiver = notification.receiver;
  out.route_id = notification.route_id;
  out.group_key = notification.group_key;
  out.reason = notification.reason;
  out.kind = notification.kind;
  out.config_version = notification.config_version;
  out.issues = core::listing_of(notification).issues;
  return out;
}

std::string milliseconds(core::Duration latency) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(latency).count()) +
         " ms";
}

std::string delivery_step_text(const DeliveryStep& step) {
  const core::Delivery& delivery = step.delivery;
  const bool final = delivery.state != core::DeliveryState::pending;
  std::string out = "  " + core::to_rfc3339(step.at) + "  ";
  if (delivery.attempt > 0) {
    out += "attempt " + std::to_string(delivery.attempt) + ": " +
           std::string(to_string(delivery.outcome));
    if (!delivery.code.empty()) out += ", " + core::visible(delivery.code, 60);
    out += ", " + milliseconds(delivery.latency);
    if (final && to_string(delivery.state) != to_string(delivery.outcome)) {
      out += "; " + std::string(to_string(delivery.state));
    }
  } else {
    out += std::string(to_string(delivery.state));
    if (!delivery.code.empty() && delivery.code != to_string(delivery.state)) {
      out += ", " + core::visible(delivery.code, 60);
    }
  }
  const std::string_view id = delivery.notification_id;
  if (const std::size_t slash = id.find('/'); slash != id.npos) {
    out += ", to " + core::visible(id.substr(slash + 1), 100) + " alone";
  }
  if (const auto replay = actions::replay_of(delivery); !replay.empty()) {
    out += ", replay " + core::visible(replay, 60);
  }
  if (!delivery.detail.empty()) out += ": " + core::visible(delivery.detail, kMostOfAReason);
  if (delivery.next_attempt_at && !final) {
    out += "; next attempt " + core::to_rfc3339(*delivery.next_attempt_at);
  }
  return out + "\n";
}

std::string message_text(const ToldMessage& message) {
  const core::Delivery& head = message.head;
  std::string out = message.decided == core::WallTime{} ? std::string("(not in the outbox)")
                                                        : core::to_rfc3339(message.decided);
  out += "  " + std::string(to_string(message.state())) + "  " +
         core::visible(head.integration, 100) + "  " + std::string(to_string(head.kind)) + ", " +
         core::visible(head.reason, 40) + "\n";
  if (!message.headline.empty()) out += "  " + message.headline + "\n";
  out += "  " + core::visible(head.notification_id, 100) + "  group " +
         core::visible(head.group_key, kMostOfAReason) + "  configuration " +
         core::visible(head.config_version, 20) + "\n";
  for (const DeliveryStep& step : message.steps) out += delivery_step_text(step);
  if (message.steps.empty()) out += "  no attempt yet\n";
  return out;
}

core::Value step_value(const DeliveryStep& step) {
  const core::Delivery& delivery = step.delivery;
  core::ValueMap out{
      {"at", core::to_rfc3339(step.at)},
      {"attempt", std::int64_t{delivery.attempt}},
      {"state", std::string(to_string(delivery.state))},
      {"class", delivery.attempt > 0 ? core::Value(std::string(to_string(delivery.outcome)))
                                     : core::Value()},
      {"code", delivery.code},
      {"detail", delivery.detail},
      {"latency_ms", std::chrono::duration<double, std::milli>(delivery.latency).count()}};
  if (delivery.next_attempt_at) {
    out.emplace_back("next_attempt_at", core::to_rfc3339(*delivery.next_attempt_at));
  }
  core::ValueMap handles;
  for (const auto& [name, value] : delivery.handles) handles.emplace_back(name, value);
  if (!handles.empty()) out.emplace_back("handles", std::move(handles));
  const std::string_view id = delivery.notification_id;
  if (const std::size_t slash = id.find('/'); slash != id.npos) {
    out.emplace_back("recipient", std::string(id.substr(slash + 1)));
  }
  return out;
}

}  // namespace

core::DeliveryState ToldMessage::state() const {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->delivery.notification_id == head.notification_id) return step->delivery.state;
  }
  return core::DeliveryState::pending;
}

bool DeliveryHistory::wanted(const core::Delivery& head) const {
  if (!filter_.integration.empty() && filter_.integration != head.integration &&
      filter_.integration != head.receiver) {
    return false;
  }
  return !filter_.tells_of || std::any_of(head.issues.begin(), head.issues.end(), filter_.tells_of);
}

void DeliveryHistory::decided(const core::RecordView& record) {
  auto notification = ingest::open_notification(record);
  if (!notification || record.header(actions::kReplayHeader)) return;
  core::Delivery head = head_of(*notification);
  if (!wanted(head)) return;
  ToldMessage& message = messages_[head.notification_id];
  message.head = std::move(head);
  message.decided = notification->decided_at;
  message.headline = first_issue(std::move(*notification));
}

void DeliveryHistory::apply(const core::RecordView& record) {
  if (record.tombstone) return;
  if (record.topic == core::topic::kRouterOutbox) return decided(record);
  if (record.topic != core::topic::kRouterDeliveries) return;
  auto delivery = ingest::decode_delivery(record);
  if (!delivery || !wanted(*delivery)) return;
  const std::string id(actions::notification_of(*delivery));
  ToldMessage& message = messages_[id];
  if (message.head.notification_id.empty()) {
    message.head = *delivery;
    message.head.notification_id = id;
  }
  if (message.decided == core::WallTime{}) message.decided = delivery->stages.decided;
  message.steps.push_back({core::wall_time(record.timestamp), std::move(*delivery)});
}

std::vector<const ToldMessage*> DeliveryHistory::messages() const {
  std::vector<const ToldMessage*> out;
  for (const auto& [id, message] : messages_) {
    if (filter_.state && message.state() != *filter_.state) continue;
    const core::WallTime newest = message.steps.empty()
                                      ? message.decided
                                      : std::max(message.decided, message.steps.back().at);
    if (filter_.since && newest < *filter_.since) continue;
    out.push_back(&message);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return a->decided < b->decided; });
  return out;
}

std::string history_text(const std::vector<const ToldMessage*>& messages) {
  std::string out;
  for (const ToldMessage* message : messages) {
    out += (out.empty() ? "" : "\n") + message_text(*message);
  }
  return out;
}

core::Value history_value(const std::vector<const ToldMessage*>& messages) {
  core::ValueList out;
  for (const ToldMessage* message : messages) {
    const core::Delivery& head = message->head;
    core::ValueList issues;
    for (const core::IssueRef& issue : head.issues) {
      issues.push_back(core::ValueMap{{"issue_key", issue.issue_key},
                                      {"episode", issue.episode},
                                      {"event_id", issue.event_id}});
    }
    core::ValueList steps;
    for (const DeliveryStep& step : message->steps) steps.push_back(step_value(step));
    out.push_back(
        core::ValueMap{{"notification_id", head.notification_id},
                       {"integration", head.integration},
                       {"type", head.type},
                       {"receiver", head.receiver},
                       {"route_id", head.route_id},
                       {"group_key", head.group_key},
                       {"reason", head.reason},
                       {"kind", std::string(to_string(head.kind))},
                       {"config_version", head.config_version},
                       {"decided_at", message->decided == core::WallTime{}
                                          ? core::Value()
                                          : core::Value(core::to_rfc3339(message->decided))},
                       {"headline", message->headline},
                       {"state", std::string(to_string(message->state()))},
                       {"issues", std::move(issues)},
                       {"attempts", std::move(steps)}});
  }
  return out;
}

}  // namespace tocsin::app
