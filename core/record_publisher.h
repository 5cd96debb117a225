// Port: writing topics, one record at a time or many with the reader's positions at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/result.h"

namespace tocsin::core {

class RecordPublisher {
 public:
  virtual ~RecordPublisher() = default;

  /// Queues one record outside any commit; never blocks. Errors: resource_exhausted (queue full:
  /// the record was not taken), not_found (topic does not exist, with the command to create it),
  /// invalid_argument (larger than the topic takes), failed_precondition (closed, fenced).
  virtual Status publish(const OutRecord& record) = 0;
  /// Waits until what was queued is durable or the time is over (deadline_exceeded).
  virtual Status flush(std::chrono::milliseconds timeout) = 0;

  /// Writes all records and the reader's positions as one unit: readers see all of it or nothing,
  /// also after kill -9 at any instant. Kafka: one transaction with the source's group metadata;
  /// journal: one appended batch. Blocks until durable. Errors: unavailable and deadline_exceeded
  /// (nothing visible yet; call again with the same records, or with more behind them),
  /// failed_precondition (fenced or the partitions are no longer ours: drop their state), internal
  /// (recreate the publisher, call again).
  virtual Status commit(std::span<const OutRecord> records,
                        std::span<const Position> positions) = 0;
  /// Begins to write one record of the next commit before that is asked for, where the guarantee
  /// lets readers see it alone (at least once). True: it is on its way and must not be part of that
  /// commit(), which succeeds only once it is durable; when commit() fails, it is to be written
  /// again. False: it belongs into the commit. Never blocks. From any thread, also while a commit is
  /// under way.
  virtual bool write_ahead(const OutRecord& /*record*/) { return false; }

  /// Partitions of a topic by its short name; 1 on the journal.
  virtual Result<std::int32_t> partitions(std::string_view topic) = 0;
};

}  // namespace tocsin::core
