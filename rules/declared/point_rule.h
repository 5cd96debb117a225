// Declarative rules whose points come one by one and do not wait: samples of nodes, and several
// selections that one worker feeds.
#pragma once

#include <memory>
#include <vector>

#include "rules/contract/rule.h"
#include "rules/declared/choice.h"
#include "rules/declared/compile.h"

namespace tocsin::rules::declared {

/// `rule` has one selection of system samples.
std::shared_ptr<Program> sample_program(Rule rule, Choice choice);
/// `rule` has several selections of tensors or scalars, one of `choices` each; a unit is a worker,
/// and where all selections name the same thing, its name.
std::shared_ptr<Program> joint_program(Rule rule, std::vector<Choice> choices);

}  // namespace tocsin::rules::declared
