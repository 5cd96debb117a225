#include "ingest/journal/control_limit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/topics.h"

namespace tocsin::ingest {
namespace {

constexpr int kRecordsPerDelete = 500;
constexpr int kDeletesPerCall = 20;
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

std::string sum_of(const std::string& table, const char* order) {
  return "SELECT coalesce(avg(coalesce(length(value), 0) + coalesce(length(headers), 0) + 40), 0) "
         "FROM (SELECT value, headers FROM " +
         table + " ORDER BY id " + order + " LIMIT 100)";
}

// Of the first record from that id on; kAll: there is none.
core::Result<std::int64_t> ts_from(JournalDatabase& control, const JournalTopic& topic,
                                   std::int64_t id) {
  return control.number("SELECT ts FROM " + topic.table + " WHERE id >= " + std::to_string(id) +
                            " ORDER BY id LIMIT 1",
                        kAll);
}

}  // namespace

core::Result<std::uint64_t> ControlLimit::used(JournalDatabase& database) {
  const auto pages = database.number("PRAGMA page_count");
  if (!pages) return pages.error();
  const auto free = database.number("PRAGMA freelist_count");
  if (!free) return free.error();
  const auto page = database.number("PRAGMA page_size");
  if (!page) return page.error();
  return static_cast<std::uint64_t>((*pages - *free) * *page);
}

/// Where the slowest reader stands; 0 where none ever stood and one has to.
core::Result<std::int64_t> ControlLimit::read_until(JournalDatabase& control,
                                                    const JournalTopic& topic) {
  const bool unread =
      topic.name == core::topic::kIssues || topic.name == core::topic::kRouterOutbox;
  return control.number("SELECT coalesce(min(next), " + std::to_string(unread ? 0 : kAll) +
                        ") FROM position WHERE topic = '" + topic.name + "'");
}

/// Deliveries older than the oldest notification that is not done.
core::Result<std::int64_t> ControlLimit::done_until(JournalDatabase& control,
                                                    const JournalTopic& deliveries) {
  const auto outbox = topics_.find(core::topic::kRouterOutbox);
  if (outbox == topics_.end()) return kAll;
  const auto open = read_until(control, outbox->second);
  if (!open) return open.error();
  const auto since = ts_from(control, outbox->second, *open);
  if (!since || *since == kAll) return since;
  // Records stand in the order of their times, but for steps of the clock: halves find the place.
  auto low = control.number("SELECT coalesce(min(id), 0) FROM " + deliveries.table);
  auto high = control.number("SELECT coalesce(max(id), -1) + 1 FROM " + deliveries.table);
  while (low && high && *low < *high) {
    const std::int64_t middle = *low + (*high - *low) / 2;
    const auto at = ts_from(control, deliveries, middle);
    if (!at) return at;
    if (*at < *since) {
      *low = middle + 1;
    } else {
      *high = middle;
    }
  }
  return low;
}

core::Result<std::optional<ControlLimit::Class>> ControlLimit::largest(JournalDatabase& control) {
  std::optional<Class> out;
  for (const auto& [name, topic] : topics_) {
    if (topic.file != JournalFile::control || topic.compacted) continue;
    auto until = read_until(control, topic);
    if (until && name == core::topic::kRouterDeliveries) {
      const auto done = done_until(control, topic);
      if (!done) return done.error();
      until = std::min(*until, *done);
    }
    if (!until) return until.error();
    // Ids follow one another: what lies between the first and the last is about what is there.
    const auto first =
        control.number("SELECT id FROM " + topic.table + " ORDER BY id LIMIT 1", kAll);
    if (!first) return first.error();
    if (*first >= *until) continue;
    const auto last = control.number("SELECT max(id) FROM " + topic.table, *first);
    const auto old = control.number(sum_of(topic.table, "ASC"));
    const auto young = control.number(sum_of(topic.table, "DESC"));
    if (!last || !old || !young) return control.error();
    const Class one{&topic, *until,
                    static_cast<std::uint64_t>((*last - *first + 1) * (*old + *young) / 2)};
    if (!out || one.bytes > out->bytes) out = one;
  }
  return out;
}

core::Status ControlLimit::keep(JournalDatabase& control) {
  auto now = used(control);
  if (!now) return now.error();
  if (*now <= bytes_) {
    told_ = false;
    return core::ok();
  }
  const auto found = largest(control);
  if (!found) return found.error();
  if (!*found) {
    if (!std::exchange(told_, true)) {
      log_.warn(
          "control_db_full",
          {{"bytes", *now}, {"limit", bytes_}, {"reason", "all that it holds is still needed"}});
    }
    return core::ok();
  }
  const Class& one = **found;
  log_.debug("control_db_over_its_size", {{"topic", one.topic->name}, {"bytes", *now}});
  const std::string remove = "DELETE FROM " + one.topic->table + " WHERE id IN (SELECT id FROM " +
                             one.topic->table + " WHERE id < " + std::to_string(one.until) +
                             " ORDER BY id LIMIT " + std::to_string(kRecordsPerDelete) + ")";
  for (int i = 0; i < kDeletesPerCall && bytes_ < *now; ++i) {
    if (auto removed = control.run(remove.c_str()); !removed) return removed;
    now = used(control);
    if (!now) return now.error();
  }
  return core::ok();
}

}  // namespace tocsin::ingest
