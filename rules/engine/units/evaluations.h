// Between the engine and its evaluators: hands them what they ask for, and makes issues of what they
// say.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/function_ref.h"

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

/// What a rule has to tell of a run that ends right now.
struct Summary {
  core::ValueMap told;
  std::string issues_of;  // rules whose issues it stands for; empty: none
  std::string unjudged;   // why nothing could be judged; empty: the usual
};
using Summaries = std::map<std::uint32_t, Summary>;  // by rule

class Evaluations {
 public:
  Evaluations(const EngineOptions& options, EngineStats& stats, IssueBook& book)
      : options_(options), stats_(stats), book_(book) {}

  /// Makes the evaluator when it is its first input.
  void feed(const Turn& turn, Run& run, std::uint32_t number,
            core::FunctionRef<void(Evaluator&, Scope&)> call);
  void feed_all(const Turn& turn, Run& run, std::uint32_t which,
                core::FunctionRef<void(Evaluator&, Scope&)> call);
  /// `units`: of the roster, for each row.
  void feed_rows(const Turn& turn, Run& run, std::uint32_t roster_number, WorkerRows rows,
                 std::span<const std::uint32_t> units, std::uint32_t first);
  void feed_step_end(const Turn& turn, Run& run, const WorkerStep& step);
  void feed_closed(const Turn& turn, Run& run, core::Mode mode, std::int64_t step);
  /// What everybody said of steps up to this one has been said: for those that go by it.
  void feed_settled(const Turn& turn, Run& run, core::Mode mode, std::int64_t step);
  /// The run is over: first for those that judge, behind them those that follow others; then
  /// (`reports`) for those that sum up what the others found.
  void end(const Turn& turn, Run& run, bool reports);
  /// A worker began anew.
  void restart(const Turn& turn, Run& run, std::uint32_t worker);
  EvaluatorParts take_series(const Turn& turn, Run& run);
  /// What runs to come are compared with.
  EvaluatorParts take_compared(const Turn& turn, Run& run);
  /// The run has gone on, or is over: rules that compare others with it may judge them.
  void tell_others(const Turn& turn, Run& run);
  Summary take_summary(std::uint32_t rule) { return std::move(summaries_[rule]); }
  Summaries take_summaries() { return std::exchange(summaries_, {}); }

 private:
  void choose(const Turn& turn, Run& run, Roster& roster);
  void tell_elsewhere(const Turn& turn, Run& run, std::uint32_t number);
  [[nodiscard]] EvaluatorPart copy_of(const Turn& turn, EvaluatorPart& from,
                                      std::uint32_t number) const;

  const EngineOptions& options_;
  EngineStats& stats_;
  IssueBook& book_;
  std::vector<std::uint32_t> chosen_rows_;
  Summaries summaries_;  // of the run that ends right now
};

}  // namespace tocsin::rules
