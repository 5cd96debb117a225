#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

std::unique_ptr<Evaluator> Program::evaluator() const { return nullptr; }

}  // namespace tocsin::rules
