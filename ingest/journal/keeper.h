// What keeps a journal small: retention, checkpoints, space given back. One call does a little.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/log.h"
#include "core/result.h"
#include "core/time.h"
#include "ingest/journal/control_limit.h"
#include "ingest/journal/database.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

struct JournalLimits {
  core::Duration telemetry_age{};     // of telemetry.db's topics, beside their own retention
  std::uint64_t telemetry_bytes = 0;  // of telemetry.db
  std::uint64_t control_bytes = 0;    // of control.db
};

/// Not thread-safe. Any number of processes may keep one journal; they only divide the work.
class JournalKeeper {
 public:
  JournalKeeper(std::string directory, const JournalTopics& topics, JournalLimits limits,
                core::Log& log)
      : directory_(std::move(directory)),
        topics_(topics),
        limits_(limits),
        log_(log),
        control_(topics, limits.control_bytes, log) {}

  /// Both files, for at most a few tenths of a second; call it every second.
  core::Status keep(core::WallTime now);

 private:
  core::Status keep_file(JournalFile file, core::WallTime now);
  core::Status tombstones(JournalDatabase& database, const JournalTopic& topic, core::WallTime now);
  /// `far`: also when the oldest record is not too old.
  core::Status by_age(JournalDatabase& database, const JournalTopic& topic, core::WallTime now,
                      bool far);
  core::Status by_size(JournalDatabase& database);
  core::Status give_back(JournalDatabase& database);
  core::Status checkpoint(JournalDatabase& database);

  const std::string directory_;
  const JournalTopics& topics_;
  const JournalLimits limits_;
  core::Log& log_;
  ControlLimit control_;
  std::unique_ptr<JournalDatabase> files_[2];       // by JournalFile
  std::optional<core::WallTime> tombstones_at_[2];  // when they were looked for last
  std::optional<core::WallTime> far_at_[2];         // … and old records behind younger ones
};

}  // namespace tocsin::ingest
