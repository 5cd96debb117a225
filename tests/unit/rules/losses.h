// A job that logs a loss, and the steps at which a rule spoke of it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {

inline void log_loss(testing_support::RuleHarness& rule, testing_support::FakeWorker& worker,
                     std::int64_t step, double loss, core::Mode mode = core::Mode::train) {
  rule.feed(worker.scalars(mode, {{"loss", step, loss}})).feed(worker.step_end(mode, step));
}

inline std::vector<std::int64_t> hit_steps(testing_support::RuleHarness& rule) {
  std::vector<std::int64_t> steps;
  for (const core::Issue& issue : rule.firing()) steps.push_back(*issue.step);
  return steps;
}

}  // namespace tocsin::rules
