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

/// Where a judgement comes from.
struct JudgementHead {
  std::string source;        // "journal ./run1"
  const ChosenRules& rules;  // who judged
  std::uint64_t gaps = 0;    // places where records are missing
};

/// What was read, who judged, what could not be read: one line or a few.
std::string judgement_heading(const JudgementHead& head, const Judgement& judgement);
/// Runs, their issues, and what became of each rule; several lines.
std::string judgement_text(const JudgementHead& head, const Judgement& judgement);
/// The same for programs, every report of an issue with its id: docs/replay.md.
std::string judgement_json(const JudgementHead& head, const Judgement& judgement);

}  // namespace tocsin::app
