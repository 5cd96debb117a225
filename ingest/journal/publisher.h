// RecordPublisher on a journal: commits on the caller's thread, everything else from a thread of
// its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/log.h"
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
  core::Result<JournalAppender*> appender(JournalFile file);
  core::Status write(std::span<const core::OutRecord> records,
                     std::span<const core::Position> positions,
                     std::chrono::milliseconds longest_wait);
  core::Status write_all(std::span<const core::OutRecord> records,
                         std::span<const core::Position> positions,
                         std::chrono::milliseconds longest_wait);
  void count(std::span<const core::OutRecord> records, bool written);
  void run();
  std::vector<core::OutRecord> next_batch(std::unique_lock<std::mutex>& lock);

  const JournalTopics& topics_;
  const JournalPublisherOptions options_;
  core::Log& log_;
  core::Counter& records_;
  core::Counter& bytes_;
  core::Counter& failures_;

  std::mutex write_mutex_;  // guards the appenders
  std::unique_ptr<JournalAppender> telemetry_, control_;

  std::mutex queue_mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<core::OutRecord> queue_;  // its front is what the thread is writing
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t queued_ = 0, written_ = 0;  // records, ever
  int flushing_ = 0;
  bool closing_ = false;
  std::optional<core::Error> trouble_;  // of the thread's last attempt
  std::thread thread_;
};

}  // namespace tocsin::ingest
