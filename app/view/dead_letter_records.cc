#include "app/view/dead_letter_records.h"

#include "actions/actions.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

std::string header_name(std::string_view name) { return std::string(name); }

}  // namespace

core::OutRecord dead_letter_record(const core::Notification& notification,
                                   const core::Delivery& end, core::WallTime at) {
  core::OutRecord out = ingest::encode_notification(notification);
  out.topic = core::topic::kRouterDeadletter;
  out.timestamp = core::nanoseconds(at);
  out.headers = {{header_name(letter::kNotification), notification.notification_id},
                 {header_name(letter::kState), std::string(to_string(end.state))},
                 {header_name(letter::kClass), std::string(to_string(end.outcome))},
                 {header_name(letter::kCode), end.code},
                 {header_name(letter::kDetail), end.detail},
                 {header_name(letter::kAttempts), std::to_string(end.attempt)}};
  if (const auto replay = actions::replay_of(end); !replay.empty()) {
    out.headers.emplace_back(letter::kReplay, replay);
  }
  return out;
}

core::OutRecord letter_act_record(const std::string& notification_id,
                                  const std::string& integration, const LetterAct& act) {
  core::OutRecord out;
  out.topic = core::topic::kRouterDeadletter;
  out.key = integration;
  out.value = core::to_json(core::ValueMap{
      {"notification_id", notification_id}, {"act", act.act}, {"by", act.by}, {"note", act.note}});
  out.headers = {{header_name(letter::kNotification), notification_id},
                 {header_name(letter::kAct), act.act},
                 {header_name(letter::kBy), act.by},
                 {header_name(letter::kNote), act.note}};
  if (!act.replay.empty()) out.headers.emplace_back(letter::kReplay, act.replay);
  return out;
}

std::string replay_id(const std::string& notification_id, const std::string& by,
                      core::WallTime at) {
  return core::make_id("rpl_", {notification_id, by, std::to_string(core::nanoseconds(at))});
}

core::OutRecord replay_record(const core::Notification& notification, const std::string& replay) {
  core::OutRecord out = ingest::encode_notification(notification);
  out.headers.emplace_back(actions::kReplayHeader, replay);
  return out;
}

}  // namespace tocsin::app
