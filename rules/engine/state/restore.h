// The way back: from the records of rules-state to the runs of a partition. All or nothing: what is
// damaged, missing, or of another version or layout is an error, never "no state".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "rules/engine/issues/issue_book.h"
#include "rules/engine/partition/context.h"
#include "rules/engine/state/remap.h"

namespace tocsin::rules {

class Restore {
 public:
  Restore(Context& ctx, IssueBook& book) : ctx_(ctx), book_(book) {}

  /// Engine::finish_restore.
  core::Result<Restored> finish(std::int32_t partition, std::span<const core::Position> committed);

 private:
  core::Status read_state(PartitionState& state, Index& index,
                          std::map<std::string, std::string>& records);
  void end_issues(PartitionState& state, const Run& run, const Remap& moves,
                  const std::string& newest) const;
  static core::Status read_log(PartitionState& state, const Index& index,
                               std::map<std::string, std::string>& records);

  Context& ctx_;
  IssueBook& book_;
};

}  // namespace tocsin::rules
