// From parsed texts to a formula: names, types and windows are checked here, and every error says
// where in its text it is, what was expected and the nearest valid name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/identity.h"
#include "core/statistics.h"
#include "rules/contract/rule.h"
#include "rules/declared/memory.h"
#include "rules/declared/syntax.h"

namespace tocsin::rules::declared {

struct Selected {
  std::string name;  // of `let`; empty: the only one
  Selector selector;
};

/// A number of which an issue speaks, with the words it has in the rule.
struct Spoken {
  std::string text;
  Code code;
};

/// An evidence template, compiled. Each hole is a number or a label of the unit.
struct Sentence {
  struct Hole {
    std::string label;         // empty: the number
    std::uint16_t number = 0;  // of Rule::spoken
  };
  std::vector<std::string> texts;
  std::vector<Hole> holes;
};

/// A rule's texts, checked together.
struct Rule {
  Formula formula;
  std::vector<Selected> selected;
  std::vector<std::string> folded;  // labels that `by` leaves out, so that across() folds them
  std::vector<Spoken> spoken;       // [0] and [1]: both sides of the comparison that decides
  std::string op;                   // of that comparison; empty: there is none
  std::optional<Sentence> evidence;
  std::string argmax_text;              // of argmax_worker in the evidence
  std::optional<std::uint16_t> argmax;  // fold whose greatest member is told
  std::vector<std::string> requests;    // statistics that must be asked of the hook
  std::vector<Followed> follows;        // of fired()
  std::optional<core::RunUid> other;    // of other()
};

/// What a rule is compiled from; the texts live until it is.
struct Draft {
  std::vector<Selected> selected;
  Window window;
  std::vector<std::string> folded;
  std::string_view when;
  std::string_view evidence;
  bool has_evidence = false;
  std::vector<std::string> labels;  // that the evidence may name
};

/// A problem, and in which of the two texts it stands.
struct Complaint {
  std::string_view key;  // "when", "evidence"
  Problem problem;
};

std::optional<Complaint> compile(const Draft& draft, Rule& out);

}  // namespace tocsin::rules::declared
