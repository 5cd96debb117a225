#include "insights/store/schema.h"

#include <string>

namespace tocsin::insights {
namespace {

// Times are microseconds, UTC. `slot`: what a later record of the same thing takes the place of.
constexpr const char* kTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE position(topic TEXT, stream TEXT, part INTEGER, next INTEGER, PRIMARY KEY(stream, part))
  STRICT, WITHOUT ROWID;
CREATE TABLE event(seq INTEGER PRIMARY KEY, slot TEXT UNIQUE, kind TEXT, time INTEGER, run TEXT,
  topic TEXT, part INTEGER, pos INTEGER, stamp INTEGER, key TEXT, headers BLOB, value BLOB) STRICT;
CREATE TABLE run(uid TEXT PRIMARY KEY, job TEXT, attempt INTEGER, phase TEXT, outcome TEXT,
  step INTEGER, step_seconds REAL, world INTEGER, started INTEGER, ended INTEGER, heard INTEGER,
  labels TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX run_heard ON run(heard);
CREATE TABLE issue(key TEXT, ordinal INTEGER, event_id TEXT, run TEXT, attempt INTEGER, rule TEXT,
  severity INTEGER, firing INTEGER, opened INTEGER, closed INTEGER, heard INTEGER, mode TEXT,
  step INTEGER, tensor TEXT, worker TEXT, summary TEXT, caused INTEGER, shadow INTEGER,
  reports INTEGER, PRIMARY KEY(key, ordinal)) STRICT, WITHOUT ROWID;
CREATE INDEX issue_run ON issue(run, opened);
CREATE TABLE told(key TEXT, seq INTEGER, event_id TEXT, episode INTEGER, PRIMARY KEY(key, seq))
  STRICT, WITHOUT ROWID;
CREATE INDEX told_seq ON told(seq);
)sql";

// What an issue that is said again writes: no index has its time, and its reports lie together.
constexpr const char* kPlaces = R"sql(
CREATE INDEX event_of_run ON event(run);
CREATE INDEX event_control ON event(run) WHERE kind = 'control';
CREATE INDEX event_loose ON event(time) WHERE run = '';
CREATE TABLE report_of_issue(key TEXT, event_id TEXT, ordinal INTEGER, PRIMARY KEY(key, event_id))
  STRICT, WITHOUT ROWID;
)sql";

// What nodes and labels ask: which issues opened within some days; what the past of commands asks. A file of any version gets it when a writer
// opens it.
constexpr const char* kLaterPlaces =
    "CREATE INDEX IF NOT EXISTS issue_opened ON issue(opened);"
    "CREATE INDEX IF NOT EXISTS event_command ON event(time) WHERE kind = 'command'";

// Of version 1.
constexpr const char* kMoves = R"sql(
INSERT INTO report_of_issue SELECT key, event_id, ordinal FROM report;
DROP TABLE report;
DROP INDEX event_run;
DROP INDEX event_kind;
)sql";

void number_tables(StoreDatabase& database) {
  database.run(("PRAGMA user_version = " + std::to_string(kStoreVersion)).c_str());
}

}  // namespace

core::Status prepare_store(StoreDatabase& database) {
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = NORMAL");
  const std::int64_t whose = database.number("PRAGMA application_id");
  const std::int64_t version = database.number("PRAGMA user_version");
  const std::int64_t tables = database.number("SELECT count(*) FROM sqlite_master");
  if (auto status = database.failure(); !status) return status;
  if (tables == 0) {
    database.run("BEGIN IMMEDIATE");
    database.run(kTables);
    database.run(kPlaces);
    database.run(kLaterPlaces);
    database.run(("PRAGMA application_id = " + std::to_string(kStoreId)).c_str());
    number_tables(database);
    database.run("COMMIT");
    return database.failure();
  }
  if (whose != kStoreId)
    return core::Error{core::Code::failed_precondition, "it is another program's file"};
  if (version == 1) {
    database.run("BEGIN IMMEDIATE");
    database.run(kPlaces);
    database.run(kMoves);
    database.run(kLaterPlaces);
    number_tables(database);
    auto moved = database.failure();
    database.run(moved ? "COMMIT" : "ROLLBACK");
    const auto done = database.failure();
    return moved ? done : moved;
  }
  if (version != kStoreVersion)
    return core::Error{core::Code::failed_precondition, "its tables are of version " +
                                                            std::to_string(version) + ", not " +
                                                            std::to_string(kStoreVersion)};
  database.run(kLaterPlaces);
  return database.failure();
}

}  // namespace tocsin::insights
