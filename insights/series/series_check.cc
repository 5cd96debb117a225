#include "insights/series/series_check.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "insights/series/exponential_counts.h"
#include "insights/series/pyramid.h"
#include "insights/series/series_schema.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr const char* kFamilies =
    "SELECT f.id, f.kind, f.k0, f.rows, f.chunked, f.x_chunked, f.x_last, coalesce(r.uid, '?'),"
    " coalesce(n.text, 'series ' || f.id), %s FROM family f LEFT JOIN run r ON r.id = f.run LEFT "
    "JOIN"
    " name n ON n.run = f.run AND n.kind = f.kind AND n.hash = f.name %s ORDER BY f.id";

// A file that no writer of this version has opened has dropped nothing by age.
std::string families_sql(StoreDatabase& database) {
  const bool aged = database.number("SELECT count(*) FROM sqlite_master WHERE name = 'aged'") > 0;
  std::string out = kFamilies;
  out.replace(out.find("%s"), 2,
              aged ? "coalesce(a.rows_from, 0), coalesce(a.rows_gone, 0)" : "0, 0");
  out.replace(out.find("%s"), 2, aged ? "LEFT JOIN aged a ON a.family = f.id" : "");
  return out;
}
constexpr std::pair<const char*, const char*> kOrphans[] = {
    {"series of no run", "SELECT count(*) FROM family WHERE run NOT IN (SELECT id FROM run)"},
    {"chunks of no series",
     "SELECT count(*) FROM chunk WHERE family NOT IN (SELECT id FROM family)"},
    {"pieces of no series",
     "SELECT count(*) FROM piece WHERE family NOT IN (SELECT id FROM family)"},
    {"blocks of no series",
     "SELECT count(*) FROM rollup WHERE family NOT IN (SELECT id FROM family)"},
    {"histograms of no series",
     "SELECT count(*) FROM histogram WHERE family NOT IN (SELECT id FROM family)"}};

std::string bad_chunks_sql(StoreDatabase& database) {
  return database.number("SELECT count(*) FROM sqlite_master WHERE name = 'bad_chunk'") > 0
             ? "SELECT x0, x1, rows FROM bad_chunk WHERE family = ? ORDER BY x0"
             : "SELECT 0, 0, 0 WHERE ? < 0";
}

struct CheckedFamily {
  std::int64_t id = 0, k0 = -1, rows = 0, chunked = 0, x_chunked = -1, x_last = -1;
  std::int64_t rows_from = 0, rows_gone = 0;  // by their age
  FamilyKind kind = FamilyKind::scalar;
  std::string called;
};

using ColumnLevel = std::pair<std::size_t, std::int64_t>;

class SeriesCheck {
 public:
  SeriesCheck(StoreDatabase& database, StoreFindings& out)
      : out_(out),
        chunks_(database.prepare("SELECT x0, x1, data FROM chunk WHERE family = ? ORDER BY x0")),
        pieces_(database.prepare("SELECT data FROM piece WHERE family = ? ORDER BY x0")),
        bad_chunks_(database.prepare(bad_chunks_sql(database))),
        blocks_(database.prepare("SELECT col, level, block, data FROM rollup WHERE family = ?")),
        histograms_(database.prepare("SELECT x, data FROM histogram WHERE family = ?")) {}

  void check(const CheckedFamily& family) {
    const auto columns = columns_of(family.kind);
    std::map<ColumnLevel, Buckets> made;
    std::int64_t last = family.rows_from - 1;
    std::int64_t chunked = family.rows_gone + read_gaps(family);
    chunks_.bind(1, family.id);
    while (chunks_.next()) {
      const auto rows = rows_of(family, chunks_.text(2), last);
      if (!rows) continue;
      chunked += static_cast<std::int64_t>(rows->size());
      if (rows->x.front() != chunks_.integer(0) || rows->x.back() != chunks_.integer(1))
        say(family, "a chunk has other steps than its row says");
      for (std::size_t k = 0; k < columns.size() && family.k0 >= 0; ++k) {
        if (!columns[k].rolled) continue;
        visit_rolled(*rows, k, family.k0,
                     [&](std::int64_t level, std::int64_t at, const Bucket& part) {
                       made[{k, level}][at].append(part);
                     });
      }
    }
    chunks_.reset();
    for (const auto& gap : gaps_) last = std::max(last, gap.second);
    if (chunked != family.chunked || last != family.x_chunked)
      say(family, "its chunks have " + std::to_string(chunked) + " rows up to " +
                      std::to_string(last) + ", not " + std::to_string(family.chunked) + " up to " +
                      std::to_string(family.x_chunked));
    check_pieces(family, chunked, last);
    check_blocks(family, made);
    check_histograms(family);
  }

 private:
  void say(const CheckedFamily& family, const std::string& what) {
    out_.add(family.called + ": " + what);
  }

  // Chunks that were dropped because they could not be read; how many rows they had.
  std::int64_t read_gaps(const CheckedFamily& family) {
    gaps_.clear();
    std::int64_t rows = 0;
    bad_chunks_.bind(1, family.id);
    while (bad_chunks_.next()) {
      gaps_.emplace_back(bad_chunks_.integer(0), bad_chunks_.integer(1));
      rows += bad_chunks_.integer(2);
      out_.note(family.called + ": values from " + bad_chunks_.text(0) + " to " +
                bad_chunks_.text(1) +
                " could not be read and were dropped; their buckets are there");
    }
    bad_chunks_.reset();
    return rows;
  }

  // Whole, of the right columns, and behind `last`, which moves on.
  std::optional<SeriesRows> rows_of(const CheckedFamily& family, std::string_view bytes,
                                    std::int64_t& last) {
    auto rows = decode_rows(bytes);
    ++out_.pieces;
    if (!rows || rows->size() == 0 || rows->columns.size() != columns_of(family.kind).size()) {
      say(family, "rows behind " + std::to_string(last) + " cannot be decoded");
      return std::nullopt;
    }
    for (const std::int64_t x : rows->x) {
      if (x <= last) {
        say(family, "its steps do not grow at " + std::to_string(x));
        break;
      }
      last = x;
    }
    out_.rows += static_cast<std::int64_t>(rows->size());
    return rows;
  }

  void check_pieces(const CheckedFamily& family, std::int64_t rows, std::int64_t last) {
    pieces_.bind(1, family.id);
    while (pieces_.next()) {
      if (const auto some = rows_of(family, pieces_.text(0), last))
        rows += static_cast<std::int64_t>(some->size());
    }
    pieces_.reset();
    if (rows != family.rows || (rows > 0 && last != family.x_last))
      say(family, "it has " + std::to_string(rows) + " rows up to " + std::to_string(last) +
                      ", not " + std::to_string(family.rows) + " up to " +
                      std::to_string(family.x_last));
  }

  void check_blocks(const CheckedFamily& family, std::map<ColumnLevel, Buckets>& made) {
    std::map<ColumnLevel, Buckets> stored;
    blocks_.bind(1, family.id);
    while (blocks_.next()) {
      ++out_.pieces;
      Buckets& into = stored[{static_cast<std::size_t>(blocks_.integer(0)), blocks_.integer(1)}];
      if (!decode_block(blocks_.text(3), blocks_.integer(2) * kBlockBuckets, into))
        say(family, "a block of its pyramid cannot be decoded");
    }
    blocks_.reset();
    for (const auto& [where, buckets] : made) {
      if (!same(kept(family, where.second, buckets),
                kept(family, where.second, std::move(stored[where]))))
        say(family, "level " + std::to_string(where.second) + " of column " +
                        std::string(columns_of(family.kind)[where.first].name) +
                        " is not what its chunks give");
    }
    if (stored.size() > made.size() && family.rows_gone == 0 && gaps_.empty())
      say(family, "its pyramid has levels that no chunk gives");
  }

  /// Without the buckets that had rows which are gone: their chunks cannot give them again.
  [[nodiscard]] Buckets kept(const CheckedFamily& family, std::int64_t level,
                             Buckets buckets) const {
    std::erase_if(buckets, [&](const auto& entry) {
      const std::int64_t x = entry.first << level;
      const std::int64_t end = (entry.first + 1) << level;
      return x < family.rows_from || std::any_of(gaps_.begin(), gaps_.end(), [&](const auto& gap) {
               return gap.first < end && gap.second >= x;
             });
    });
    return buckets;
  }

  /// A sum that has overflowed twice is NaN, which equals nothing.
  static bool same_bits(const Bucket& a, const Bucket& b) {
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    return a.n == b.n && a.nan == b.nan && a.posinf == b.posinf && a.neginf == b.neginf &&
           bits(a.min) == bits(b.min) && bits(a.max) == bits(b.max) &&
           bits(a.first) == bits(b.first) && bits(a.last) == bits(b.last) &&
           bits(a.sum) == bits(b.sum) && a.bad_x == b.bad_x;
  }
  static bool same(const Buckets& a, const Buckets& b) {
    if (a.size() != b.size()) return false;
    auto other = b.begin();
    for (const auto& one : a) {
      if (one.first != other->first || !same_bits(one.second, other->second)) return false;
      ++other;
    }
    return true;
  }

  void check_histograms(const CheckedFamily& family) {
    if (family.kind != FamilyKind::tensor) return;
    histograms_.bind(1, family.id);
    while (histograms_.next()) {
      ++out_.pieces;
      if (!decode_counts(histograms_.text(1)))
        say(family, "the histogram of step " + std::to_string(histograms_.integer(0)) +
                        " cannot be decoded");
    }
    histograms_.reset();
  }

  StoreFindings& out_;
  StoreStatement chunks_, pieces_, bad_chunks_, blocks_, histograms_;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps_;  // of the family: x0 and x1
};

}  // namespace

core::Result<StoreFindings> check_series(const std::string& path) {
  auto database = open_to_check(path, kSeriesStoreId);
  if (!database) return database.error();
  StoreFindings out;
  check_pages(**database, out);
  out.runs = (*database)->number("SELECT count(*) FROM run");
  for (const auto& [what, sql] : kOrphans) {
    if (const std::int64_t count = (*database)->number(sql); count > 0)
      out.add(std::to_string(count) + " " + what);
  }
  {
    SeriesCheck check(**database, out);
    StoreStatement get = (*database)->prepare(families_sql(**database));
    while (get.next()) {
      CheckedFamily one{get.integer(0),
                        get.integer(2),
                        get.integer(3),
                        get.integer(4),
                        get.integer(5),
                        get.integer(6),
                        get.integer(9),
                        get.integer(10),
                        static_cast<FamilyKind>(get.integer(1)),
                        get.text(7) + " " + get.text(8)};
      if (one.k0 > 46) {
        out.add(one.called + ": its pyramid begins at level " + std::to_string(one.k0));
        one.k0 = -1;
      }
      check.check(one);
    }
  }
  if (auto status = (*database)->failure(); !status) out.add(status.error().message);
  return out;
}

}  // namespace tocsin::insights
