// A part of a recorded topic, copied into a directory of its own: to keep what an issue was decided by
// longer than the topic does, and as the fixture of a golden test (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/log.h"
#include "core/record.h"
#include "core/record_publisher.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

class Slice {
 public:
  /// Where in a recording the copy of a run stands: what is behind the record that was added last.
  struct Mark {
    std::int64_t next = 0;   // offset in the recording
    std::uint64_t seen = 0;  // records of the run up to there
  };

  /// Makes the directory. already_exists: there is something in it; unavailable: it cannot be made.
  static core::Result<std::unique_ptr<Slice>> create(const std::string& directory);
  /// One that may be left unfinished, also by a kill, and gone on with: mark() says from where.
  /// `most`: bytes of the file; beyond them the oldest records go.
  static core::Result<std::unique_ptr<Slice>> go_on(const std::string& directory,
                                                    std::uint64_t most);

  /// One record of `telemetry`, with its bytes and its time. The first failure is kept.
  void add(const core::RecordView& record);
  /// The first failure of add(), if there was one.
  [[nodiscard]] const core::Status& status() const noexcept { return status_; }
  /// All of it durable; nothing is added any more.
  core::Status close();

  /// Of go_on(): nullopt while nothing is in it.
  [[nodiscard]] const std::optional<Mark>& mark() const noexcept { return mark_; }
  /// Of go_on(), once it is closed: what is in it.
  [[nodiscard]] core::Status count();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  explicit Slice(std::string directory) : directory_(std::move(directory)) {}
  core::Status open();
  void trim();

  std::string directory_;
  std::optional<std::uint64_t> most_;
  std::optional<Mark> mark_;
  std::uint64_t untrimmed_ = 0;  // bytes since the oldest went
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  core::Status status_;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tocsin::app
