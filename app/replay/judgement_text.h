// What a judged recording is shown as.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/replay/judge.h"

namespace tocsin::app {

/// One issue from its first report to its last, whatever came between.
struct IssueStory {
  const core::Issue* first = nullptr;  // firing
  const core::Issue* last = nullptr;   // the newest report
  std::uint64_t reports = 0;
};

/// By issue key and attempt, in the order in which they began.
std::vector<IssueStory> issue_stories(const Judgement& judgement);

/// A rule that failed in an attempt of a run: what it says of it, or does not say, means nothing.
struct RuleFailure {
  std::string rule;
  std::string run;  // its uid
  std::string why;  // one line: the last of a traceback
};
std::vector<RuleFailure> failures_of(const Judgement& judgement);
/// One line each, with the run where there are several.
std::string failure_text(const Judgement& judgement);
core::Value failure_value(const Judgement& judgement);
/// The last line that says something, printable.
std::string last_words(const std::string& reason);

/// Where a judgement comes from.
struct JudgementHead {
  std::string source;                  // "journal ./run1"
  const embedded::ChosenRules& rules;  // who judged
  std::uint64_t gaps = 0;              // places where records are missing
};

/// What was read, who judged, what could not be read: one line or a few.
std::string judgement_heading(const JudgementHead& head, const Judgement& judgement);
/// Runs, their issues, and what became of each rule; several lines.
std::string judgement_text(const JudgementHead& head, const Judgement& judgement);
/// The same for programs, every report of an issue with its id: docs/replay.md.
std::string judgement_json(const JudgementHead& head, const Judgement& judgement);

}  // namespace tocsin::app
