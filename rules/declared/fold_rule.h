// Declarative rules that look at what belongs to one completed step together: across() over workers
// or tensors, and durations of steps.
#pragma once

#include <memory>

#include "rules/contract/rule.h"
#include "rules/declared/choice.h"
#include "rules/declared/compile.h"

namespace tocsin::rules::declared {

/// `rule` has one selection of tensors or scalars, and folds workers, tensors or both; or one of
/// steps.
std::shared_ptr<Program> fold_program(Rule rule, Choice choice);

}  // namespace tocsin::rules::declared
