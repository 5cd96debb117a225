// Where each assigned partition stands between its assignment and its loss.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "core/record.h"
#include "core/time.h"

namespace tocsin::app {

/// One input partition: the streams (topics) of this number that are ours.
struct LoopPartition {
  enum class Phase { assigned, replaying, live };
  Phase phase = Phase::assigned;
  std::vector<core::Position> committed;   // per stream; −1: never committed
  std::set<core::StreamPartition> passed;  // handed out beyond `committed` while replaying
  core::Duration since{};                  // steady: of the assignment
  core::Duration fresh_at{-1};             // steady: its newest record, or its end, was seen then
};

/// Partitions by number, in the order of numbers.
class PartitionTable {
 public:
  /// Within this a partition counts as up to date.
  static constexpr core::Duration kFresh = std::chrono::seconds(2);

  void assign(std::span<const core::Position> committed, core::Duration steady);
  /// Numbers of which no stream is left.
  void take(std::span<const core::StreamPartition> partitions);
  void clear() { partitions_.clear(); }

  [[nodiscard]] LoopPartition* find(std::int32_t number);
  [[nodiscard]] bool live(std::int32_t number, core::Duration steady) const;
  [[nodiscard]] bool all_live() const;
  [[nodiscard]] bool empty() const noexcept { return partitions_.empty(); }
  /// True when each stream of the partition was read up to what was committed.
  [[nodiscard]] static bool reached(const LoopPartition& partition,
                                    std::span<const core::Position> positions);

  auto begin() { return partitions_.begin(); }
  auto end() { return partitions_.end(); }
  [[nodiscard]] auto begin() const { return partitions_.begin(); }
  [[nodiscard]] auto end() const { return partitions_.end(); }

 private:
  std::map<std::int32_t, LoopPartition> partitions_;
};

}  // namespace tocsin::app
