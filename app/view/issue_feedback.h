// What people said of issues, folded from records of `router-control` (docs/verdicts.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/issue_feedback.h"
#include "core/record.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

class FeedbackView {
 public:
  /// Any record of the topic, in their order; what is none of these is passed over.
  void apply(const core::RecordView& record);

  /// Of the episode that this report began; null: nobody has said.
  [[nodiscard]] const core::IssueVerdict* verdict(const std::string& issue,
                                                  const std::string& event_id) const;
  /// Oldest first.
  [[nodiscard]] std::vector<const core::IssueNote*> notes(const std::string& issue,
                                                          const std::string& event_id) const;
  /// Keys of records that nobody has touched since then.
  [[nodiscard]] std::vector<std::string> older_than(core::WallTime then) const;

 private:
  std::map<std::string, core::IssueVerdict> verdicts_;  // by the key of the record
  std::map<std::string, core::IssueNote> notes_;
};

/// As the API gives them; null: nobody has said.
core::Value verdict_value(const core::IssueVerdict* verdict);
core::Value note_value(const core::IssueNote& note);
core::ValueList note_values(const std::vector<const core::IssueNote*>& notes);
/// "noise, says ada@node-7, 3 min ago: it was the new schedule"
std::string verdict_text(const core::IssueVerdict& verdict, core::WallTime now);
/// "ada@node-7, 3 min ago: the loader was restarted"
std::string note_text(const core::IssueNote& note, core::WallTime now);

}  // namespace tocsin::app
