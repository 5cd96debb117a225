// Port: reading topics. Three adapters (Kafka, journal, memory) pass tests/contract.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::core {

using RecordHandler = FunctionRef<void(const RecordView&)>;

/// Called from inside poll(), on the polling thread. A group-less source assigns everything once,
/// in its first poll.
class AssignmentListener {
 public:
  virtual ~AssignmentListener() = default;
  /// `committed`: where the group stands; -1 = never committed.
  /// The partitions are paused until resume(): the owner first restores state and seeks.
  virtual void assigned(std::span<const Position> committed) = 0;
  /// Orderly hand-over: commit now, synchronously, what belongs to these.
  virtual void revoked(std::span<const StreamPartition> partitions) = 0;
  /// Lost without hand-over: discard state, commit nothing.
  virtual void lost(std::span<const StreamPartition> partitions) = 0;
};

/// Not thread-safe: one thread polls. Order within a StreamPartition is kept.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  /// Hands up to `max_records` records to `handler`, waiting at most `timeout` for the first one.
  /// Returns how many. Errors: unavailable (retry), data_loss (a gap: the position was no longer
  /// there; reading goes on at the next record), failed_precondition (closed or fenced).
  virtual Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t max_records,
                                   RecordHandler handler) = 0;

  /// Continue at `position.next` (and forget what was prefetched). Partition must be assigned.
  virtual Status seek(const Position& position) = 0;
  /// Only partitions paused by pause() or by assignment may be resumed; others are ignored.
  virtual Status pause(std::span<const StreamPartition> partitions) = 0;
  virtual Status resume(std::span<const StreamPartition> partitions) = 0;

  /// Position behind the last record handed out, per assigned partition: what commit() takes.
  /// -1 while neither a record nor a committed position is known; commit() passes over it.
  [[nodiscard]] virtual std::vector<Position> positions() const = 0;
  /// True when everything that existed at the last poll has been handed out (zero lag).
  [[nodiscard]] virtual bool at_end() const = 0;
  /// The same for one assigned partition; false for others.
  [[nodiscard]] virtual bool at_end(const StreamPartition& where) const = 0;

  /// Makes a poll() that waits, or else the next one, return without waiting. Thread-safe.
  virtual void wake() = 0;

  /// Reads one topic partition from its beginning to its present end, committed records only, in
  /// order; the newest record of a key comes last. `since`: begins at the first record that is not
  /// older by its timestamp. What follows comes whatever its time, and where a writer's clock has
  /// stepped back around `since` the beginning may be any of the records between: leave a margin.
  virtual Status read_all(std::string_view topic, std::int32_t partition,
                          std::optional<WallTime> since, RecordHandler handler) = 0;

  /// Leaves the group within the deadline. Idempotent.
  virtual void close(std::chrono::milliseconds deadline) = 0;
};

}  // namespace tocsin::core
