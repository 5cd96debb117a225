#include "insights/series/series_schema.h"

#include <array>
#include <string>

namespace tocsin::insights {
namespace {

constexpr std::array<ColumnForm, 2> kScalarColumns{{{"value", true}, {"time", true}}};
constexpr std::array<ColumnForm, tensor_column::columns> kTensorColumns{{{"l2", true},
                                                                         {"time", true},
                                                                         {"mean", true},
                                                                         {"std", true},
                                                                         {"min", true},
                                                                         {"max", true},
                                                                         {"abs_max", true},
                                                                         {"abs_mean", true},
                                                                         {"zero", true},
                                                                         {"negative", true},
                                                                         {"nan", true},
                                                                         {"posinf", true},
                                                                         {"neginf", true},
                                                                         {"count"}}};
constexpr std::array<ColumnForm, 4> kClockColumns{
    {{"seconds", true}, {"end", true}, {"global"}, {"micro"}}};

constexpr std::array<ColumnForm, 1> kSystemColumns{{{"value", true}}};
constexpr std::array<ColumnForm, span_column_of::columns> kSpanColumns{
    {{"end", true}, {"start", true}, {"nanos"}, {"name_high"}, {"name_low"}, {"step"}}};

// `worst` is the bits of the greatest finite magnitude ever, which grow as it does; -1: there is none.
// A family's rows stand in chunks of one size, closed for good, and behind them in pieces, as they
// were committed: what a commit brings stands side by side, so that a row of each of many series fills a few
// pages instead of one of each series. Files of before have pieces by family, and are gone on with as they are.
// Its pyramid is of the chunks. A node is a run of its own (node_owner.h), and
// `run_node` says whose workers it served, from when to when. `open` is what a fold has begun and will
// go on with: a sweep of samples, the seconds of a step's phases.
constexpr const char* kSeriesTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE position(stream TEXT, part INTEGER, next INTEGER, PRIMARY KEY(stream, part))
  STRICT, WITHOUT ROWID;
CREATE TABLE run(id INTEGER PRIMARY KEY, uid TEXT UNIQUE, heard INTEGER, families INTEGER,
  refused INTEGER, tensors_gone INTEGER, bulk_gone INTEGER,
  histograms_gone INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE worker(id INTEGER PRIMARY KEY, run INTEGER, hash INTEGER, incarnation INTEGER,
  attempt INTEGER, rank INTEGER, node TEXT, UNIQUE(run, hash, incarnation, attempt)) STRICT;
CREATE TABLE run_node(run INTEGER, node INTEGER, x_first INTEGER, x_last INTEGER,
  PRIMARY KEY(run, node)) STRICT, WITHOUT ROWID;
CREATE TABLE open(worker INTEGER, what INTEGER, data BLOB, PRIMARY KEY(worker, what))
  STRICT, WITHOUT ROWID;
CREATE TABLE sequence(worker INTEGER, shard INTEGER, last INTEGER, PRIMARY KEY(worker, shard))
  STRICT, WITHOUT ROWID;
CREATE TABLE name(run INTEGER, kind INTEGER, hash INTEGER, text TEXT, ord INTEGER, role INTEGER,
  unit TEXT, direction INTEGER, shape TEXT, collections TEXT, PRIMARY KEY(run, kind, hash)) STRICT, WITHOUT ROWID;
CREATE TABLE family(id INTEGER PRIMARY KEY, run INTEGER, kind INTEGER, name INTEGER, worker INTEGER,
  mode INTEGER, k0 INTEGER, rows INTEGER, chunked INTEGER, x_first INTEGER, x_chunked INTEGER,
  x_last INTEGER, repeats INTEGER, worst INTEGER, bad_x INTEGER, UNIQUE(run, kind, name, worker, mode)) STRICT;
CREATE TABLE chunk(family INTEGER, x0 INTEGER, x1 INTEGER, data BLOB, PRIMARY KEY(family, x0))
  STRICT, WITHOUT ROWID;
CREATE TABLE piece(family INTEGER, x0 INTEGER, data BLOB, PRIMARY KEY(family, x0)) STRICT;
CREATE TABLE rollup(family INTEGER, col INTEGER, level INTEGER, block INTEGER, data BLOB,
  PRIMARY KEY(family, col, level, block)) STRICT, WITHOUT ROWID;
CREATE TABLE histogram(family INTEGER, x INTEGER, data BLOB, PRIMARY KEY(family, x))
  STRICT, WITHOUT ROWID;
)sql";

// What was lost. A file of any version gets these tables when a writer opens it.
constexpr const char* kLosses = R"sql(
CREATE TABLE IF NOT EXISTS frames_heard(worker INTEGER, shard INTEGER, last INTEGER, missing INTEGER,
  PRIMARY KEY(worker, shard)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lost(worker INTEGER, lane TEXT, reason TEXT, frames INTEGER, rows INTEGER,
  x_first INTEGER, x_last INTEGER, PRIMARY KEY(worker, lane, reason)) STRICT, WITHOUT ROWID;
)sql";

// What of a family is gone by its age: before rows_from there are no rows, before from_N no buckets of the
// N-th level above the lowest. `bad_chunk`: chunks that could not be read any more and were dropped. A file of any version gets the table when a writer opens it.
constexpr const char* kAged = R"sql(
CREATE TABLE IF NOT EXISTS aged(family INTEGER PRIMARY KEY, rows_from INTEGER, from_0 INTEGER,
  from_1 INTEGER, from_2 INTEGER, from_3 INTEGER, from_4 INTEGER, rows_gone INTEGER) STRICT;
CREATE TABLE IF NOT EXISTS bad_chunk(family INTEGER, x0 INTEGER, x1 INTEGER, rows INTEGER,
  PRIMARY KEY(family, x0)) STRICT, WITHOUT ROWID;
)sql";

// When a worker first said where it is. A file of any version gets the table when a writer opens it.
constexpr const char* kPlaced = R"sql(
CREATE TABLE IF NOT EXISTS placed(worker INTEGER PRIMARY KEY, said INTEGER) STRICT;
)sql";

// A file of version 3 keeps its curves: its topics may have dropped them.
constexpr std::int64_t kWithoutHistograms = 3;
constexpr const char* kHistogramsToo = R"sql(
CREATE TABLE histogram(family INTEGER, x INTEGER, data BLOB, PRIMARY KEY(family, x))
  STRICT, WITHOUT ROWID;
ALTER TABLE run ADD COLUMN histograms_gone INTEGER NOT NULL DEFAULT 0;
)sql";

}  // namespace

std::span<const ColumnForm> columns_of(FamilyKind kind) {
  if (kind == FamilyKind::clock) return kClockColumns;
  if (kind == FamilyKind::tensor) return kTensorColumns;
  if (kind == FamilyKind::system) return kSystemColumns;
  if (kind == FamilyKind::span) return kSpanColumns;
  return kScalarColumns;
}

std::optional<std::size_t> tensor_column_of(std::string_view statistic) {
  for (std::size_t at = 0; at < kTensorColumns.size(); ++at) {
    if (at != tensor_column::time && kTensorColumns[at].rolled &&
        kTensorColumns[at].name == statistic)
      return at;
  }
  return std::nullopt;
}

std::vector<std::string> tensor_statistics() {
  std::vector<std::string> out;
  for (const ColumnForm& form : kTensorColumns) {
    if (tensor_column_of(form.name)) out.emplace_back(form.name);
  }
  return out;
}

core::Status prepare_series(StoreDatabase& database) {
  database.run("PRAGMA page_size = 16384");
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = NORMAL");
  // A commit of many ranks changes a page of each of their series, 150 MiB of them: the log has room for one beside
  // what has gathered, and gives back what is beyond.
  database.run("PRAGMA wal_autocheckpoint = 4096");  // pages: 64 MiB
  database.run("PRAGMA journal_size_limit = 67108864");
  const std::int64_t whose = database.number("PRAGMA application_id");
  const std::int64_t version = database.number("PRAGMA user_version");
  const std::int64_t tables = database.number("SELECT count(*) FROM sqlite_master");
  if (auto status = database.failure(); !status) return status;
  if (tables == 0) {
    database.run("BEGIN IMMEDIATE");
    database.run(kSeriesTables);
    database.run(kLosses);
    database.run(kAged);
    database.run(kPlaced);
    database.run(("PRAGMA application_id = " + std::to_string(kSeriesStoreId)).c_str());
    database.run(("PRAGMA user_version = " + std::to_string(kSeriesVersion)).c_str());
    database.run("COMMIT");
    return database.failure();
  }
  if (whose != kSeriesStoreId)
    return core::Error{core::Code::failed_precondition, "it is another program's file"};
  if (version == kWithoutHistograms) {
    database.run("BEGIN IMMEDIATE");
    database.run(kHistogramsToo);
    database.run(kLosses);
    database.run(kAged);
    database.run(kPlaced);
    database.run(("PRAGMA user_version = " + std::to_string(kSeriesVersion)).c_str());
    database.run("COMMIT");
    return database.failure();
  }
  if (version != kSeriesVersion)
    return core::Error{core::Code::failed_precondition, "its tables are of version " +
                                                            std::to_string(version) + ", not " +
                                                            std::to_string(kSeriesVersion)};
  database.run(kLosses);
  database.run(kAged);
  database.run(kPlaced);
  return database.failure();
}

}  // namespace tocsin::insights
