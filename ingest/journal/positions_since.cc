#include "ingest/journal/positions_since.h"

#include <filesystem>
#include <system_error>

#include "ingest/journal/database.h"
#include "ingest/journal/fork.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

core::Result<std::int64_t> journal_first_since(JournalDatabase& from, const JournalTopic& topic,
                                               core::WallTime since) {
  const auto end = from.number("SELECT coalesce(max(id), -1) + 1 FROM " + topic.table);
  if (!end) return end.error();
  auto at =
      from.prepare("SELECT id, ts FROM " + topic.table + " WHERE id >= ? ORDER BY id LIMIT 1");
  if (!at) return at.error();
  std::int64_t low = 0;  // everything below is older
  std::int64_t high = *end;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const StatementScope scope(*at);
    switch (at->bind(1, middle).step()) {
      case SQLITE_ROW:
        if (at->integer(1) < core::nanoseconds(since)) {
          low = at->integer(0) + 1;
        } else {
          high = middle;
        }
        break;
      case SQLITE_DONE:
        high = middle;  // retention took it in the meantime
        break;
      default:
        return from.error();
    }
  }
  return low;
}

core::Result<std::vector<core::Position>> journal_positions_since(
    const std::string& directory, const TopicsConfig& topics, const std::vector<std::string>& names,
    core::WallTime since) {
  const JournalUse use;
  const JournalTopics known = journal_topics(topics);
  std::vector<core::Position> out;
  for (const std::string& name : names) {
    const auto topic = known.find(name);
    if (topic == known.end()) return core::not_found("topic " + name + " is not one of ours");
    const std::string file = journal_path(directory, topic->second.file);
    std::error_code unknown;
    if (!std::filesystem::exists(file, unknown)) continue;
    auto from = JournalDatabase::open(file, JournalAccess::read);
    if (!from) return from.error();
    const auto first = journal_first_since(**from, topic->second, since);
    if (!first) return first.error();
    out.push_back({{name, 0}, *first});
  }
  return out;
}

}  // namespace tocsin::ingest
