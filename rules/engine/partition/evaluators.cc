#include "rules/engine/partition/evaluators.h"

namespace tocsin::rules {

Evaluator& evaluator_of(Context& ctx, Run& run, std::uint32_t number) {
  if (run.evaluators.size() < ctx.rules->evaluated.size())
    run.evaluators.resize(ctx.rules->evaluated.size());
  EvaluatorPart& part_of = run.evaluators[number];
  if (!part_of.evaluator) {
    ctx.part->cut.touch_head(run);
    part_of.evaluator = ctx.rules->evaluated[number].program->evaluator();
    part_of.identity = ctx.rules->evaluated[number].identity;
  }
  ctx.part->cut.touch_evaluator(run, number);
  return *part_of.evaluator;
}

}  // namespace tocsin::rules
