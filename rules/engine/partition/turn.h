// One turn of the engine: a record, a tick or a decision that one partition handles from its beginning
// to its end.
#pragma once

#include <cstdint>

#include "rules/engine/memory/open_issue.h"
#include "rules/engine/partition/partition.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// What stays the same throughout. Refers to the engine's own: nobody keeps it.
struct Turn {
  PartitionState& part;
  const RecordRef& record;           // in a tick the newest that the engine was given
  std::int64_t now = 0;              // engine time, UTC ns: arrival, or record time in replays
  std::int64_t evaluated_at = 0;     // what issues state as such, UTC ns
  std::uint32_t worker = kNoRoster;  // whose frame it is

  /// Those that judge in the partition. A reload replaces them.
  [[nodiscard]] const RuleTable& rules() const noexcept { return *part.rules; }
  /// The same at another time: a decision is applied again.
  [[nodiscard]] Turn as_of(std::int64_t time) const noexcept {
    return {part, record, time, evaluated_at, worker};
  }
  /// The same, known to be this worker's.
  [[nodiscard]] Turn of(std::uint32_t number) const noexcept {
    return {part, record, now, evaluated_at, number};
  }
};

}  // namespace tocsin::rules
