// Families of runs: what those that completed were like, for rules that judge a run by its elders. A
// family is kept as a run of the partition that nobody is: its evaluators hold what they learned.
// What a run leaves behind goes to the families of other partitions by the topic `comparisons`.
#pragma once

#include <cstdint>

#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

/// Whether this is such a one.
bool is_family(const RuleTable& rules, const Run& run);

class Families {
 public:
  Families(const EngineOptions& options, EngineStats& stats) : options_(options), stats_(stats) {}

  /// Of RuleTable::evaluated[number], in the family of the run; nullptr: it has none, or the rule looks at
  /// no family.
  static const Evaluator* evaluator(const PartitionState& part, const Run& run,
                                    std::uint32_t number);
  /// A rule of a family begins to follow a run: from now on what others say of its family is of use here.
  static void meet(const Turn& turn, const Run& run, std::uint32_t number);
  /// The run has ended: if it completed, its families know it from now on, here and elsewhere.
  void join(const Turn& turn, Run& run);

 private:
  const EngineOptions& options_;
  EngineStats& stats_;
};

}  // namespace tocsin::rules
