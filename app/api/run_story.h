// All that the store has of one run, told as the live lists tell it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/api/attempt_log.h"
#include "app/api/change_marks.h"
#include "app/api/histories.h"
#include "app/api/rule_standings.h"
#include "app/view/topic_view.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {

/// Made for one request.
class RunStory {
 public:
  /// `event_id`: a report of the episode that is wanted, which may not be the newest; may be empty.
  RunStory(const std::vector<insights::KeptRecord>& events, const std::string& event_id);

  [[nodiscard]] const TopicView& view() const { return view_; }
  [[nodiscard]] const RecentDeliveries& deliveries() const { return deliveries_; }
  /// The stop of the run and what came of it; null: nobody asked.
  [[nodiscard]] core::Value stop(const std::string& run) const;
  /// Each rule that spoke, with what it judged and what it lacks.
  [[nodiscard]] core::ValueList rules() const { return rules_.rows(); }
  /// Captures, traces and settings that the run took on, by step.
  [[nodiscard]] core::ValueList changes() const { return changes_.rows(); }
  /// Its attempts, oldest first, with when each began and how it ended.
  [[nodiscard]] core::ValueList attempts() const { return attempts_.rows(); }
  /// What happened, newest first: {time, kind, text, detail, key, step, state}.
  [[nodiscard]] core::ValueList history() const;

 private:
  void note(const insights::KeptRecord& kept);
  void note_event(const insights::KeptRecord& kept);
  void line(std::int64_t at, std::string kind, std::string text, std::string detail,
            core::ValueMap more = {});

  TopicView view_;
  RecentDeliveries deliveries_;
  RuleStandings rules_;
  ChangeMarks changes_;
  AttemptLog attempts_;
  core::ValueList lines_;  // oldest first
};

core::Value run_row(const insights::RunLine& run, const std::vector<insights::IssueLine>& issues);
core::Value issue_row(const insights::IssueLine& issue, const insights::RunLine* run);

}  // namespace tocsin::app
