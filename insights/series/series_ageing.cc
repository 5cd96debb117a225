// What a store of series drops because it is older than its class is kept.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "insights/series/series_statements.h"
#include "insights/series/series_writer.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kFamiliesOfALook = 256;
constexpr double kMicrosOfAMillisecond = 1000;
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

constexpr const char* kFamiliesBehind =
    "SELECT f.id, f.run, f.kind, f.name, f.worker, f.mode, f.k0, f.rows, f.chunked, f.x_chunked,"
    " f.x_last, coalesce(r.heard, 0), a.rows_from, a.from_0, a.from_1, a.from_2, a.from_3,"
    " a.from_4, a.rows_gone, coalesce(r.uid, '') FROM family f LEFT JOIN run r ON r.id = f.run "
    "LEFT JOIN aged a ON"
    " a.family = f.id WHERE f.id > ? ORDER BY f.id LIMIT ?";

// The column that says when a row was; a row of samples has it as its x.
std::size_t time_column(FamilyKind kind) {
  return kind == FamilyKind::span ? std::size_t{span_column_of::end} : kTimeColumn;
}

// Of rows whose times are not known nobody can say that they are old.
double newest_time(const SeriesRows& rows, FamilyKind kind) {
  if (rows.size() == 0) return std::numeric_limits<double>::infinity();
  if (kind == FamilyKind::system) return static_cast<double>(rows.x.back());
  double out = -std::numeric_limits<double>::infinity();
  for (const double time : rows.columns[time_column(kind)]) {
    if (std::isfinite(time)) out = std::max(out, time);
  }
  return std::isfinite(out) ? out : std::numeric_limits<double>::infinity();
}

}  // namespace

struct SeriesWriter::AgingFamily {
  std::int64_t id = 0;
  FamilyKey key;
  FamilyKind kind = FamilyKind::scalar;
  std::int64_t k0 = -1, rows = 0, chunked = 0, x_chunked = -1, x_last = -1;
  std::int64_t heard = 0;  // of its run or node
  std::array<std::int64_t, kKeptParts> from{};
  std::int64_t rows_gone = 0;
  bool changed = false;
  bool spared = false;

  /// In the unit of its times.
  [[nodiscard]] double heard_at() const {
    return static_cast<double>(heard) / (kind == FamilyKind::system ? kMicrosOfAMillisecond : 1);
  }
};

std::vector<SeriesWriter::AgingFamily> SeriesWriter::aging_families(std::size_t most) {
  std::vector<AgingFamily> out;
  StoreStatement get = database_->prepare(kFamiliesBehind);
  get.bind(1, aged_to_).bind(2, static_cast<std::int64_t>(most));
  while (get.next()) {
    AgingFamily one;
    one.id = get.integer(0);
    one.key = {get.integer(1), get.integer(2), static_cast<std::uint64_t>(get.integer(3)),
               get.integer(4), get.integer(5)};
    one.kind = static_cast<FamilyKind>(get.integer(2));
    one.k0 = get.integer(6);
    one.rows = get.integer(7);
    one.chunked = get.integer(8);
    one.x_chunked = get.integer(9);
    one.x_last = get.integer(10);
    one.heard = get.integer(11);
    for (std::size_t part = 0; part < kKeptParts; ++part)
      one.from[part] = get.integer(12 + static_cast<int>(part));
    one.rows_gone = get.integer(12 + static_cast<int>(kKeptParts));
    one.spared = spared_.contains(get.text(13 + static_cast<int>(kKeptParts)));
    out.push_back(one);
  }
  return out;
}

// False: there are more that are old.
bool SeriesWriter::drop_chunks(AgingFamily& family, double before, std::size_t& left) {
  StoreStatement& get = do_->old_chunks;
  get.bind(1, family.id);
  std::int64_t last = -1;  // x0 of the newest that is old
  std::int64_t bad = -1;   // x0 of one that cannot be decoded
  bool all = true;
  while (get.next()) {
    const std::uint64_t wanted =
        family.kind == FamilyKind::system ? 0 : std::uint64_t{1} << time_column(family.kind);
    const auto rows = decode_columns(get.text(2), wanted);
    if (!rows || rows->columns.size() != columns_of(family.kind).size()) {
      bad = get.integer(0);
      break;
    }
    if (!(newest_time(*rows, family.kind) < before)) break;
    if (left == 0) {
      all = false;
      break;
    }
    --left;
    last = get.integer(0);
    family.from[kRowsPart] = get.integer(1) + 1;
    family.rows_gone += static_cast<std::int64_t>(rows->size());
  }
  get.reset();
  if (bad >= 0) bad_chunks_.push_back({family.id, bad});
  if (last < 0) return all;
  family.changed = true;
  StoreStatement gone = database_->prepare("DELETE FROM chunk WHERE family = ? AND x0 <= ?");
  gone.bind(1, family.id).bind(2, last).run();
  if (family.kind == FamilyKind::tensor) {
    StoreStatement bins = database_->prepare("DELETE FROM histogram WHERE family = ? AND x < ?");
    bins.bind(1, family.id).bind(2, family.from[kRowsPart]).run();
    StoreStatement tell =
        database_->prepare("UPDATE run SET histograms_gone = 1 WHERE id = ? AND ?");
    tell.bind(1, std::get<0>(family.key)).bind(2, std::int64_t{database_->changes() > 0}).run();
  }
  return all;
}

// What never filled a chunk becomes one, so that its buckets stay when its rows go; once the run is quiet.
void SeriesWriter::close_open_rows(AgingFamily& family, double before) {
  if (family.from[kRowsPart] <= family.x_chunked || family.rows <= family.chunked) return;
  if (!(family.heard_at() < before)) return;
  StoreStatement& get = do_->old_piece;
  get.bind(1, family.id);
  const auto newest = get.next() ? decode_rows(get.text(0)) : std::nullopt;
  get.reset();
  if (!newest || newest->columns.size() != columns_of(family.kind).size()) return;
  if (!(newest_time(*newest, family.kind) < before)) return;
  const auto [known, fresh] = families_.try_emplace(family.key);
  bool there = true;
  if (fresh) known->second = read_family(family.key, there);
  Family& into = known->second;
  if (there && into.waiting.rows == 0) {
    const SeriesRows rows = pieces_of(into);
    into.pieces = 0;
    if (rows.size() > 0) {
      close_chunk(into, rows);
      const auto columns = columns_of(family.kind);
      for (std::size_t k = 0; k < columns.size(); ++k) {
        if (columns[k].rolled) roll(into, k, {&rows, 1});
      }
    }
    write_family(into);
    family.k0 = into.k0;
    family.chunked = into.chunked;
    family.x_chunked = into.x_chunked;
  }
  if (fresh) families_.erase(known);
}

void SeriesWriter::drop_blocks(AgingFamily& family, std::size_t part, double before,
                               std::size_t& left) {
  if (family.k0 < 0) return;
  const std::int64_t level = family.k0 + static_cast<std::int64_t>(part - 1) * kLevelStep;
  const bool samples = family.kind == FamilyKind::system;
  // Only what the part below has dropped too. Of a run that is quiet for as long that may be all.
  const std::int64_t below = family.from[part - 1];
  const std::int64_t limit = below > family.x_last && family.heard_at() < before ? kNoLimit : below;
  StoreStatement& get = do_->old_blocks;
  get.bind(1, family.id).bind(2, static_cast<std::int64_t>(samples ? 0 : time_column(family.kind)));
  get.bind(3, level);
  std::int64_t last = -1;
  while (left > 0 && get.next()) {
    const std::int64_t block = get.integer(0);
    const std::int64_t end = ((block + 1) * kBlockBuckets) << level;
    if (end > limit) break;
    double newest = std::min(static_cast<double>(end), static_cast<double>(family.x_last));
    if (!samples) {
      Buckets times;
      if (!decode_block(get.text(1), block * kBlockBuckets, times)) {
        database_->found_damage();
        break;
      }
      newest = -std::numeric_limits<double>::infinity();
      for (const auto& entry : times) {
        if (entry.second.n > 0) newest = std::max(newest, entry.second.max);
      }
    }
    if (!(newest < before)) break;
    --left;
    last = block;
    family.from[part] = end;
  }
  get.reset();
  if (last < 0) return;
  family.changed = true;
  StoreStatement gone = database_->prepare(
      "DELETE FROM rollup WHERE family = ? AND col = ? AND level = ? AND block <= ?");
  const auto columns = columns_of(family.kind);
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (!columns[k].rolled) continue;
    gone.bind(1, family.id).bind(2, static_cast<std::int64_t>(k)).bind(3, level).bind(4, last);
    gone.run();
  }
}

void SeriesWriter::keep_aged(const AgingFamily& family) {
  if (!family.changed) return;
  StoreStatement put =
      database_->prepare("INSERT OR REPLACE INTO aged VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  put.bind(1, family.id);
  for (std::size_t part = 0; part < kKeptParts; ++part)
    put.bind(2 + static_cast<int>(part), family.from[part]);
  put.bind(2 + static_cast<int>(kKeptParts), family.rows_gone).run();
  if (family.kind != FamilyKind::span) return;
  StoreStatement tell = database_->prepare("UPDATE run SET bulk_gone = 1 WHERE id = ?");
  tell.bind(1, std::get<0>(family.key)).run();
  // Spans have no buckets to be drawn from: the first one that is there is the first.
  const std::int64_t first = family.from[kRowsPart];
  StoreStatement begin =
      database_->prepare("UPDATE family SET x_first = max(x_first, ?) WHERE id = ?");
  begin.bind(1, first).bind(2, family.id).run();
  const auto known = families_.find(family.key);
  if (known != families_.end()) known->second.x_first = std::max(known->second.x_first, first);
}

// False: there is more that is old.
bool SeriesWriter::drop_old_of(AgingFamily& family, const KeepAges& keep, std::int64_t now,
                               std::size_t& left) {
  if (family.spared) return left > 0;
  const auto ages = ages_of(family.kind, keep);
  const auto before = [&](std::size_t part) {
    const auto age = std::chrono::duration_cast<std::chrono::microseconds>(ages[part]).count();
    const auto micros = static_cast<double>(now - age);
    return family.kind == FamilyKind::system ? micros / kMicrosOfAMillisecond : micros;
  };
  bool all = drop_chunks(family, before(kRowsPart), left);
  if (all) {
    close_open_rows(family, before(kRowsPart));
    all = drop_chunks(family, before(kRowsPart), left);
  }
  const bool any = family.from[kRowsPart] > 0;  // else what is made of its rows is as young
  for (std::size_t part = kRowsPart + 1; part < kKeptParts && all && any; ++part)
    drop_blocks(family, part, before(part), left);
  keep_aged(family);
  return all && left > 0;
}

core::Result<bool> SeriesWriter::drop_old(const KeepAges& keep, core::WallTime now,
                                          std::size_t most) {
  const std::int64_t micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  begin();
  std::size_t left = most;
  auto families = aging_families(std::min(most, kFamiliesOfALook));
  bool through = families.size() < std::min(most, kFamiliesOfALook);
  for (AgingFamily& one : families) {
    if (left == 0 || !drop_old_of(one, keep, micros, left)) {
      through = false;
      break;
    }
    aged_to_ = one.id;
    --left;
  }
  if (through) aged_to_ = 0;
  auto failed = database_->failure();
  open_ = false;
  database_->run(failed ? "COMMIT" : "ROLLBACK");
  auto after = database_->failure();
  if (!failed) return failed.error();
  if (!after) return after.error();
  for (const auto& [family, x0] : std::exchange(bad_chunks_, {})) {
    if (auto gone = drop_bad(family, x0); !gone) return gone;
  }
  return through;
}

}  // namespace tocsin::insights
