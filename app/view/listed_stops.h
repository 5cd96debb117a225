// Stops that were asked for: requests that wait for a person's word, and commands.
#pragma once

#include <string>
#include <vector>

#include "app/view/topic_view.h"
#include "core/result.h"
#include "core/stop_request.h"
#include "core/value.h"

namespace tocsin::app {

/// One stop: the request that waited, the command that was written, or both. Borrowed from the view.
struct ListedStop {
  std::string id;
  const core::StopRequest* request = nullptr;
  const TopicView::SeenStop* stop = nullptr;

  [[nodiscard]] bool waits() const;
  /// "awaiting_approval", "awaiting_quorum", or how far it has come.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] bool open() const;
  [[nodiscard]] core::RunUid run() const;
  [[nodiscard]] std::uint32_t attempt() const;
  [[nodiscard]] std::string because() const;
  /// Who has to act, or who has.
  [[nodiscard]] std::string by() const;
};

std::vector<ListedStop> stops_of(const TopicView& view);
std::string job_of(const ListedStop& stop, const TopicView& view);
/// For programs: command_id, state, run, attempt, job, reason, and as far as there are such `approval`,
/// requested_by, requested_at, revision, args, detail.
core::Value stop_value(const ListedStop& stop, const TopicView& view);
/// The one whose id is, or begins with, `id`. not_found, failed_precondition: none, or several.
core::Result<ListedStop> stop_by_id(const TopicView& view, const std::string& id);

}  // namespace tocsin::app
