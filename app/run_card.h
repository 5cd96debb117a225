// The run card: what the questions about a run's task came to, with their numbers.
#pragma once

#include <string>
#include <vector>

#include "core/issue.h"

namespace tocsin::app {

/// What one rule says of one thing it asks about.
struct CardLine {
  std::string answer;   // ok, hit or undecided
  std::string rule;     // its name
  std::string subject;  // "cross_entropy train"
  std::string numbers;  // "skill 0.62 (0.6 to 0.64), pairs 1400"
};

/// Whether a rule sums up a run as answers: {"ok" | "hit" | "undecided": {subject: {name: number}}}.
[[nodiscard]] bool is_card(const core::ValueMap& summary);
/// Hits first, then what is undecided. Numbers `x_low` and `x_high` beside an `x` are its interval of 95 %.
[[nodiscard]] std::vector<CardLine> card_of(const core::RuleStatusEvent& rule);

}  // namespace tocsin::app
