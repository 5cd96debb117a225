#include "ingest/journal/keeper.h"

#include <algorithm>
#include <utility>

#include "ingest/journal/fork.h"

namespace tocsin::ingest {
namespace {

using std::chrono::milliseconds;

// Each step is a transaction of its own, so that no writer waits for more than some milliseconds.
constexpr int kRecordsPerStep = 500;
constexpr int kStepsPerCall = 20;
constexpr milliseconds kLockWait{100};
// A compacted topic keeps a withdrawn key's tombstone this long, for readers that are behind.
constexpr std::chrono::hours kTombstones{24};
// Whoever looks for them reads the whole table: a router's state of 100 000 issues is 100 MB.
constexpr std::chrono::minutes kTombstonesEvery{10};
// Old records behind a younger one, whose producer's clock was wrong, are hundreds of pages away.
constexpr std::chrono::minutes kFarEvery{1};
// Free pages are used again; only what a burst left behind goes back to the file system.
constexpr std::int64_t kFreePages = 1024;
constexpr std::int64_t kPagesPerStep = 256;
// The log restarts by itself whenever no reader is in it; this large, somebody always was.
constexpr int kLargeLogPages = 16'384;

std::string before(core::WallTime now, core::Duration age) {
  return std::to_string(core::nanoseconds(now - age));
}

bool due(const std::optional<core::WallTime>& last, core::WallTime now, core::Duration every) {
  return !last || now < *last || now - *last >= every;
}

}  // namespace

core::Status JournalKeeper::keep(core::WallTime now) {
  core::Status first = core::ok();
  for (const auto file : kJournalFiles) {
    auto status = keep_file(file, now);
    if (status) continue;
    files_[static_cast<std::size_t>(file)].reset();
    // Somebody else has the write lock all the time: the next second will do.
    if (first && status.error().code != core::Code::unavailable) first = std::move(status);
  }
  return first;
}

core::Status JournalKeeper::keep_file(JournalFile file, core::WallTime now) {
  const JournalUse use;
  auto& kept = files_[static_cast<std::size_t>(file)];
  if (kept == nullptr || kept->replaced()) {
    auto opened = JournalDatabase::open(journal_path(directory_, file), JournalAccess::write);
    if (!opened) return opened.error();
    kept = std::move(*opened);
    kept->wait_for_locks(kLockWait);
  }
  auto& looked = tombstones_at_[static_cast<std::size_t>(file)];
  const bool withdraw = due(looked, now, kTombstonesEvery);
  auto& looked_far = far_at_[static_cast<std::size_t>(file)];
  const bool far = due(looked_far, now, kFarEvery);
  for (const auto& [name, topic] : topics_) {
    if (topic.file != file) continue;
    if (withdraw && topic.compacted) {
      if (auto status = tombstones(*kept, topic, now); !status) return status;
    }
    if (auto status = by_age(*kept, topic, now, far); !status) return status;
  }
  if (withdraw) looked = now;
  if (far) looked_far = now;
  auto sized = file == JournalFile::telemetry ? by_size(*kept) : control_.keep(*kept);
  if (!sized) return sized;
  if (auto status = give_back(*kept); !status) return status;
  return checkpoint(*kept);
}

core::Status JournalKeeper::tombstones(JournalDatabase& database, const JournalTopic& topic,
                                       core::WallTime now) {
  const std::string where =
      " FROM " + topic.table + " WHERE value IS NULL AND ts < " + before(now, kTombstones);
  const auto due = database.number("SELECT 1" + where + " LIMIT 1");
  if (!due) return due.error();
  return *due == 0 ? core::ok() : database.run(("DELETE" + where).c_str());
}

/// Deletes from the oldest record on. What a wrong clock dated into the future goes with the old
/// records behind it; what it dated into the past goes when it is the oldest.
core::Status JournalKeeper::by_age(JournalDatabase& database, const JournalTopic& topic,
                                   core::WallTime now, bool far) {
  auto age = topic.retention;
  if (topic.file == JournalFile::telemetry) {
    age = std::min(age.value_or(limits_.telemetry_age), limits_.telemetry_age);
  }
  if (!age) return core::ok();
  if (!far) {
    const auto old = database.number("SELECT coalesce((SELECT ts FROM " + topic.table +
                                     " ORDER BY id LIMIT 1) < " + before(now, *age) + ", 0)");
    if (!old) return old.error();
    if (*old == 0) return core::ok();
  }
  const std::string oldest = "(SELECT id, ts FROM " + topic.table + " ORDER BY id LIMIT " +
                             std::to_string(kRecordsPerStep) + ")";
  for (int i = 0; i < kStepsPerCall; ++i) {
    const auto last = database.number("SELECT coalesce(max(id), -1) FROM " + oldest +
                                      " WHERE ts < " + before(now, *age));
    if (!last) return last.error();
    if (*last < 0) return core::ok();
    const std::string remove =
        "DELETE FROM " + topic.table + " WHERE id <= " + std::to_string(*last);
    if (auto status = database.run(remove.c_str()); !status) return status;
  }
  return core::ok();
}

/// Raw tensors go first, then the oldest telemetry. Acknowledgements are few and stay for their time.
core::Status JournalKeeper::by_size(JournalDatabase& database) {
  const auto pages = database.number("PRAGMA page_count");
  if (!pages) return pages.error();
  const auto page = database.number("PRAGMA page_size");
  if (!page) return page.error();
  const auto oldest = [&](const char* table) {
    return database.number(
        ("SELECT id FROM " + std::string(table) + " ORDER BY id LIMIT 1").c_str(), -1);
  };
  for (int i = 0; i < kStepsPerCall; ++i) {
    const auto free = database.number("PRAGMA freelist_count");
    if (!free) return free.error();
    const auto used = static_cast<std::uint64_t>((*pages - *free) * *page);
    if (used <= limits_.telemetry_bytes) return core::ok();
    const char* table = core::topic::kTensors;  // its name is that of the table
    auto first = oldest(table);
    if (first && *first < 0) first = oldest(table = core::topic::kTelemetry);
    if (!first) return first.error();
    if (*first < 0) return core::ok();
    // The oldest, and no more of them than have to go: records may be of a megabyte.
    const std::string sizes = "SELECT id, coalesce(length(value), 0) AS bytes FROM " +
                              std::string(table) + " ORDER BY id LIMIT " +
                              std::to_string(kRecordsPerStep);
    const std::string older =
        "SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS behind FROM (" + sizes + ")";
    const auto removed = database.run(
        ("DELETE FROM " + std::string(table) + " WHERE id IN (SELECT id FROM (" + older +
         ") WHERE behind < " + std::to_string(used - limits_.telemetry_bytes) + ")")
            .c_str());
    if (!removed) return removed;
    log_.debug("journal_over_its_size", {{"topic", table}, {"bytes", used}});
  }
  return core::ok();
}

core::Status JournalKeeper::give_back(JournalDatabase& database) {
  const auto free = database.number("PRAGMA freelist_count");
  if (!free) return free.error();
  const auto pages = database.number("PRAGMA page_count");
  if (!pages) return pages.error();
  if (*free < std::max(kFreePages, *pages / 4)) return core::ok();
  return database.run(("PRAGMA incremental_vacuum(" + std::to_string(kPagesPerStep) + ")").c_str());
}

core::Status JournalKeeper::checkpoint(JournalDatabase& database) {
  const auto pages = database.checkpoint();
  if (!pages) return pages.error();
  if (*pages < kLargeLogPages) return core::ok();
  const auto again = database.checkpoint(true);
  return again ? core::ok() : core::Status(again.error());
}

}  // namespace tocsin::ingest
