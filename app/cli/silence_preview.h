// Which issues a silence would have muted: those that fire now, and those of the last day.
#pragma once

#include <string>
#include <vector>

#include "app/view/topic_view.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::app {

struct SilencePreview {
  std::vector<const TopicView::SeenIssue*> firing;  // by issue key
  std::vector<const TopicView::SeenIssue*> ended;   // within kPreviewed, by issue key
};
inline constexpr core::Duration kPreviewed = std::chrono::hours(24);

/// `view` outlives it.
SilencePreview preview(const TopicView& view, const routing::SilenceScope& scope,
                       core::WallTime now);
/// "matching open issues: 2; ended in the last 24 h: 1", and the open ones as a table.
std::string preview_text(const SilencePreview& preview, const TopicView& view, core::WallTime now,
                         bool ended_too);

/// Labels, rules and jobs that the matchers name and nobody has: most likely misspelt. One sentence each.
std::vector<std::string> unknown_names(const routing::SilenceScope& scope, const TopicView& view);

}  // namespace tocsin::app
