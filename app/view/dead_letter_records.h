// Records of `router-deadletter`: notifications that were given up, and what people did about them; and
// the record of `router-outbox` that sends one again.
#pragma once

#include <string>
#include <string_view>

#include "core/notification.h"
#include "core/record.h"
#include "core/time.h"

namespace tocsin::app {

/// Headers of these records.
namespace letter {
inline constexpr std::string_view kNotification = "notification-id";
inline constexpr std::string_view kState = "state";  // dead, expired
inline constexpr std::string_view kClass = "class";
inline constexpr std::string_view kCode = "code";
inline constexpr std::string_view kDetail = "detail";
inline constexpr std::string_view kAttempts = "attempts";
inline constexpr std::string_view kReplay = "replay";  // that died; of an act: that was asked for
inline constexpr std::string_view kAct = "act";        // replay, discard: then there is no message
inline constexpr std::string_view kBy = "by";
inline constexpr std::string_view kNote = "note";
}  // namespace letter

/// `end`: the record of its final state. The value is that of the outbox record: no credentials.
core::OutRecord dead_letter_record(const core::Notification& notification,
                                   const core::Delivery& end, core::WallTime at);

/// What a person did.
struct LetterAct {
  std::string act;     // replay, discard
  std::string by;      // user and host
  std::string note;    // why
  std::string replay;  // id of the replay; empty: discarded
};
core::OutRecord letter_act_record(const std::string& notification_id,
                                  const std::string& integration, const LetterAct& act);

/// "rpl_…", by what is sent again, who asked, and when.
std::string replay_id(const std::string& notification_id, const std::string& by, core::WallTime at);
/// Sends the notification again, under its id.
core::OutRecord replay_record(const core::Notification& notification, const std::string& replay);

}  // namespace tocsin::app
