// Between the engine and its evaluators: hands them what they ask for, and makes issues of what they
// say.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"

#include "rules/run/context.h"
#include "rules/run/issue_book.h"

namespace tocsin::rules {

class Evaluations {
 public:
  Evaluations(Context& ctx, IssueBook& book) : ctx_(ctx), book_(book) {}

  /// Makes the evaluator when it is its first input.
  void feed(Run& run, std::uint32_t number, core::FunctionRef<void(Evaluator&, Scope&)> call);
  void feed_all(Run& run, std::uint32_t which, core::FunctionRef<void(Evaluator&, Scope&)> call);
  /// `units`: of the lane, for each row.
  void feed_rows(Run& run, std::uint32_t lane_number, WorkerRows rows,
                 std::span<const std::uint32_t> units);
  void feed_step_end(Run& run, const WorkerStep& step);
  void feed_closed(Run& run, core::Mode mode, std::int64_t step);
  /// The run is over.
  void end(Run& run);
  /// A worker began anew.
  void restart(Run& run, std::uint32_t worker);
  EvaluatorParts take_series(Run& run);
  /// What the rule had to say of the run that ends right now.
  [[nodiscard]] std::string take_summary(std::uint32_t rule) { return std::move(summaries_[rule]); }
  void forget_summaries() { summaries_.clear(); }

 private:
  Evaluator& evaluator(Run& run, std::uint32_t number);
  void choose(Run& run, Lane& lane);

  Context& ctx_;
  IssueBook& book_;
  std::vector<std::uint32_t> chosen_rows_;
  std::map<std::uint32_t, std::string> summaries_;  // of the run that ends right now, by rule
};

}  // namespace tocsin::rules
