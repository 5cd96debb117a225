// What a notification that was given up says when it is sent again.
#pragma once

#include <string>

#include "app/view/topic_view.h"
#include "core/notification.h"
#include "core/time.h"

namespace tocsin::app {

struct ReplayTerms {
  bool as_was = false;  // the message as it was decided
  bool force = false;   // although its issues are over
};

struct ReplayPlan {
  core::Notification notification;
  std::string refused;  // why it is not sent again; empty: it is
};

/// Its id, incident and kind stay. Its issues are as they stand now, and the message says that it is late;
/// a message about issues that are over is refused, and so is a close of an incident that fires again.
/// Commands (stop_training, profile_training) and deliveries of one recipient are never sent again.
ReplayPlan plan_replay(core::Notification notification, const TopicView& view,
                       const ReplayTerms& terms, core::WallTime now);

}  // namespace tocsin::app
