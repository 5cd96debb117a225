// Declarative rules over steps and over the spans in them: how long each took, per worker and step.
#pragma once

#include <memory>

#include "rules/declared/fold_judge.h"

namespace tocsin::rules::declared {

/// `config.rule` has one selection, step() or span(…).
std::shared_ptr<Program> step_program(FoldConfig config, bool per_worker, Choice choice);

}  // namespace tocsin::rules::declared
