// Rules over what other rules of the run find: one after another within so many steps, or one and
// then not another. They judge completed steps, when all others have said what they say of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rules/contract/rule.h"
#include "rules/declared/chain.h"

namespace tocsin::rules::declared {

/// A rule with `sequence`, checked.
struct SequenceTexts {
  std::vector<std::string> rules;    // one after another
  std::vector<std::string> without;  // whose hits break it
  std::vector<std::string> by;       // labels that all of its hits share
  Size within;
  std::string within_text;
  std::optional<Template> evidence;  // its names are those of sequence_names()
};

/// What the evidence of such a rule may name, beside its `by`.
const std::vector<std::string>& sequence_names();

std::shared_ptr<Program> sequence_program(SequenceTexts texts);

}  // namespace tocsin::rules::declared
