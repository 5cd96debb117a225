// The run card: what the twelve questions about a run came to, with their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "app/view/run_questions.h"
#include "core/issue.h"

namespace tocsin::app {

/// What one rule says of one thing it asks about.
struct CardLine {
  std::string answer;   // ok, hit or undecided
  std::string rule;     // its name
  std::string subject;  // "cross_entropy train"; empty: of the whole run
  std::string numbers;  // "skill 0.62 (0.6 to 0.64), pairs 1400"
};

/// What is known of a run.
struct CardSources {
  std::vector<const core::RuleStatusEvent*> rules;          // the newest status of each
  std::vector<std::string> configured;                      // names of rules; empty: not known
  std::vector<std::pair<std::string, std::string>> firing;  // rule and title of open issues
  std::uint32_t world_size = 0;                             // 0: not known
};

/// One question about a run.
struct AnsweredQuestion {
  const RunQuestion* question = nullptr;
  std::string answer;           // hit, undecided, ok or "not asked": that of its worst line
  std::vector<CardLine> lines;  // worst first; empty where it was not asked
  std::string why;              // it was not asked
};

/// Whether a rule sums up a run as answers: {"ok" | "hit" | "undecided": {subject: {name: number}}}.
[[nodiscard]] bool is_card(const core::ValueMap& summary);
/// Hits first, then what is undecided. Numbers `x_low` and `x_high` beside an `x` are its interval of 95 %.
[[nodiscard]] std::vector<CardLine> card_of(const core::RuleStatusEvent& rule);
/// All twelve, the worst first.
[[nodiscard]] std::vector<AnsweredQuestion> run_card(const CardSources& sources);
/// "1 hit, 2 undecided, 6 ok, 3 not asked".
[[nodiscard]] std::string card_counts(const std::vector<AnsweredQuestion>& card);
/// For a terminal: lines of at most 80 columns, each indented by two blanks.
[[nodiscard]] std::string card_text(const std::vector<AnsweredQuestion>& card);
/// For programs: a list of {number, question, asks, answer, why, lines[{answer, rule, subject, numbers}]}.
[[nodiscard]] core::Value card_value(const std::vector<AnsweredQuestion>& card);

}  // namespace tocsin::app
