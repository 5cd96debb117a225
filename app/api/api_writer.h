// Writes what the API was asked for to its topics.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/mutex.h"
#include "core/record.h"
#include "core/record_publisher.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Thread-safe. Its publisher is opened by the first write, and anew after an error.
class ApiWriter {
 public:
  /// `transport` outlives it; `host` is this machine's name.
  ApiWriter(ingest::Transport& transport, std::string host)
      : transport_(transport), host_(std::move(host)) {}

  /// ok: the broker, or the journal's disk, has all of them. An error may leave some of them written.
  core::Status write(std::span<const core::OutRecord> records);

 private:
  core::Status send(std::span<const core::OutRecord> records) REQUIRES(mutex_);

  ingest::Transport& transport_;
  std::string host_;
  core::Mutex mutex_;
  std::unique_ptr<core::RecordPublisher> publisher_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::app
