// What `status` prints.
#pragma once

#include <cstddef>
#include <string>

#include "app/view/held_back.h"
#include "app/view/topic_view.h"
#include "core/time.h"

namespace tocsin::app {

/// Lines of each part that a person reads without asking for more.
constexpr std::size_t kStatusLines = 40;

/// Runs, open issues, stops, and what is not well; several lines. Of each of these the `most` that
/// matter most (what goes on before what has ended, the worst and the newest first), and how many
/// more there are.
std::string status_text(const TopicView& view, const std::string& transport, core::WallTime now,
                        std::size_t most = kStatusLines, const RoutingSight& sight = {});
/// Whether the part of what is not well has a line.
bool is_unhealthy(const TopicView& view, core::WallTime now);
/// The same for programs, and all of it: {"transport", "runs", "issues", "stops", "summaries", "silences",
/// "acknowledgements", "unhealthy"}, and of a past moment "as_of". Issues say what holds them back.
std::string status_json(const TopicView& view, const std::string& transport, core::WallTime now,
                        const Moment& moment = {}, const RoutingSight& sight = {});

}  // namespace tocsin::app
