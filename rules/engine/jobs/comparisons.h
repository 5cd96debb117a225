// Rules that compare runs with one that lies in another partition: what is known of it here was said
// there, and comes as logged entries. It is kept as a run of this partition that is over. Families
// (compare/families.h) learn the same way.
#pragma once

#include <optional>
#include <string_view>

#include "rules/engine/partition/turn.h"
#include "rules/engine/units/evaluations.h"

namespace tocsin::rules {

class Comparisons {
 public:
  Comparisons(EngineStats& stats, Evaluations& evaluations)
      : stats_(stats), evaluations_(evaluations) {}

  /// 0: no run of this partition waits for one that it is compared with, or for its family. Another
  /// number than before: what was of no use may be from now on.
  [[nodiscard]] static std::uint64_t wanted(const PartitionState& part);
  /// The entry to decide; nullopt: nothing new, of no rule of ours, or of a run that is read here.
  static std::optional<Entry> news(const Turn& turn, const Comparison& record);
  void apply(const Turn& turn, const Entry& entry);

 private:
  /// Which evaluator of which run; nullopt: none of ours.
  struct Subject {
    core::RunUid run;
    std::uint32_t number = 0;
    std::string_view key;  // the rule's own
    bool family = false;
  };
  static std::optional<Subject> subject_of(const RuleTable& rules, std::string_view key);
  static Run& run_of(const Turn& turn, const core::RunUid& uid, std::int64_t now);

  EngineStats& stats_;
  Evaluations& evaluations_;
};

}  // namespace tocsin::rules
