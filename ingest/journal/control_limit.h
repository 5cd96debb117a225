// The size of control.db: what goes when it is full, and what never does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/result.h"
#include "ingest/journal/database.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

/// Takes the oldest records of whichever topic is the largest, so that a storm in one topic takes
/// nothing of the others. Never: the newest record of a key (compacted topics), what a reader has not
/// passed (issues, notifications that are not delivered yet), and deliveries as young as the oldest
/// notification that is still open: a restart reads both.
class ControlLimit {
 public:
  /// Of the limit, from which on people are warned.
  static constexpr double kNearly = 0.8;

  ControlLimit(const JournalTopics& topics, std::uint64_t bytes, core::Log& log)
      : topics_(topics), bytes_(bytes), log_(log) {}

  /// A little per call, until the file holds no more than the limit.
  core::Status keep(JournalDatabase& control);

  /// Bytes that records and indexes of the file hold; free pages are used again.
  static core::Result<std::uint64_t> used(JournalDatabase& database);

 private:
  struct Class {
    const JournalTopic* topic = nullptr;
    std::int64_t until = 0;   // ids below it may go
    std::uint64_t bytes = 0;  // about
  };
  core::Result<std::optional<Class>> largest(JournalDatabase& control);
  core::Result<std::int64_t> read_until(JournalDatabase& control, const JournalTopic& topic);
  core::Result<std::int64_t> done_until(JournalDatabase& control, const JournalTopic& deliveries);

  const JournalTopics& topics_;
  const std::uint64_t bytes_;
  core::Log& log_;
  bool told_ = false;  // that it is full of what is needed
};

}  // namespace tocsin::ingest
