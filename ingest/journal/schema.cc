#include "ingest/journal/schema.h"

#include <memory>
#include <utility>
#include <vector>

#include "ingest/journal/database.h"
#include "ingest/journal/directory.h"
#include "ingest/journal/fork.h"

namespace tocsin::ingest {
namespace {

std::string sql_text(std::string_view text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string("''") : std::string(1, c);
  return all + "'";
}

/// A table per topic: records lie in the order of their ids, whole, one page run each. (One table
/// for all, WITHOUT ROWID, appends at half the speed and takes up to three times the space.)
std::string topic_sql(const JournalTopic& topic) {
  std::string sql = "CREATE TABLE " + topic.table +
                    "(id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, key BLOB, value BLOB, "
                    "headers BLOB);";
  if (topic.compacted) {
    // With it INSERT OR REPLACE deletes the older record of a key in the same transaction.
    sql += "CREATE UNIQUE INDEX " + topic.table + "_latest ON " + topic.table + "(key);";
  }
  return sql + "INSERT INTO topic(name, next) VALUES(" + sql_text(topic.name) + ", 0);";
}

std::string schema(JournalFile file, const JournalTopics& topics, const std::string& machine,
                   std::int64_t now) {
  std::string sql =
      "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
      "CREATE TABLE topic(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
      "next INTEGER NOT NULL);"
      "INSERT INTO meta VALUES('machine', " +
      sql_text(machine) + "), ('created', " + std::to_string(now) + ");";
  if (file == JournalFile::control) {
    sql +=
        "CREATE TABLE position(consumer TEXT, topic TEXT, next INTEGER NOT NULL, "
        "PRIMARY KEY(consumer, topic)) WITHOUT ROWID;"
        "CREATE TABLE lease(name TEXT PRIMARY KEY, holder INTEGER NOT NULL, "
        "expires INTEGER NOT NULL) WITHOUT ROWID;";
  }
  for (const auto& [name, topic] : topics) {
    if (topic.file == file) sql += topic_sql(topic);
  }
  return sql;
}

core::Status check_machine(JournalDatabase& database, const std::string& directory,
                           const std::string& machine) {
  auto query = database.prepare("SELECT value FROM meta WHERE key = 'machine'");
  if (!query) return query.error();
  const int step = query->step();
  if (step != SQLITE_ROW && step != SQLITE_DONE) return database.error();
  const std::string theirs(step == SQLITE_ROW ? query->bytes(0) : "");
  if (theirs.empty() || machine.empty() || theirs == machine) return core::ok();
  return refused_journal(directory,
                         "was made on another machine (if it was moved here for good: `tocsin "
                         "journal salvage " +
                             directory + " NEWFOLDER` makes it ours)");
}

/// Tables of topics that came with a newer version.
core::Status add_topics(JournalDatabase& database, JournalFile file, const JournalTopics& topics) {
  std::string missing;
  for (const auto& [name, topic] : topics) {
    if (topic.file != file) continue;
    const auto known = database.number("SELECT 1 FROM topic WHERE name = " + sql_text(name));
    if (!known) return known.error();
    if (*known == 0) missing += topic_sql(topic);
  }
  if (missing.empty()) return core::ok();
  const auto added = database.run(("BEGIN IMMEDIATE;" + missing + "COMMIT;").c_str());
  if (!added) (void)database.run("ROLLBACK");  // somebody else may just have added them
  return added;
}

/// Ids are never used twice: a power cut may take the last records of a topic after a reader has
/// committed its position behind them, so new ids start at the furthest position anybody holds.
core::Status lift_ids(JournalDatabase& telemetry, JournalDatabase& control) {
  auto furthest = control.prepare("SELECT topic, max(next) FROM position GROUP BY topic");
  if (!furthest) return furthest.error();
  std::vector<std::pair<std::string, std::int64_t>> positions;
  int step = furthest->step();
  for (; step == SQLITE_ROW; step = furthest->step()) {
    positions.emplace_back(furthest->bytes(0), furthest->integer(1));
  }
  if (step != SQLITE_DONE) return control.error();
  for (auto* database : {&telemetry, &control}) {
    for (const auto& [topic, next] : positions) {
      const std::string behind =
          " WHERE name = " + sql_text(topic) + " AND next < " + std::to_string(next);
      const auto due = database->number("SELECT 1 FROM topic" + behind);
      if (!due) return due.error();
      if (*due == 0) continue;  // nearly always: no lock is taken
      const std::string lift = "UPDATE topic SET next = " + std::to_string(next) + behind;
      if (auto lifted = database->run(lift.c_str()); !lifted) return lifted;
    }
  }
  return core::ok();
}

}  // namespace

core::Status prepare_journal(const std::string& directory, const std::string& machine,
                             const JournalTopics& topics, std::int64_t now) {
  if (auto status = prepare_directory(directory); !status) return status;
  const JournalUse use;
  std::vector<std::unique_ptr<JournalDatabase>> files;
  for (const auto file : kJournalFiles) {
    const std::string path = journal_path(directory, file);
    if (auto made = JournalDatabase::create(path, schema(file, topics, machine, now)); !made) {
      return made;
    }
    auto database = JournalDatabase::open(path, JournalAccess::write);
    if (!database) return database.error();
    if (auto ours = check_machine(**database, directory, machine); !ours) return ours;
    if (auto added = add_topics(**database, file, topics); !added) return added;
    files.push_back(std::move(*database));
  }
  return lift_ids(*files[0], *files[1]);
}

}  // namespace tocsin::ingest
