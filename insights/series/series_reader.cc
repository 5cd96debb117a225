#include "insights/series/series_reader.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <system_error>
#include <utility>

#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr std::int64_t kBucketsOfALook = 512;  // of one look for a time

}  // namespace

// Asked again and again by one request.
struct SeriesReader::Questions {
  StoreStatement chunks, pieces, blocks;
};

SeriesReader::SeriesReader(std::unique_ptr<StoreDatabase> database)
    : database_(std::move(database)), ask_(std::make_unique<Questions>()) {
  ask_->chunks = database_->prepare(
      "SELECT data FROM chunk WHERE family = ?1 AND x0 >= coalesce((SELECT max(x0) FROM chunk"
      " WHERE family = ?1 AND x0 <= ?2), ?2) AND x0 < ?3 ORDER BY x0");
  ask_->pieces = database_->prepare(
      "SELECT data FROM piece WHERE family = ?1 AND x0 >= coalesce((SELECT max(x0) FROM piece"
      " WHERE family = ?1 AND x0 <= ?2), ?2) AND x0 < ?3 ORDER BY x0");
  ask_->blocks = database_->prepare(
      "SELECT block, data FROM rollup WHERE family = ? AND col = ? AND level = ? AND block BETWEEN"
      " ? AND ? ORDER BY block");
}
SeriesReader::~SeriesReader() = default;

core::Status SeriesReader::failure() {
  if (std::exchange(damaged_, false)) database_->found_damage();
  auto out = database_->failure();
  if (!out && out.error().code == core::Code::data_loss && damage_) damage_(out.error().message);
  return out;
}

core::Result<std::unique_ptr<SeriesReader>> SeriesReader::open(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return core::unavailable("nothing is kept yet");
  auto database = StoreDatabase::open(path, false);
  if (!database) return database.error();
  (*database)->run("BEGIN");
  const bool empty = (*database)->number("SELECT count(*) FROM sqlite_master") == 0;
  if (const auto status = (*database)->failure(); !status) return status.error();
  if (empty) return core::unavailable("nothing is kept yet");  // the writer may be about to make it
  return std::unique_ptr<SeriesReader>(new SeriesReader(std::move(*database)));
}

std::vector<NameLine> SeriesReader::names(const std::string& run,
                                          std::span<const FamilyKind> kinds) {
  std::vector<NameLine> out;
  for (const FamilyKind kind : kinds) {
    const auto begin = static_cast<std::ptrdiff_t>(out.size());
    StoreStatement get = database_->prepare(
        "SELECT kind, hash, text, unit, ord, role, direction, shape, collections FROM name WHERE"
        " run = (SELECT id FROM run WHERE uid = ?) AND kind = ?");
    get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kind));
    while (get.next()) {
      NameLine line;
      line.kind = static_cast<FamilyKind>(get.integer(0));
      line.hash = get.integer(1);
      line.text = get.text(2);
      line.unit = get.text(3);
      line.order = get.integer(4);
      line.role = static_cast<core::Role>(get.integer(5));
      line.direction = get.integer(6);
      line.shape = get.text(7);
      line.collections = get.text(8);
      out.push_back(std::move(line));
    }
    std::sort(out.begin() + begin, out.end(),
              [](const NameLine& a, const NameLine& b) { return a.order < b.order; });
  }
  return out;
}

std::unordered_map<std::int64_t, NameTally> SeriesReader::tallies(const std::string& run,
                                                                  FamilyKind kind,
                                                                  std::optional<core::Mode> mode) {
  StoreStatement get = database_->prepare(
      "SELECT name, rows, x_first, x_last, worst, bad_x FROM family WHERE run ="
      " (SELECT id FROM run WHERE uid = ?1) AND kind = ?2 AND rows > 0 AND (?3 < 0 OR mode = ?3)");
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kind));
  get.bind(3, mode ? static_cast<std::int64_t>(*mode) : std::int64_t{-1});
  std::unordered_map<std::int64_t, NameTally> out;
  while (get.next()) {
    NameTally& into = out[get.integer(0)];
    into.x_first = into.series == 0 ? get.integer(2) : std::min(into.x_first, get.integer(2));
    into.x_last = std::max(into.x_last, get.integer(3));
    into.stored += get.integer(1);
    ++into.series;
    if (const std::int64_t worst = get.integer(4); worst >= 0)
      into.worst = std::max(into.worst.value_or(0), std::bit_cast<double>(worst));
    if (const std::int64_t bad = get.integer(5); bad >= 0)
      into.bad_x = std::min(into.bad_x.value_or(bad), bad);
  }
  return out;
}

RunGaps SeriesReader::gaps(const std::string& run) {
  StoreStatement get = database_->prepare("SELECT refused, tensors_gone FROM run WHERE uid = ?");
  get.bind(1, std::string_view(run));
  RunGaps out;
  if (get.next()) out = {get.integer(0), get.integer(1) != 0};
  return out;
}

namespace {

FamilyLine family_at(const StoreStatement& get, FamilyKind kind) {
  FamilyLine line;
  line.kind = kind;
  line.id = get.integer(0);
  line.mode = static_cast<core::Mode>(get.integer(1));
  line.rank = get.integer(3);
  line.worker = get.text(2);
  if (line.worker.empty()) line.worker = "worker_" + std::to_string(line.rank);
  line.attempt = get.integer(4);
  line.incarnation = get.integer(5);
  line.k0 = get.integer(6);
  line.rows = get.integer(7);
  line.repeats = get.integer(8);
  line.x_first = get.integer(9);
  line.x_chunked = get.integer(10);
  line.x_last = get.integer(11);
  line.bad_x = get.integer(12);
  return line;
}

}  // namespace

std::vector<FamilyLine> SeriesReader::families(const std::string& run, FamilyKind kind,
                                               std::int64_t name) {
  StoreStatement get = database_->prepare(
      "SELECT f.id, f.mode, coalesce((SELECT text FROM name WHERE run = f.run AND kind = 4 AND"
      " hash = w.hash), ''), w.rank, w.attempt, w.incarnation, f.k0, f.rows, f.repeats, f.x_first,"
      " f.x_chunked, f.x_last, f.bad_x FROM family f JOIN worker w ON w.id = f.worker WHERE f.run ="
      " (SELECT id FROM run WHERE uid = ?) AND f.kind = ? AND f.name = ? AND f.rows > 0"
      " ORDER BY f.mode, w.rank, w.incarnation, w.attempt");
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kind)).bind(3, name);
  std::vector<FamilyLine> out;
  while (get.next()) out.push_back(family_at(get, kind));
  return out;
}

void SeriesReader::all_families(
    const std::string& run, FamilyKind kind,
    core::FunctionRef<void(std::int64_t name, FamilyLine&& family)> visit) {
  std::unordered_map<std::int64_t, std::string> workers;
  StoreStatement get = database_->prepare(
      "SELECT f.id, f.mode, '', w.rank, w.attempt, w.incarnation, f.k0, f.rows, f.repeats,"
      " f.x_first, f.x_chunked, f.x_last, f.bad_x, f.name, w.hash FROM family f JOIN worker w ON"
      " w.id = f.worker WHERE f.run = (SELECT id FROM run WHERE uid = ?) AND f.kind = ? AND"
      " f.rows > 0");
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kind));
  StoreStatement called = database_->prepare(
      "SELECT text FROM name WHERE run = (SELECT id FROM run WHERE uid = ?) AND kind = 4 AND"
      " hash = ?");
  while (get.next()) {
    FamilyLine line = family_at(get, kind);
    const std::int64_t hash = get.integer(14);
    const auto [found, fresh] = workers.try_emplace(hash, line.worker);
    if (fresh) {
      called.bind(1, std::string_view(run)).bind(2, hash);
      if (called.next() && !called.text(0).empty()) found->second = called.text(0);
      called.reset();
    }
    line.worker = found->second;
    visit(get.integer(13), std::move(line));
  }
}

void SeriesReader::stored_rows(const FamilyLine& family, std::int64_t lo, std::int64_t hi,
                               core::FunctionRef<void(std::string_view)> visit) {
  if (lo <= family.x_chunked) {
    ask_->chunks.bind(1, family.id).bind(2, lo).bind(3, hi);
    while (ask_->chunks.next()) visit(ask_->chunks.text(0));
    ask_->chunks.reset();
  }
  if (hi > family.x_chunked) {
    ask_->pieces.bind(1, family.id).bind(2, lo).bind(3, hi);
    while (ask_->pieces.next()) visit(ask_->pieces.text(0));
    ask_->pieces.reset();
  }
}

void SeriesReader::rows(const FamilyLine& family, std::int64_t lo, std::int64_t hi,
                        core::FunctionRef<void(const SeriesRows&)> visit, std::uint64_t wanted) {
  const std::size_t columns = columns_of(family.kind).size();
  stored_rows(family, lo, hi, [&](std::string_view bytes) {
    const auto some = decode_columns(bytes, wanted);
    if (some && some->columns.size() == columns) {
      visit(*some);
    } else {
      damaged_ = true;
    }
  });
}

void SeriesReader::add_rows(const FamilyLine& family, std::size_t column, std::int64_t lo,
                            std::int64_t hi, std::int64_t level, BucketVisit out) {
  if (lo >= hi) return;
  stored_rows(family, lo, hi, [&](std::string_view bytes) {
    const auto some = decode_columns(bytes, std::uint64_t{1} << column);
    if (!some || column >= some->columns.size()) {
      damaged_ = true;
      return;
    }
    const auto begin = std::lower_bound(some->x.begin(), some->x.end(), lo);
    const auto end = std::lower_bound(begin, some->x.end(), hi);
    for (auto at = begin; at != end; ++at) {
      Bucket one;
      one.add(*at, some->columns[column][static_cast<std::size_t>(at - some->x.begin())]);
      out(*at >> level, one);
    }
  });
}

// lo and hi are at bounds of buckets of the stored level.
void SeriesReader::add_blocks(const FamilyLine& family, std::size_t column, std::int64_t lo,
                              std::int64_t hi, std::int64_t stored, std::int64_t level,
                              BucketVisit out) {
  if (lo >= hi) return;
  StoreStatement& get = ask_->blocks;
  get.bind(1, family.id).bind(2, static_cast<std::int64_t>(column)).bind(3, stored);
  get.bind(4, (lo >> stored) / kBlockBuckets).bind(5, ((hi - 1) >> stored) / kBlockBuckets);
  while (get.next()) {
    Buckets block;
    if (!decode_block(get.text(1), get.integer(0) * kBlockBuckets, block)) damaged_ = true;
    for (const auto& entry : block) {
      const std::int64_t x = entry.first << stored;
      if (x >= lo && x < hi) out(x >> level, entry.second);
    }
  }
  get.reset();
}

Buckets SeriesReader::buckets(const FamilyLine& family, std::size_t column, std::int64_t lo,
                              std::int64_t hi, std::int64_t level) {
  Buckets out;
  visit_buckets(family, column, lo, hi, level,
                [&](std::int64_t at, const Bucket& part) { out[at].append(part); });
  return out;
}

void SeriesReader::visit_buckets(const FamilyLine& family, std::size_t column, std::int64_t lo,
                                 std::int64_t hi, std::int64_t level,
                                 core::FunctionRef<void(std::int64_t, const Bucket&)> out) {
  lo = std::max(lo, family.x_first);
  hi = std::min(hi, family.x_last + 1);
  if (family.k0 < 0 || level < family.k0) return add_rows(family, column, lo, hi, level, out);
  // The buckets that lie within the range whole, and the rows at its edges.
  const std::int64_t width = std::int64_t{1} << family.k0;
  std::int64_t inner_lo = (lo + width - 1) / width * width;
  std::int64_t inner_hi = hi > family.x_chunked ? family.x_chunked + 1 : hi / width * width;
  // The first bucket is whole if nothing of the family is before the range.
  if (lo == family.x_first) inner_lo = lo / width * width;
  if (inner_lo >= inner_hi) return add_rows(family, column, lo, hi, level, out);
  add_rows(family, column, lo, inner_lo, level, out);
  // Upper levels for what they cover whole.
  const std::int64_t steps = std::min<std::int64_t>((level - family.k0) / kLevelStep, kLevels - 1);
  const std::int64_t stored = family.k0 + steps * kLevelStep;
  const std::int64_t wide = std::int64_t{1} << stored;
  const std::int64_t wide_lo =
      lo == family.x_first ? inner_lo / wide * wide : (inner_lo + wide - 1) / wide * wide;
  const std::int64_t wide_hi = hi > family.x_chunked ? inner_hi : inner_hi / wide * wide;
  if (wide_lo >= wide_hi) {
    add_blocks(family, column, inner_lo, inner_hi, family.k0, level, out);
  } else {
    add_blocks(family, column, inner_lo, wide_lo, family.k0, level, out);
    add_blocks(family, column, wide_lo, wide_hi, stored, level, out);
    add_blocks(family, column, wide_hi, inner_hi, family.k0, level, out);
  }
  add_rows(family, column, std::max(lo, inner_hi), hi, level, out);
}

std::int64_t SeriesReader::x_at(const FamilyLine& family, std::size_t column, double least) {
  std::int64_t lo = family.x_first;
  std::int64_t hi = family.x_last + 1;
  while (lo < hi) {
    std::int64_t level = 0;
    while (((hi - lo) >> level) > kBucketsOfALook) ++level;
    const Buckets seen = buckets(family, column, lo, hi, level);
    const auto found = std::find_if(seen.begin(), seen.end(), [&](const auto& entry) {
      return entry.second.n > 0 && entry.second.max >= least;
    });
    if (found == seen.end()) return family.x_last + 1;
    const std::int64_t x = found->first << level;
    if (level == 0) return x;
    lo = std::max(lo, x);
    hi = std::min(hi, x + (std::int64_t{1} << level));
  }
  return lo;
}

std::optional<double> SeriesReader::last(const FamilyLine& family, std::size_t column) {
  std::optional<double> out;
  rows(family, family.x_last, family.x_last + 1, [&](const SeriesRows& some) {
    if (!some.x.empty() && some.x.back() == family.x_last) out = some.columns[column].back();
  });
  return out;
}

std::int64_t SeriesReader::pages_read() const { return database_->pages_read(); }

SeriesSize SeriesReader::size() {
  SeriesSize out;
  out.runs =
      database_->number("SELECT count(*) FROM run WHERE id NOT IN (SELECT node FROM run_node)");
  out.families = database_->number("SELECT count(*) FROM family");
  out.values = database_->number("SELECT coalesce(sum(rows), 0) FROM family");
  out.bytes = database_->number(
      "SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM"
      " pragma_page_size)");
  return out;
}

}  // namespace tocsin::insights
