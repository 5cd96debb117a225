// Families of runs (Program::family()): rules judge a run by what those of its family that completed
// were like. What a run leaves behind goes to the families of other partitions by the topic `comparisons`.
#pragma once

#include <cstdint>

#include "rules/engine/memory/family.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Families {
 public:
  Families(const EngineOptions& options, EngineStats& stats) : options_(options), stats_(stats) {}

  /// Of RuleTable::evaluated[number], in the family of the run; nullptr: it has none, or the rule looks at
  /// no family.
  static const Evaluator* evaluator(const PartitionState& part, const Run& run,
                                    std::uint32_t number);
  /// Made when it is new; `now`: engine time.
  static Family& open(PartitionState& part, const core::RunUid& uid, std::int64_t now);
  /// A rule of a family begins to follow a run: from now on what others say of its family is of use here.
  static void meet(const Turn& turn, const Run& run, std::uint32_t number);
  /// The run has ended: if it completed, its families know it from now on, here and elsewhere.
  void join(const Turn& turn, Run& run);

 private:
  const EngineOptions& options_;
  EngineStats& stats_;
};

}  // namespace tocsin::rules
