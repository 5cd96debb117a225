// The way back: from the records of rules-state to the runs of a partition. All or nothing: what is
// damaged, missing, or of another version or layout is an error, never "no state".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/partition/moment.h"
#include "rules/engine/partition/partition_table.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/engine/partition/turn.h"
#include "rules/engine/state/remap.h"

namespace tocsin::rules {

class Restore {
 public:
  Restore(EngineStats& stats, const ConfiguredRules& configured, PartitionTable& partitions,
          IssueBook& book)
      : stats_(stats), configured_(configured), partitions_(partitions), book_(book) {}

  /// Engine::finish_restore.
  core::Result<Restored> finish(std::int32_t partition, const Moment& moment,
                                std::span<const core::Position> committed);

 private:
  core::Status read_state(const Turn& turn, Index& index,
                          std::map<std::string, std::string>& records);
  void end_issues(const Turn& turn, const Run& run, const Remap& moves,
                  const std::string& newest) const;
  static core::Status read_log(PartitionState& state, const Index& index,
                               std::map<std::string, std::string>& records);

  EngineStats& stats_;
  const ConfiguredRules& configured_;
  PartitionTable& partitions_;
  IssueBook& book_;
};

}  // namespace tocsin::rules
