#pragma once

#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

/// A series rule of one run.
class SeriesEvaluator final : public EvaluatorOf<SeriesMemory> {
 public:
  explicit SeriesEvaluator(const SeriesProgram& program) : program_(program) {}
  void on_values(const StepPoint& point, bool pass, const Place& place, Scope& scope) override;
  void on_end(Scope& scope) override;

 private:
  const SeriesProgram& program_;  // which outlives it
};

}  // namespace tocsin::rules
