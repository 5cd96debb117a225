// RecordSource on a journal: one stream per topic, read in the order of its ids.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "core/record_source.h"
#include "core/telemetry.h"
#include "ingest/journal/database.h"
#include "ingest/journal/directory.h"
#include "ingest/journal/layout.h"
#include "ingest/journal/pace.h"
#include "ingest/journal/watch.h"

namespace tocsin::ingest {

class JournalSource final : public core::RecordSource {
 public:
  /// `owner`: the lock of options.group, null without one. The topics are known.
  JournalSource(std::string directory, const JournalTopics& topics, SourceOptions options,
                std::shared_ptr<GroupLock> owner, core::Log& log, core::Telemetry& telemetry,
                JournalAccess access = JournalAccess::read);
  ~JournalSource() override { close({}); }
  JournalSource(const JournalSource&) = delete;
  JournalSource& operator=(const JournalSource&) = delete;

  core::Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t max_records,
                                 core::RecordHandler handler) override;
  core::Status seek(const core::Position& position) override;
  core::Status pause(std::span<const core::StreamPartition> partitions) override;
  core::Status resume(std::span<const core::StreamPartition> partitions) override;
  [[nodiscard]] std::vector<core::Position> positions() const override;
  [[nodiscard]] bool at_end() const override;
  [[nodiscard]] bool at_end(const core::StreamPartition& where) const override;
  void wake() override { watch_.wake(); }
  core::Status read_all(std::string_view topic, std::int32_t partition,
                        std::optional<core::WallTime> since, core::RecordHandler handler) override;
  void close(std::chrono::milliseconds deadline) override;

  [[nodiscard]] const std::string& group() const { return options_.group; }
  [[nodiscard]] const std::shared_ptr<GroupLock>& owner() const { return owner_; }

 private:
  struct Stream {
    const JournalTopic* topic = nullptr;
    std::int64_t next = -1;  // -1: the oldest there is
    bool paused = false;
    bool at_end = false;  // as of the last look
    Statement rows;       // from an id on
    Statement end;        // the id that comes next
  };
  Stream* find(const core::StreamPartition& where);
  core::Result<JournalDatabase*> database(JournalFile file);
  core::Status begin();
  core::Result<std::optional<std::int64_t>> committed(const std::string& topic);
  core::Result<std::size_t> look(std::size_t max_records, core::RecordHandler handler);
  void note_look(std::size_t found);
  core::Status read(Stream& stream, std::size_t max_records, core::RecordHandler handler,
                    std::size_t& count);
  core::Status look_for_end(Stream& stream);
  core::Status check_files();
  core::Error gap(Stream& stream, std::int64_t first);

  const std::string directory_;
  const JournalTopics& topics_;
  const SourceOptions options_;
  const JournalAccess access_;
  std::shared_ptr<GroupLock> owner_;
  core::Log& log_;
  core::Counter& gaps_;
  JournalWatch watch_;
  std::array<std::unique_ptr<JournalDatabase>, 2> databases_;  // by JournalFile
  std::vector<Stream> streams_;                                // destroyed before databases_
  std::size_t turn_ = 0;                                       // which stream is read first
  std::chrono::steady_clock::time_point next_check_{};
  JournalPace pace_;
  bool begun_ = false;
  bool closed_ = false;
};

}  // namespace tocsin::ingest
