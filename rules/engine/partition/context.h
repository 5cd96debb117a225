// What the parts of one engine share: its rules and options, its counters, and the record or tick
// that is being worked on.
#pragma once

#include <cstdint>
#include <string>

#include "rules/engine/memory/unit.h"
#include "rules/engine/partition/deadline.h"
#include "rules/engine/partition/describe.h"
#include "rules/engine/partition/partition.h"
#include "rules/engine/partition/partition_table.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/rules.h"

namespace tocsin::rules {

struct Context {
  ConfiguredRules configured;
  EngineOptions options;
  EngineStats stats;
  PartitionTable partitions{configured};
  Deadline deadline;

  // Being worked on:
  PartitionState* part = nullptr;
  const RuleTable* rules = nullptr;  // its own
  RecordRef ref;
  std::string ref_topic;
  std::int64_t now = 0;               // engine time: arrival, or record time in replays
  std::int64_t evaluated_at = 0;      // what issues state as such
  std::uint32_t current = kNoRoster;  // the worker whose frame is being handled

  /// From here on this partition is worked on.
  void enter(PartitionState& partition) {
    part = &partition;
    rules = partition.rules.get();
  }
};

}  // namespace tocsin::rules
