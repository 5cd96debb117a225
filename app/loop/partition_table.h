// Where each assigned partition stands between its assignment and its loss.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
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
  struct Seen {
    core::Duration fresh_at{-1};    // a new record of it, or its end, was seen then
    core::Duration read_until{-1};  // all its records from before that have been read
  };
  /// Steady, negative: not yet; per stream as in `committed`. One for each: a new command says nothing
  /// of answers that are still to be read.
  std::vector<Seen> seen;

  void saw(std::string_view stream, const Seen& what) noexcept;
  /// When the stream that is furthest behind was up to date; negative: not yet.
  [[nodiscard]] core::Duration fresh() const noexcept;
  [[nodiscard]] core::Duration read_until() const noexcept;
  void forget(const core::StreamPartition& stream);
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
  /// Steady: what was published before has been read. nullopt: it is not live, or not known yet.
  [[nodiscard]] std::optional<core::Duration> read_until(std::int32_t number) const;
  [[nodiscard]] std::optional<core::Duration> all_read_until() const;
  [[nodiscard]] bool all_live() const;
  [[nodiscard]] bool empty() const noexcept { return partitions_.empty(); }
  /// True when each stream of the partition was read up to what was committed.
  [[nodiscard]] static bool reached(const LoopPartition& partition,
                                    std::span<const core::Position> positions);
  /// Of these positions those of partitions that are live: what may be committed. Partitions that are
  /// being restored stay as they are committed.
  [[nodiscard]] std::vector<core::Position> live_only(std::vector<core::Position> positions) const;
  /// Partitions of whose input something is gone that they were still to read, where a poll handed out
  /// nothing: those whose position has moved since `before`, or is not known any more; where that does
  /// not show, it may be any of them. Also ones that are being replayed: what they would have seen again
  /// is missing from their state.
  [[nodiscard]] std::vector<std::int32_t> lost(std::span<const core::Position> before,
                                               std::span<const core::Position> now) const;

  auto begin() { return partitions_.begin(); }
  auto end() { return partitions_.end(); }
  [[nodiscard]] auto begin() const { return partitions_.begin(); }
  [[nodiscard]] auto end() const { return partitions_.end(); }

 private:
  std::map<std::int32_t, LoopPartition> partitions_;
};

}  // namespace tocsin::app
