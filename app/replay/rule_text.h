// Rules as a text that somebody edits: the text of one that judges, and rules read from such a text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rules.h"

namespace tocsin::app {

struct RuleTextProblem {
  int line = 0;  // of the text, from 1; 0: of no one place
  int column = 0;
  std::string message;  // says what was expected and the nearest name
};

struct RuleTextAnswer {
  rules::RulesConfig rules;
  std::vector<RuleTextProblem> problems;  // empty: `rules` has at least one
};

/// A list of rules in YAML, one rule, or either under `rules:`, as a configuration has them. Nothing
/// but the text is read: no included file, no variable of the environment, no rule of another
/// program. So whoever may send a text learns nothing of this machine and runs nothing on it.
RuleTextAnswer read_rule_text(std::string_view yaml);

/// "line 3, column 5: …", one line for each problem.
std::string rule_text_problems(const std::vector<RuleTextProblem>& problems);

/// What read_rule_text() reads as this rule, each parameter on a line of its own; nullopt: a rule in
/// Python or of a shared object.
std::optional<std::string> rule_text(const rules::RuleSettings& rule);

}  // namespace tocsin::app
