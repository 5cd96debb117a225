// The source partitions that an engine holds, by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "rules/engine/partition/partition.h"
#include "rules/engine/partition/rule_table.h"

namespace tocsin::rules {

class PartitionTable {
 public:
  /// `configured`: what judges in partitions from here on. It outlives the table.
  explicit PartitionTable(const ConfiguredRules& configured) : configured_(configured) {}

  /// Made when it is new: with the configured rules, without runs. Stays where it is until drop().
  PartitionState& open(std::int32_t number) {
    const auto [place, fresh] = partitions_.try_emplace(number);
    PartitionState& partition = place->second;
    if (fresh) {
      partition.number = number;
      partition.rules = configured_.table;
      partition.cut.configure(number, configured_.table->slots_per_part());
    }
    return partition;
  }
  /// nullptr: it is not held.
  [[nodiscard]] PartitionState* find(std::int32_t number) {
    const auto found = partitions_.find(number);
    return found == partitions_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const PartitionState* find(std::int32_t number) const {
    const auto found = partitions_.find(number);
    return found == partitions_.end() ? nullptr : &found->second;
  }
  void drop(std::int32_t number) { partitions_.erase(number); }
  /// Of all partitions together. A family takes the room of a run.
  [[nodiscard]] std::size_t runs() const {
    std::size_t sum = 0;
    for (const auto& [number, partition] : partitions_) {
      sum += partition.runs.size() + partition.families.size();
    }
    return sum;
  }

  [[nodiscard]] auto begin() { return partitions_.begin(); }
  [[nodiscard]] auto end() { return partitions_.end(); }
  [[nodiscard]] auto begin() const { return partitions_.begin(); }
  [[nodiscard]] auto end() const { return partitions_.end(); }

 private:
  const ConfiguredRules& configured_;
  std::map<std::int32_t, PartitionState> partitions_;
};

}  // namespace tocsin::rules
