// RecordSource on a journal: all writers' records of some topics, merged by append time.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/record_source.h"
#include "core/telemetry.h"
#include "ingest/journal_tail.h"
#include "ingest/journal_watch.h"
#include "ingest/transport.h"

namespace tocsin::ingest {

/// Writer → next sequence, as the newest `_positions` record of `writer` has it; empty without one.
std::map<std::string, std::int64_t> read_positions(const std::string& directory,
                                                   const std::string& writer);
/// The map inside a `_positions` record; entries that make no sense are left out.
std::map<std::string, std::int64_t> parse_positions(std::string_view json);
std::string positions_json(const std::map<std::string, std::int64_t>& positions);

/// Lives on one thread.
class JournalSource final : public core::RecordSource {
 public:
  /// `all_compacted`: every topic is compacted, so reading from the beginning means from the
  /// newest snapshots.
  JournalSource(std::string directory, SourceOptions options, bool all_compacted, core::Log& log,
                core::Telemetry& telemetry);

  core::Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t max_records,
                                 core::RecordHandler handler) override;
  core::Status seek(const core::Position& position) override;
  core::Status pause(std::span<const core::StreamPartition> partitions) override;
  core::Status resume(std::span<const core::StreamPartition> partitions) override;
  [[nodiscard]] std::vector<core::Position> positions() const override;
  [[nodiscard]] bool at_end() const override { return at_end_; }
  [[nodiscard]] bool at_end(const core::StreamPartition&) const override { return at_end_; }
  void wake() override {}
  core::Status read_all(std::string_view topic, std::int32_t partition,
                        core::RecordHandler handler) override;
  void close(std::chrono::milliseconds deadline) override;

 private:
  struct Writer {
    explicit Writer(JournalTail reader) : tail(std::move(reader)) {}
    JournalTail tail;
    bool watched = false;
    bool paused = false;
    bool held = false;  // paused without the owner knowing of it
    bool dirty = true;  // may have records
    int idle_looks = 0;
  };

  void begin();
  void discover();
  void assign();
  void apply(const JournalWatch::Changes& changes);
  void look_around();
  Writer* oldest_ready();
  std::size_t hand_out(std::size_t max_records, core::RecordHandler handler);
  Writer* find(const std::string& name);

  std::string directory_;
  SourceOptions options_;
  bool all_compacted_;
  core::Log& log_;
  core::Counter& gaps_;
  JournalWatch watch_;
  std::map<std::string, std::unique_ptr<Writer>, std::less<>> writers_;
  std::optional<core::Error> pending_error_;
  std::chrono::steady_clock::time_point next_look_{};
  std::chrono::steady_clock::time_point next_full_look_{};
  bool begun_ = false;
  bool hold_new_ = false;  // paused until the owner's first resume()
  bool at_end_ = false;
  bool closed_ = false;
};

}  // namespace tocsin::ingest
