// Verdicts and notes beside the episodes that they are about, read once.
#pragma once

#include <chrono>
#include <string>

#include "app/recordings/moment.h"
#include "app/view/issue_episodes.h"
#include "app/view/issue_feedback.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct SaidOfIssues {
  IssueEpisodes episodes;
  FeedbackView feedback;
};

/// All that was there at the moment. deadline_exceeded: the topics did not come to an end.
core::Status read_said(ingest::Transport& transport, SaidOfIssues& out,
                       std::chrono::milliseconds patience, const Moment& moment = {});
/// Lines about the issue that goes by `id`; empty: nobody has said anything, or several go by it.
std::string said_text(const SaidOfIssues& said, const std::string& id, core::WallTime now);
/// A JSON object with the members `verdict` and `notes` behind its own.
std::string with_said(const SaidOfIssues& said, const std::string& id, const std::string& json);

}  // namespace tocsin::app
