// RecordPublisher on a journal: commits on the caller's thread, everything else from a thread of
// its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/log.h"
#include "core/mutex.h"
#include "core/record_publisher.h"
#include "core/telemetry.h"
#include "ingest/journal/appender.h"
#include "ingest/journal/directory.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

struct JournalPublisherOptions {
  std::string directory;
  JournalAccess access = JournalAccess::write;
  std::string group;                 // whose positions commit() takes; empty: none
  std::shared_ptr<GroupLock> owner;  // the reader's; without it commit() is fenced
  std::chrono::milliseconds linger{1};
  std::chrono::milliseconds commit_timeout{10'000};
  std::uint64_t max_queued_bytes = 0;
  std::uint32_t max_queued_records = 0;
  std::function<core::Status()> prepare;  // makes what is missing
  std::function<std::int64_t()> now;      // UTC ns
};

/// Thread-safe. publish() only queues; the thread, started by the first record, writes what has
/// come within `linger` in one transaction per file and keeps trying while it cannot. What the end
/// of the publisher cuts off is counted.
class JournalPublisher final : public core::RecordPublisher {
 public:
  JournalPublisher(const JournalTopics& topics, JournalPublisherOptions options, core::Log& log,
                   core::Telemetry& telemetry);
  ~JournalPublisher() override;
  /// Opens control.db and telemetry.db only when something is written to them.
  core::Status publish(const core::OutRecord& record) override;
  core::Status flush(std::chrono::milliseconds timeout) override;
  /// Records of telemetry.db are committed just before those of control.db: a crash between the two
  /// leaves the former, and a repeated commit writes them again. All others are one transaction
  /// with the positions.
  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override;
  core::Result<std::int32_t> partitions(std::string_view topic) override;

 private:
  core::Result<const JournalTopic*> check(const core::OutRecord& record) const;
  core::Result<JournalAppender*> appender(JournalFile file) REQUIRES(write_mutex_);
  core::Status write(std::span<const core::OutRecord> records,
                     std::span<const core::Position> positions,
                     std::chrono::milliseconds longest_wait);
  core::Status write_all(std::span<const core::OutRecord> records,
                         std::span<const core::Position> positions,
                         std::chrono::milliseconds longest_wait) REQUIRES(write_mutex_);
  void count(std::span<const core::OutRecord> records, bool written);
  void run();
  std::vector<core::OutRecord> next_batch() REQUIRES(queue_mutex_);
  core::Status write_batch(std::span<const core::OutRecord> batch) REQUIRES(queue_mutex_);

  const JournalTopics& topics_;
  const JournalPublisherOptions options_;
  core::Log& log_;
  core::Counter& records_;
  core::Counter& bytes_;
  core::Counter& failures_;

  core::Mutex write_mutex_;
  std::unique_ptr<JournalAppender> telemetry_ GUARDED_BY(write_mutex_);
  std::unique_ptr<JournalAppender> control_ GUARDED_BY(write_mutex_);

  core::Mutex queue_mutex_;
  core::CondVar changed_;
  // Its front is what the thread is writing.
  std::deque<core::OutRecord> queue_ GUARDED_BY(queue_mutex_);
  std::uint64_t queued_bytes_ GUARDED_BY(queue_mutex_) = 0;
  std::uint64_t queued_ GUARDED_BY(queue_mutex_) = 0;   // records, ever
  std::uint64_t written_ GUARDED_BY(queue_mutex_) = 0;  // records, ever
  int flushing_ GUARDED_BY(queue_mutex_) = 0;
  bool closing_ GUARDED_BY(queue_mutex_) = false;
  std::optional<core::Error> trouble_ GUARDED_BY(queue_mutex_);  // of the thread's last attempt
  std::thread thread_ GUARDED_BY(queue_mutex_);
};

}  // namespace tocsin::ingest
