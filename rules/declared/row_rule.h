// A declarative rule of one selection whose unit is one tensor or scalar of one worker and mode: judged as
// its rows arrive.
#pragma once

#include <cmath>
#include <memory>

#include "rules/contract/rule.h"
#include "rules/declared/choice.h"
#include "rules/declared/compile.h"

namespace tocsin::rules::declared {

/// `rule` has one selection of tensors or scalars and folds nothing.
std::shared_ptr<Program> row_program(Rule rule, Choice choice);

/// What an issue says of numbers that were computed when its rule hit. `numbers`: one per
/// Rule::spoken. `tell`: the text of a label.
Finding tell(const Rule& rule, const double* numbers, const Subject& subject,
             core::FunctionRef<std::string(const std::string&)> label);

/// The same of what is computed from `sight` now.
Finding tell(const Rule& rule, const Sight& sight, const Subject& subject,
             core::FunctionRef<std::string(const std::string&)> label);

/// Of what a condition came to.
inline Verdict verdict_of(double answer) noexcept {
  return std::isnan(answer) ? kInsufficient : answer == 0 ? kOk : hit();
}

}  // namespace tocsin::rules::declared
