// Verdicts and notes on issues are written and taken back here.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/issue_feedback.h"
#include "core/result.h"
#include "insights/store/feedback_reader.h"

namespace tocsin::app {

/// Each write returns once the store shows it. not_found: the store knows no such issue. unavailable:
/// there is no store.
class FeedbackDesk {
 public:
  /// `desk` outlives it. `store`: the file of the store of events.
  FeedbackDesk(ApiDesk& desk, std::string store) : desk_(desk), store_(std::move(store)) {}

  core::Result<core::IssueVerdict> judge(const ApiCall& call, std::string verdict,
                                         std::string note);
  /// not_found: nobody has said anything.
  core::Status take_back(const ApiCall& call);
  /// failed_precondition: the issue has as many as it may.
  core::Result<core::IssueNote> note(const ApiCall& call, std::string text);
  core::Result<std::vector<insights::RuleTally>> rules();
  [[nodiscard]] core::WallTime now() const { return desk_.clock.now(); }

 private:
  using Reader = std::unique_ptr<insights::FeedbackReader>;
  [[nodiscard]] core::Result<Reader> reader() const;
  /// The one that the path names.
  [[nodiscard]] core::Result<core::IssueEpisode> episode(const ApiCall& call) const;
  /// The verdict that stands there; null: there is none.
  core::Result<core::Value> standing_verdict(const core::IssueEpisode& of) const;
  core::Status write(const ApiCall& call, std::string what, core::Value before, core::Value after,
                     const core::IssueEpisode& of, core::OutRecord record);

  ApiDesk& desk_;
  std::string store_;
};

}  // namespace tocsin::app
