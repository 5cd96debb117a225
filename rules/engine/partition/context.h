// What the parts of one engine share: its rules and options, its counters, and the record or tick
// that is being worked on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rules/engine/memory/unit.h"
#include "rules/engine/partition/describe.h"
#include "rules/engine/partition/partition.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/rules.h"

namespace tocsin::rules {

struct Context {
  std::shared_ptr<const RuleTable> configured = std::make_shared<RuleTable>();
  EngineOptions options;
  std::vector<RuleSettings> elsewhere;  // judged by other engines
  EngineStats stats;
  std::map<std::int32_t, PartitionState> partitions;

  // Being worked on:
  PartitionState* part = nullptr;
  const RuleTable* rules = nullptr;  // its own
  RecordRef ref;
  std::string ref_topic;
  std::int64_t now = 0;                // engine time: arrival, or record time in replays
  std::int64_t evaluated_at = 0;       // what issues state as such
  std::int64_t next_check = kForever;  // record time: nothing is due before
  std::uint32_t current = kNoRoster;   // the worker whose frame is being handled

  /// From here on this partition is worked on.
  void enter(PartitionState& partition) {
    part = &partition;
    rules = partition.rules.get();
  }
  /// Made when it is new.
  PartitionState& partition(std::int32_t number) {
    const auto known = partitions.find(number);
    if (known != partitions.end()) return known->second;
    PartitionState& fresh = partitions[number];
    fresh.number = number;
    fresh.rules = configured;
    fresh.cut.configure(number, configured->slots_per_part());
    return fresh;
  }
};

}  // namespace tocsin::rules
