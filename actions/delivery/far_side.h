// What the far side of one integration knows, as its answers say. Internal to actions.
#pragma once

#include <map>
#include <string>

#include "actions/contract/message_fault.h"
#include "actions/delivery/remembered.h"
#include "core/notification.h"

namespace tocsin::actions {

/// Incidents are by group key. Pure; one per lane.
class FarSide {
 public:
  /// A message of the group arrived; `handles`: as the answer or the record has them.
  void arrived(const std::string& group, core::NotificationKind kind, const HandleList& handles) {
    if (kind == core::NotificationKind::close) {
      incidents_.erase(group);
    } else {
      incidents_.try_emplace(group, far_side_names(handles));
    }
  }
  /// What the far side calls the group's incident; null: it has none.
  [[nodiscard]] const HandleList* incident(const std::string& group) const {
    const auto found = incidents_.find(group);
    return found == incidents_.end() ? nullptr : &found->second;
  }

  /// The message that would have opened the incident is lost.
  void never_opened(const std::string& group) { unopened_.add(group); }
  [[nodiscard]] bool unopened(const std::string& group) const { return unopened_.has(group); }
  /// Something else was heard of the incident, or the next message opens it. Was it unopened?
  bool forget_unopened(const std::string& group) { return unopened_.erase(group); }

  /// The far side answered the notification that it is gone. One message may be answered so for
  /// itself: true if another one was before it, and none arrived in between.
  bool gone(const std::string& notification) {
    const bool again = !said_gone_.empty() && said_gone_ != notification;
    said_gone_ = notification;
    return again;
  }
  void not_gone() { said_gone_.clear(); }

 private:
  std::map<std::string, HandleList> incidents_;
  Remembered unopened_;
  std::string said_gone_;  // the last notification that was answered so
};

}  // namespace tocsin::actions
