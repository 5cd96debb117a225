// What the engines of first shards said of their runs: the topic `registry`, read by an engine that
// has further shards of such runs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/issue.h"
#include "core/log.h"
#include "core/record_source.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

/// Lives on the thread of one engine. Nothing is opened before the first find().
class RegistryReader {
 public:
  using Open = std::function<core::Result<std::unique_ptr<core::RecordSource>>()>;

  RegistryReader(Open open, core::Log& log) : open_(std::move(open)), log_(log) {}

  /// Reads on, some records at a time, at most every second. True: something may be new.
  bool read(core::Duration now);
  /// The newest event of the run; nullptr: nothing was read of it.
  [[nodiscard]] const core::JobEvent* find(const core::RunUid& run) const;
  /// With another engine.
  void start_over();

 private:
  Open open_;
  core::Log& log_;
  std::unique_ptr<core::RecordSource> source_;
  std::optional<core::Duration> next_;
  std::map<core::RunUid, core::JobEvent> runs_;
};

}  // namespace tocsin::app
