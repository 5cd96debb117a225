#include "rules/engine/partition/partition_table.h"

namespace tocsin::rules {

PartitionState& PartitionTable::open(std::int32_t number) {
  const auto [place, fresh] = partitions_.try_emplace(number);
  PartitionState& partition = place->second;
  if (fresh) {
    partition.number = number;
    partition.rules = configured_.table;
    partition.cut.configure(number, configured_.table->slots_per_part());
  }
  return partition;
}

PartitionState* PartitionTable::find(std::int32_t number) {
  const auto found = partitions_.find(number);
  return found == partitions_.end() ? nullptr : &found->second;
}

const PartitionState* PartitionTable::find(std::int32_t number) const {
  const auto found = partitions_.find(number);
  return found == partitions_.end() ? nullptr : &found->second;
}

std::size_t PartitionTable::runs() const {
  std::size_t sum = 0;
  for (const auto& [number, partition] : partitions_) sum += partition.runs.size();
  return sum;
}

}  // namespace tocsin::rules
