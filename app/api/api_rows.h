// Rows of the lists of /api/v1, and events of its stream: the same words in both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/api/histories.h"
#include "app/view/held_back.h"
#include "app/view/topic_view.h"
#include "core/time.h"
#include "core/value.h"
#include "routing/routing.h"

namespace tocsin::app {

/// How an issue stands at a moment.
struct IssueState {
  core::IssueStatus status = core::IssueStatus::firing;
  core::Resolution resolution = core::Resolution::none;
};
/// Its producer's word, or what has outlived it: its attempt, or `resolve_timeout` after its last
/// report if it does not end by itself.
IssueState state_of(const TopicView& view, const core::Issue& issue, core::Duration resolve_timeout,
                    core::WallTime now);

struct IssueRow {
  const std::string& key;
  const TopicView::SeenIssue& seen;
  IssueState state;
  std::optional<std::uint64_t> episode;  // nullopt: nobody was told of it
  HeldBack held;
};
core::Value number_or_null(const std::optional<double>& number);
core::Value issue_value(const IssueRow& row);
core::Value delivery_value(const core::Delivery& delivery, core::WallTime at,
                           const std::string& id);
core::Value command_value(const CommandHistory::Entry& entry);
core::Value ack_value(const core::Ack& ack);
/// As `tocsin silence list --json`, with its state.
core::Value silence_row(const routing::Silence& silence, core::WallTime now);

}  // namespace tocsin::app
