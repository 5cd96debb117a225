// What `issues` and `tail` print.
#pragma once

#include <string>
#include <vector>

#include "app/view/held_back.h"
#include "app/view/topic_view.h"
#include "core/time.h"

namespace tocsin::app {

/// A table; each row begins with an id that `issues show` takes. Open ones say what holds them back.
std::string issues_text(const std::vector<const TopicView::SeenIssue*>& issues,
                        const TopicView& view, core::WallTime now, const RoutingSight& sight = {});
/// One line, as the log on a terminal has it.
std::string issue_line(const core::Issue& issue, bool colour);
std::string job_line(const core::JobEvent& event, bool colour);
/// A stop, as it was asked for; `job` may be empty.
std::string stop_line(const core::Command& command, const std::string& job, bool colour);
/// An answer to it.
std::string ack_line(const core::Ack& ack, bool colour);

}  // namespace tocsin::app
