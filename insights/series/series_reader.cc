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
constexpr std::int64_t kMostLevelOfAll = 52;   // all is one bucket
constexpr int kKeptColumn = 13;                // of families, where kept_from begins

}  // namespace

bool FamilyLine::rows_gone(std::int64_t lo) const { return k0 >= 0 && lo < kept_from[kRowsPart]; }

std::int64_t FamilyLine::least_level(std::int64_t lo) const {
  if (!rows_gone(std::max(lo, x_first))) return 0;
  std::size_t part = kRowsPart + 1;
  while (part + 1 < kKeptParts && std::max(lo, x_first) < kept_from[part]) ++part;
  return k0 + static_cast<std::int64_t>(part - 1) * kLevelStep;
}

// Asked again and again by one request.
struct SeriesReader::Questions {
  StoreStatement chunks, pieces, blocks;
  std::optional<StoreStatement> families;  // of a name; once somebody asks
};

SeriesReader::SeriesReader(std::unique_ptr<StoreDatabase> database)
    : database_(std::move(database)), ask_(std::make_unique<Questions>()) {
  ask_->chunks = database_->prepare(
      "SELECT x0, data FROM chunk WHERE family = ?1 AND x0 >= coalesce((SELECT max(x0) FROM chunk"
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
  const auto bad = std::exchange(bad_chunks_, {});
  if (std::exchange(damaged_, false) || (!bad.empty() && !bad_chunk_)) database_->found_damage();
  auto out = database_->failure();
  if (!out && out.error().code == core::Code::data_loss && damage_) damage_(out.error().message);
  if (!out || bad.empty()) return out;
  for (const BadChunk& one : bad) bad_chunk_(one);
  return core::unavailable(
      "some stored values cannot be read any more; they are dropped, ask again");
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
  auto out = std::unique_ptr<SeriesReader>(new SeriesReader(std::move(*database)));
  // A file that no writer has opened since has no such table. What fails here, failure() tells.
  out->aged_ =
      out->database_->number("SELECT count(*) FROM sqlite_master WHERE name = 'aged'") > 0 &&
      out->database_->number("SELECT EXISTS(SELECT 1 FROM aged)") > 0;
  return out;
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

// The columns of kept_from, and where they come from: nothing, as long as nothing is gone.
std::string kept_columns(bool aged) {
  return aged ? ", a.rows_from, a.from_0, a.from_1, a.from_2, a.from_3, a.from_4" : "";
}
std::string kept_table(bool aged) { return aged ? " LEFT JOIN aged a ON a.family = f.id" : ""; }

void read_kept(const StoreStatement& get, int column, FamilyLine& line) {
  if (line.kind == FamilyKind::span) return;  // the first one that is there is x_first
  for (std::size_t part = 0; part < kKeptParts; ++part)
    line.kept_from[part] = get.integer(column + static_cast<int>(part));
}

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
  if (!ask_->families) {
    ask_->families = database_->prepare(
        std::string("SELECT f.id, f.mode, coalesce((SELECT text FROM name WHERE run = f.run AND"
                    " kind = 4 AND hash = w.hash), ''), w.rank, w.attempt, w.incarnation, f.k0,"
                    " f.rows, f.repeats, f.x_first, f.x_chunked, f.x_last, f.bad_x") +
        kept_columns(aged_) + " FROM family f JOIN worker w ON w.id = f.worker" +
        kept_table(aged_) +
        " WHERE f.run = (SELECT id FROM run WHERE uid = ?) AND f.kind = ? AND f.name = ? AND"
        " f.rows > 0 ORDER BY f.mode, w.rank, w.incarnation, w.attempt");
  }
  StoreStatement& get = *ask_->families;
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kind)).bind(3, name);
  std::vector<FamilyLine> out;
  while (get.next()) {
    out.push_back(family_at(get, kind));
    if (aged_) read_kept(get, kKeptColumn, out.back());
  }
  get.reset();
  return out;
}

void SeriesReader::all_families(
    const std::string& run, FamilyKind kind,
    core::FunctionRef<void(std::int64_t name, FamilyLine&& family)> visit) {
  std::unordered_map<std::int64_t, std::string> workers;
  StoreStatement get = database_->prepare(
      std::string(
          "SELECT f.id, f.mode, '', w.rank, w.attempt, w.incarnation, f.k0, f.rows, f.repeats,"
          " f.x_first, f.x_chunked, f.x_last, f.bad_x, f.name, w.hash") +
      kept_columns(aged_) + " FROM family f JOIN worker w ON w.id = f.worker" + kept_table(aged_) +
      " WHERE f.run = (SELECT id FROM run WHERE uid = ?) AND f.kind = ? AND f.rows > 0");
  get.bind(1, std::string_view(run)).bind(2, static_cast<std::int64_t>(kind));
  StoreStatement called = database_->prepare(
      "SELECT text FROM name WHERE run = (SELECT id FROM run WHERE uid = ?) AND kind = 4 AND"
      " hash = ?");
  while (get.next()) {
    FamilyLine line = family_at(get, kind);
    if (aged_) read_kept(get, kKeptColumn + 2, line);
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
                               core::FunctionRef<bool(std::string_view)> visit) {
  if (lo <= family.x_chunked) {
    ask_->chunks.bind(1, family.id).bind(2, lo).bind(3, hi);
    while (ask_->chunks.next()) {
      if (!visit(ask_->chunks.text(1))) bad_chunks_.push_back({family.id, ask_->chunks.integer(0)});
    }
    ask_->chunks.reset();
  }
  if (hi > family.x_chunked) {
    ask_->pieces.bind(1, family.id).bind(2, lo).bind(3, hi);
    while (ask_->pieces.next()) {
      if (!visit(ask_->pieces.text(0))) damaged_ = true;
    }
    ask_->pieces.reset();
  }
}

void SeriesReader::rows(const FamilyLine& family, std::int64_t lo, std::int64_t hi,
                        core::FunctionRef<void(const SeriesRows&)> visit, std::uint64_t wanted) {
  const std::size_t columns = columns_of(family.kind).size();
  stored_rows(family, lo, hi, [&](std::string_view bytes) {
    const auto some = decode_columns(bytes, wanted);
    if (!some || some->columns.size() != columns) return false;
    visit(*some);
    return true;
  });
}

void SeriesReader::add_rows(const FamilyLine& family, std::size_t column, std::int64_t lo,
                            std::int64_t hi, std::int64_t level, BucketVisit out) {
  if (lo >= hi) return;
  stored_rows(family, lo, hi, [&](std::string_view bytes) {
    const auto some = decode_columns(bytes, std::uint64_t{1} << column);
    if (!some || column >= some->columns.size()) return false;
    const auto begin = std::lower_bound(some->x.begin(), some->x.end(), lo);
    const auto end = std::lower_bound(begin, some->x.end(), hi);
    for (auto at = begin; at != end; ++at) {
      Bucket one;
      one.add(*at, some->columns[column][static_cast<std::size_t>(at - some->x.begin())]);
      out(*at >> level, one);
    }
    return true;
  });
}

// lo and hi are at bounds of buckets of the stored level; of what is asked for nothing is before `least`.
struct SeriesReader::BlockRange {
  std::size_t column = 0;
  std::int64_t lo = 0, hi = 0;
  std::int64_t stored = 0, level = 0;
  std::int64_t least = 0;
};

void SeriesReader::add_blocks(const FamilyLine& family, const BlockRange& range, BucketVisit out) {
  if (range.lo >= range.hi) return;
  StoreStatement& get = ask_->blocks;
  get.bind(1, family.id).bind(2, static_cast<std::int64_t>(range.column)).bind(3, range.stored);
  get.bind(4, (range.lo >> range.stored) / kBlockBuckets);
  get.bind(5, ((range.hi - 1) >> range.stored) / kBlockBuckets);
  while (get.next()) {
    Buckets block;
    if (!decode_block(get.text(1), get.integer(0) * kBlockBuckets, block)) damaged_ = true;
    for (const auto& entry : block) {
      const std::int64_t x = entry.first << range.stored;
      if (x >= range.lo && x < range.hi) out(std::max(x, range.least) >> range.level, entry.second);
    }
  }
  get.reset();
}

// Of [lo, hi), where rows are gone: buckets of the part, and of wider ones where it is gone too.
void SeriesReader::add_aged(const FamilyLine& family, const BlockRange& range, std::size_t part,
                            BucketVisit out) {
  std::int64_t lo = range.lo;
  if (lo < family.kept_from[part]) {
    const std::int64_t end = std::min(range.hi, family.kept_from[part]);
    if (part + 1 < kKeptParts) {
      BlockRange wider = range;
      wider.hi = end;
      add_aged(family, wider, part + 1, out);
    }
    lo = end;
  }
  if (lo >= range.hi) return;
  const auto level_at = [&](std::size_t of) {
    return family.k0 + static_cast<std::int64_t>(of - 1) * kLevelStep;
  };
  const auto up = [](std::int64_t x, std::int64_t level) {
    return ((x + (std::int64_t{1} << level) - 1) >> level) << level;
  };
  BlockRange narrow = range;
  narrow.stored = level_at(part);
  narrow.lo = lo == family.x_first ? lo >> narrow.stored << narrow.stored : up(lo, narrow.stored);
  narrow.hi = up(range.hi, narrow.stored);
  std::size_t top = part;
  while (top + 1 < kKeptParts && level_at(top + 1) <= range.level) ++top;
  BlockRange wide = range;
  wide.stored = level_at(top);
  wide.lo = up(narrow.lo, wide.stored);
  wide.hi = narrow.hi >> wide.stored << wide.stored;
  if (top == part || wide.lo >= wide.hi) return add_blocks(family, narrow, out);
  const std::int64_t end = std::exchange(narrow.hi, wide.lo);
  add_blocks(family, narrow, out);
  add_blocks(family, wide, out);
  narrow.lo = wide.hi;
  narrow.hi = end;
  add_blocks(family, narrow, out);
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
  if (family.rows_gone(lo) && lo < hi) {
    // Rows of the bucket that lost some are in it alone; what is in no chunk yet is in no bucket.
    const std::int64_t from = (family.kept_from[kRowsPart] + (std::int64_t{1} << family.k0) - 1) >>
                              family.k0 << family.k0;
    const std::int64_t end = std::min({hi, from, family.x_chunked + 1});
    add_aged(family, {column, lo, end, 0, level, lo}, kRowsPart + 1, out);
    lo = end;
    if (lo >= hi) return;
  }
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
    add_blocks(family, {column, inner_lo, inner_hi, family.k0, level}, out);
  } else {
    add_blocks(family, {column, inner_lo, wide_lo, family.k0, level}, out);
    add_blocks(family, {column, wide_lo, wide_hi, stored, level}, out);
    add_blocks(family, {column, wide_hi, inner_hi, family.k0, level}, out);
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

std::optional<double> SeriesReader::first(const FamilyLine& family, std::size_t column) {
  std::optional<double> out;
  if (family.rows_gone(family.x_first)) {
    visit_buckets(family, column, family.x_first, family.x_first + 1, 0,
                  [&](std::int64_t, const Bucket& part) {
                    if (part.bad() == 0) out = part.first;
                  });
    return out;
  }
  rows(family, family.x_first, family.x_first + 1, [&](const SeriesRows& some) {
    if (!some.x.empty() && some.x.front() == family.x_first) out = some.columns[column].front();
  });
  return out;
}

std::optional<double> SeriesReader::last(const FamilyLine& family, std::size_t column) {
  std::optional<double> out;
  if (family.rows_gone(family.x_last)) {
    visit_buckets(family, column, family.x_first, family.x_last + 1, kMostLevelOfAll,
                  [&](std::int64_t, const Bucket& part) {
                    out = part.bad() == 0 ? std::optional(part.last) : std::nullopt;
                  });
    return out;
  }
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
