// RecordPublisher on a journal: one writer's segments, appended under its lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/log.h"
#include "core/record_publisher.h"
#include "core/telemetry.h"
#include "ingest/journal_directory.h"
#include "ingest/journal_format.h"

namespace tocsin::ingest {

struct JournalWriterOptions {
  std::string directory;
  std::string writer;
  bool durable = false;
  std::set<std::string, std::less<>> topics;     // what may be written
  std::set<std::string, std::less<>> compacted;  // whose newest record per key snapshots repeat
  std::size_t segment_bytes = std::size_t{64} << 20;
  std::function<std::int64_t()> now;  // UTC ns
};

/// Thread-safe. publish() appends at once, as a batch of one, so a reader in another process sees
/// it without a flush; it costs one write(2) into the page cache.
class JournalPublisher final : public core::RecordPublisher {
 public:
  /// Takes the writer's lock and recovers its newest segment (wire §8). Errors:
  /// failed_precondition (held by another process), file errors.
  static core::Result<std::unique_ptr<JournalPublisher>> open(JournalWriterOptions options,
                                                              core::Log& log,
                                                              core::Telemetry& telemetry);

  core::Status publish(const core::OutRecord& record) override;
  core::Status flush(std::chrono::milliseconds timeout) override;
  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override;
  core::Result<std::int32_t> partitions(std::string_view topic) override;

 private:
  /// Where the newest record of a key stands in the current segment.
  struct Newest {
    std::uint64_t offset = 0;
    std::int64_t appended = 0;
  };

  JournalPublisher(JournalWriterOptions options, FileDescriptor lock, core::Log& log,
                   core::Telemetry& telemetry);

  core::Status recover();
  core::Status recover_segment(std::uint64_t first);
  core::Status start_segment();
  core::Status append(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions);
  core::Status write_batch(std::span<const std::byte> batch);
  core::Status check_topic(std::string_view topic) const;
  void remember(const JournalRecord& record, std::uint64_t offset, std::int64_t appended);
  void remember_batch(std::span<const std::byte> batch, std::uint64_t offset);
  void roll_if_due();
  core::Status roll();
  core::Status write_snapshot(FileDescriptor& file, std::uint64_t& size, std::uint64_t& sequence,
                              std::unordered_map<std::string, Newest>& moved);
  void forget_lost_writers();
  [[nodiscard]] std::string path(const std::string& name) const;
  core::OutRecord positions_record() const;

  const JournalWriterOptions options_;
  FileDescriptor lock_;
  core::Log& log_;
  core::Counter& records_;
  core::Counter& bytes_;
  core::Counter& failures_;

  std::mutex mutex_;  // guards all below
  FileDescriptor file_;
  std::uint64_t segment_ = 0;   // first sequence
  std::uint64_t size_ = 0;      // of the segment, up to the last whole batch
  std::uint64_t snapshot_ = 0;  // bytes of its snapshot
  std::uint64_t sequence_ = 0;  // of the next record
  bool unsynced_ = false;
  std::map<std::string, std::int64_t> positions_;
  std::unordered_map<std::string, Newest> newest_;  // topic 0x00 key
  std::string scratch_;
  BatchBuilder batch_;
};

}  // namespace tocsin::ingest
