// Workers of one run that take steps of given lengths.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/rule_harness.h"

namespace tocsin::testing_support {

struct Timed {
  RuleHarness rule;
  std::vector<FakeWorker> workers;
  std::vector<std::int64_t> next;  // step of each mode, the same for all workers

  Timed(const std::string& type, const std::string& with, const std::string& preset,
        std::uint32_t world = 1)
      : rule(RuleHarness::of(type, with, preset)), next(4, 0) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      workers.emplace_back("digits", "exploding", rank, world);
      rule.feed(workers.back().start());
    }
  }

  /// Every worker takes a step: so many seconds, one number for all or one of each.
  void step(const std::vector<double>& seconds, core::Mode mode = core::Mode::train,
            const std::vector<std::vector<Spent>>& spans = {}) {
    const std::int64_t number = next[static_cast<std::size_t>(mode)]++;
    for (std::size_t w = 0; w < workers.size(); ++w) {
      if (w < spans.size() && !spans[w].empty())
        rule.feed(workers[w].spans(mode, number, spans[w]));
      const double took = seconds.size() == 1 ? seconds[0] : seconds[w];
      workers[w].step_time = static_cast<std::int64_t>(took * static_cast<double>(kSecond));
      rule.feed(workers[w].step_end(mode, number));
    }
  }
  void steps(int count, const std::vector<double>& seconds, core::Mode mode = core::Mode::train,
             const std::vector<std::vector<Spent>>& spans = {}) {
    for (int i = 0; i < count; ++i) step(seconds, mode, spans);
  }
  void end() {
    for (FakeWorker& worker : workers) rule.feed(worker.end());
  }
};

/// What stands in an issue's evidence under this name.
inline const core::Value* value_of(const core::Issue& issue, std::string_view name) {
  return core::find(issue.evidence.values, name);
}
inline double number_in(const core::Issue& issue, std::string_view name) {
  const core::Value* value = value_of(issue, name);
  if (const auto* whole = core::as<std::int64_t>(value)) return static_cast<double>(*whole);
  const auto* number = core::as<double>(value);
  return number == nullptr ? std::nan("") : *number;
}

}  // namespace tocsin::testing_support
