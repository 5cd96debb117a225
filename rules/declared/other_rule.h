// Declarative rules that compare each metric or tensor with the same one of another run, at the same
// step: other("run", x).
#pragma once

#include <memory>

#include "rules/contract/rule.h"
#include "rules/declared/choice.h"
#include "rules/declared/compile.h"

namespace tocsin::rules::declared {

/// `rule` has one selection of tensors or scalars, folds nothing, and names the other run.
std::shared_ptr<Program> other_program(Rule rule, Choice choice);

}  // namespace tocsin::rules::declared
