// A part of a recorded topic, copied into a directory of its own: to keep what an issue was decided by
// longer than the topic does, and as the fixture of a golden test (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>
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
  /// Makes the directory. already_exists: there is something in it; unavailable: it cannot be made.
  static core::Result<std::unique_ptr<Slice>> create(const std::string& directory);

  /// One record of `telemetry`, with its bytes and its time. The first failure is kept.
  void add(const core::RecordView& record);
  /// All of it durable; nothing is added any more.
  core::Status close();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  explicit Slice(std::string directory) : directory_(std::move(directory)) {}

  std::string directory_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  core::Status status_;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace tocsin::app
