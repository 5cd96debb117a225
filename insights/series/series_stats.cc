#include "insights/series/series_stats.h"

#include "core/identity.h"
#include "insights/series/node_owner.h"
#include "insights/series/series_schema.h"
#include "insights/store/database.h"
#include "insights/store/store_check.h"

namespace tocsin::insights {
namespace {

constexpr std::pair<FamilyKind, const char*> kClasses[] = {{FamilyKind::scalar, "scalars"},
                                                           {FamilyKind::clock, "clocks"},
                                                           {FamilyKind::tensor, "tensors"},
                                                           {FamilyKind::system, "system"},
                                                           {FamilyKind::span, "spans"}};

bool is_node(const std::string& uid) {
  const auto read = core::parse_run_uid(uid);
  return read && is_node_owner(*read);
}

// Summed over the rows of one table that belong to families of one kind.
std::int64_t summed(StoreDatabase& database, const std::string& what, const std::string& table,
                    FamilyKind kind) {
  StoreStatement get =
      database.prepare("SELECT coalesce(sum(" + what + "), 0) FROM family f JOIN " + table +
                       " t ON t.family = f.id WHERE f.kind = ?");
  get.bind(1, static_cast<std::int64_t>(kind));
  return get.next() ? get.integer(0) : 0;
}

}  // namespace

core::Result<std::map<std::string, std::int64_t>> rows_of_runs(const std::string& path) {
  auto opened = open_to_check(path, kSeriesStoreId);
  if (!opened) return opened.error();
  std::map<std::string, std::int64_t> out;
  {
    StoreStatement get = (*opened)->prepare(
        "SELECT r.uid, sum(f.rows) FROM run r JOIN family f ON f.run = r.id GROUP BY r.id");
    while (get.next()) {
      if (!is_node(get.text(0))) out[get.text(0)] = get.integer(1);
    }
  }
  if (auto status = (*opened)->failure(); !status) return status.error();
  return out;
}

core::Result<SeriesStats> series_stats(const std::string& path) {
  auto opened = open_to_check(path, kSeriesStoreId);
  if (!opened) return opened.error();
  StoreDatabase& database = **opened;
  SeriesStats out;
  {
    StoreStatement get = database.prepare("SELECT uid FROM run");
    while (get.next()) ++(is_node(get.text(0)) ? out.nodes : out.runs);
  }
  out.newest = database.number("SELECT coalesce(max(heard), 0) FROM run");
  const std::int64_t page = database.number("PRAGMA page_size");
  out.bytes = page * database.number("PRAGMA page_count");
  out.free_bytes = page * database.number("PRAGMA freelist_count");
  for (const auto& [kind, name] : kClasses) {
    ClassStats one;
    one.name = name;
    one.kind = kind;
    StoreStatement get =
        database.prepare("SELECT count(*), coalesce(sum(rows), 0) FROM family WHERE kind = ?");
    get.bind(1, static_cast<std::int64_t>(kind));
    if (!get.next() || get.integer(0) == 0) continue;
    one.series = get.integer(0);
    one.rows = get.integer(1);
    one.values = one.rows * static_cast<std::int64_t>(columns_of(kind).size());
    one.row_bytes = summed(database, "length(t.data)", "chunk", kind) +
                    summed(database, "length(t.data)", "piece", kind);
    one.pyramid_bytes = summed(database, "length(t.data)", "rollup", kind);
    if (database.number("SELECT count(*) FROM sqlite_master WHERE name = 'aged'") > 0)
      one.rows_gone = summed(database, "t.rows_gone", "aged", kind);
    if (kind == FamilyKind::tensor)
      one.histogram_bytes = summed(database, "length(t.data)", "histogram", kind);
    out.classes.push_back(std::move(one));
  }
  if (auto status = database.failure(); !status) return status.error();
  return out;
}

}  // namespace tocsin::insights
