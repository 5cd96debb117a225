// A job that logs a loss, and the steps at which a rule spoke of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
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

// Deterministic noise in −1 … 1.
inline double loss_noise(std::int64_t i) {
  const auto mixed = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15ULL;
  return static_cast<double>(mixed >> 11) / static_cast<double>(1ULL << 52) - 1;
}

inline std::vector<std::string> loss_kinds_of(const std::function<double(std::int64_t)>& loss,
                                              std::int64_t steps, std::int64_t every = 1) {
  auto rule = testing_support::RuleHarness::of("loss_not_decreasing");
  testing_support::FakeWorker worker;
  for (std::int64_t s = 0; s < steps; s += every) log_loss(rule, worker, s, loss(s));
  std::vector<std::string> kinds;
  for (const core::Issue& issue : rule.firing()) kinds.push_back(issue.kind);
  return kinds;
}

}  // namespace tocsin::rules
