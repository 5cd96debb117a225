// Issues that only messages name: those that the router reports of itself stand in no topic of issues.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "app/recordings/moment.h"
#include "app/view/topic_view.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Episodes of messages in the outbox whose event, or the event that ended them, has an id that begins
/// with `event_id`; the newest word about each.
core::Result<std::vector<TopicView::SeenIssue>> told_issues(ingest::Transport& transport,
                                                            const std::string& event_id,
                                                            std::chrono::milliseconds patience,
                                                            const Moment& moment);

}  // namespace tocsin::app
