// What `issues show` prints: what was found, how it ended, and what Tocsin did about the run.
#pragma once

#include <string>

#include "app/view/held_back.h"
#include "app/view/topic_view.h"
#include "core/time.h"

namespace tocsin::app {

/// Everything that a person asks of one episode.
std::string issue_text(const TopicView::SeenIssue& seen, const TopicView& view, core::WallTime now,
                       const RoutingSight& sight = {});
/// The same for programs: the issue's JSON, what holds it back, `outcome` and `stop` of its attempt where
/// there are, and its `groups` where the router's state was read.
std::string episode_json(const TopicView::SeenIssue& seen, const TopicView& view,
                         core::WallTime now, const RoutingSight& sight = {});

}  // namespace tocsin::app
