// What the parts of one engine share: its rules and options, its counters, and the record or tick
// that is being worked on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rules/rules.h"
#include "rules/run/describe.h"
#include "rules/run/partition.h"
#include "rules/run/rule_table.h"
#include "rules/run/unit.h"

namespace tocsin::rules {

struct Context {
  RuleTable rules;
  EngineOptions options;
  std::vector<RuleSettings> elsewhere;  // judged by other engines
  EngineStats stats;
  std::map<std::int32_t, PartitionState> partitions;

  // Being worked on:
  PartitionState* part = nullptr;
  RecordRef ref;
  std::string ref_topic;
  std::int64_t now = 0;                // engine time: arrival, or record time in replays
  std::int64_t evaluated_at = 0;       // what issues state as such
  std::int64_t next_check = kForever;  // record time: nothing is due before
  std::uint32_t current = kNoLane;     // the worker whose frame is being handled

  /// Made when it is new.
  PartitionState& partition(std::int32_t number) {
    const auto known = partitions.find(number);
    if (known != partitions.end()) return known->second;
    PartitionState& fresh = partitions[number];
    fresh.number = number;
    fresh.cut.configure(number, rules.slots_per_part());
    return fresh;
  }
};

}  // namespace tocsin::rules
