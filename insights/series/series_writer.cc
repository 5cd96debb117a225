#include "insights/series/series_writer.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <system_error>

#include "insights/series/pyramid.h"
#include "insights/series/series_statements.h"
#include "insights/store/database.h"
#include "insights/store/set_aside.h"
#include "insights/store/store_lock.h"

namespace tocsin::insights {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostPieces = 64;    // then they become one
constexpr std::size_t kKeptRows = 4096;     // that there is room for between two commits
constexpr std::int64_t kUsualStrides = 64;  // of a bucket of the lowest level

core::Result<std::unique_ptr<StoreDatabase>> open_series(const std::string& path,
                                                         std::string_view source) {
  auto made = StoreDatabase::open(path, true);
  if (!made) return made;
  if (auto status = prepare_series(**made); !status) return status.error();
  {
    StoreStatement get = (*made)->prepare("SELECT value FROM meta WHERE key = 'source'");
    if (get.next() && get.text(0) != source)
      return core::Error{core::Code::failed_precondition, "it is of another place: " + get.text(0)};
  }
  StoreStatement put = (*made)->prepare("INSERT OR REPLACE INTO meta VALUES ('source', ?)");
  put.bind(1, source).run();
  if (auto status = (*made)->failure(); !status) return status.error();
  return made;
}

constexpr std::int64_t most_of(FamilyKind kind) {
  if (kind == FamilyKind::system) return SeriesWriter::kMostSamples;
  return kind == FamilyKind::tensor ? SeriesWriter::kMostTensors : SeriesWriter::kMostFamilies;
}

std::int64_t lowest_level(const SeriesRows& rows) {
  const auto strides = static_cast<std::int64_t>(rows.size()) - 1;
  const std::int64_t stride =
      std::max<std::int64_t>(1, strides < 1 ? 1 : (rows.x.back() - rows.x.front()) / strides);
  const std::int64_t capped = std::min(stride, std::int64_t{1} << 40);
  return static_cast<std::int64_t>(
      std::bit_width(static_cast<std::uint64_t>(kUsualStrides * capped - 1)));
}

}  // namespace

std::size_t SeriesWriter::HashOfKey::operator()(const FamilyKey& key) const {
  std::uint64_t out = std::get<2>(key);
  for (const std::int64_t part :
       {std::get<0>(key), std::get<1>(key), std::get<3>(key), std::get<4>(key)})
    out = (out ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(out ^ (out >> 32U));
}

core::Result<std::unique_ptr<SeriesWriter>> SeriesWriter::open(const std::string& path,
                                                               std::string_view source,
                                                               SetAside& moved,
                                                               const std::string& condemned) {
  std::error_code ignored;
  if (fs::path(path).has_parent_path())
    fs::create_directories(fs::path(path).parent_path(), ignored);
  auto lock = StoreLock::take(path);
  if (!lock) return lock.error();
  auto database = open_or_begin_anew(
      path, condemned, [&] { return open_series(path, source); }, moved);
  if (!database) return database.error();
  return std::unique_ptr<SeriesWriter>(new SeriesWriter(std::move(*database), std::move(*lock)));
}

SeriesWriter::SeriesWriter(std::unique_ptr<StoreDatabase> database, std::unique_ptr<StoreLock> lock)
    : lock_(std::move(lock)), database_(std::move(database)), do_(std::make_unique<Statements>()) {
  const auto made = [this](std::string_view sql) { return database_->prepare(sql); };
  do_->put_position = made("INSERT OR REPLACE INTO position VALUES (?,?,?)");
  do_->get_run = made("SELECT id, families, heard, refused FROM run WHERE uid = ?");
  do_->put_run = made(
      "INSERT INTO run(uid, heard, families, refused, tensors_gone, bulk_gone) VALUES (?, 0, 0, 0, "
      "0, 0) "
      "RETURNING"
      " id");
  do_->hear_run =
      made("UPDATE run SET heard = max(heard, ?), families = ?, refused = ? WHERE id = ?");
  do_->get_segment =
      made("SELECT id FROM worker WHERE run = ? AND hash = ? AND incarnation = ? AND attempt = ?");
  do_->put_segment = made(
      "INSERT INTO worker(run, hash, incarnation, attempt, rank) VALUES (?,?,?,?,?) RETURNING id");
  do_->get_sequence = made("SELECT last FROM sequence WHERE worker = ? AND shard = ?");
  do_->put_sequence = made("INSERT OR REPLACE INTO sequence VALUES (?,?,?)");
  do_->get_frames = made("SELECT last, missing FROM frames_heard WHERE worker = ? AND shard = ?");
  do_->put_frames = made("INSERT OR REPLACE INTO frames_heard VALUES (?,?,?,?)");
  do_->put_lost = made(
      "INSERT INTO lost VALUES (?,?,?,?,?,?,?) ON CONFLICT(worker, lane, reason) DO UPDATE SET"
      " frames = frames + excluded.frames, rows = rows + excluded.rows,"
      " x_first = min(coalesce(x_first, excluded.x_first), coalesce(excluded.x_first, x_first)),"
      " x_last = max(coalesce(x_last, excluded.x_last), coalesce(excluded.x_last, x_last))");
  do_->put_name = made(
      "INSERT INTO name VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT(run, kind, hash) DO UPDATE SET "
      "text ="
      " excluded.text, role = excluded.role, unit = excluded.unit, direction = excluded.direction,"
      " shape = excluded.shape, collections = excluded.collections RETURNING ord");
  do_->get_order = made("SELECT coalesce(max(ord) + 1, 0) FROM name WHERE run = ? AND kind = ?");
  do_->get_family = made(
      "SELECT id, k0, rows, chunked, x_first, x_chunked, x_last, repeats, worst,"
      " bad_x, (SELECT count(*) FROM piece WHERE family = id) FROM family WHERE run = ? AND kind = "
      "? AND"
      " name = ? AND worker = ? AND mode = ?");
  do_->put_family = made(
      "INSERT INTO family(run, kind, name, worker, mode, k0, rows, chunked, x_first, x_chunked,"
      " x_last, repeats, worst, bad_x) VALUES (?,?,?,?,?,-1,0,0,0,-1,-1,0,-1,-1) RETURNING id");
  do_->keep_family = made(
      "UPDATE family SET k0 = ?, rows = ?, chunked = ?, x_first = ?, x_chunked = ?, x_last = ?,"
      " repeats = ?, worst = ?, bad_x = ? WHERE id = ?");
  do_->get_pieces = made("SELECT data FROM piece WHERE family = ? ORDER BY x0");
  do_->gone_pieces = made("DELETE FROM piece WHERE family = ?");
  do_->put_piece = made("INSERT OR REPLACE INTO piece VALUES (?,?,?)");
  do_->put_chunk = made("INSERT OR REPLACE INTO chunk VALUES (?,?,?,?)");
  do_->get_block =
      made("SELECT data FROM rollup WHERE family = ? AND col = ? AND level = ? AND block = ?");
  do_->put_link = made(
      "INSERT INTO run_node VALUES (?,?,?,?) ON CONFLICT(run, node) DO UPDATE SET x_first ="
      " min(x_first, excluded.x_first), x_last = max(x_last, excluded.x_last)");
  do_->put_node = made("UPDATE worker SET node = ? WHERE id = ?");
  do_->put_placed = made("INSERT OR IGNORE INTO placed VALUES (?,?)");
  do_->get_open = made("SELECT data FROM open WHERE worker = ? AND what = ?");
  do_->put_open = made("INSERT OR REPLACE INTO open VALUES (?,?,?)");
  do_->put_histogram = made("INSERT OR REPLACE INTO histogram VALUES (?,?,?)");
  do_->old_chunks = made("SELECT x0, x1, data FROM chunk WHERE family = ? ORDER BY x0");
  do_->old_piece = made("SELECT data FROM piece WHERE family = ? ORDER BY x0 DESC LIMIT 1");
  do_->old_blocks = made(
      "SELECT block, data FROM rollup WHERE family = ? AND col = ? AND level = ? ORDER BY block");
  do_->put_block = made("INSERT OR REPLACE INTO rollup VALUES (?,?,?,?,?)");
}

SeriesWriter::~SeriesWriter() = default;

void SeriesWriter::begin() {
  if (!std::exchange(open_, true)) database_->run("BEGIN IMMEDIATE");
}

SeriesWriter::KnownRun& SeriesWriter::known(const core::RunUid& run) {
  if (latest_run_ != nullptr && *latest_uid_ == run) return *latest_run_;
  const auto [found, fresh] = runs_.try_emplace(run);
  latest_uid_ = &found->first;
  latest_run_ = &found->second;
  if (!fresh) return found->second;
  begin();
  const std::string uid = core::to_text(run);
  do_->get_run.bind(1, std::string_view(uid));
  if (do_->get_run.next())
    found->second = {do_->get_run.integer(0), do_->get_run.integer(1), do_->get_run.integer(2),
                     do_->get_run.integer(3), false};
  do_->get_run.reset();
  if (found->second.id == 0) {
    do_->put_run.bind(1, std::string_view(uid));
    if (do_->put_run.next()) found->second.id = do_->put_run.integer(0);
    do_->put_run.run();
  }
  return found->second;
}

void SeriesWriter::heard(const core::RunUid& run, std::int64_t micros) {
  KnownRun& known_run = known(run);
  // One that was never told when it was heard of is older than every limit: it is told with the next commit.
  if (known_run.heard == 0) changed_.insert(run);
  known_run.heard = std::max(known_run.heard, micros);
}

SeriesWriter::Family SeriesWriter::read_family(const FamilyKey& key, bool& there) {
  const auto& [run, kind, name, worker, mode] = key;
  Family out;
  out.kind = static_cast<FamilyKind>(kind);
  StoreStatement& get = do_->get_family;
  get.bind(1, run).bind(2, kind).bind(3, static_cast<std::int64_t>(name)).bind(4, worker);
  get.bind(5, mode);
  there = get.next();
  if (there) {
    out.id = get.integer(0);
    out.k0 = get.integer(1);
    out.rows = get.integer(2);
    out.chunked = get.integer(3);
    out.x_first = get.integer(4);
    out.x_chunked = get.integer(5);
    out.x_last = get.integer(6);
    out.repeats = get.integer(7);
    out.worst = get.integer(8);
    out.bad_x = get.integer(9);
    out.pieces = get.integer(10);
  }
  get.reset();
  return out;
}

SeriesWriter::Family* SeriesWriter::family(const core::RunUid& run, const FamilyKey& key) {
  const auto found = families_.find(key);
  if (found != families_.end()) return &found->second;
  bool there = false;
  Family made = read_family(key, there);
  if (!there) {
    KnownRun& of = known(run);
    if (of.families >= most_of(made.kind)) return nullptr;
    ++of.families;
    begin();
    do_->put_family.bind(1, std::get<0>(key)).bind(2, std::get<1>(key));
    do_->put_family.bind(3, static_cast<std::int64_t>(std::get<2>(key))).bind(4, std::get<3>(key));
    do_->put_family.bind(5, std::get<4>(key));
    if (do_->put_family.next()) made.id = do_->put_family.integer(0);
    do_->put_family.run();
  }
  return &families_.emplace(key, made).first->second;
}

bool SeriesWriter::add(const SegmentOf& of, FamilyKind kind, std::uint64_t name, core::Mode mode,
                       std::int64_t x, std::span<const double> values) {
  const std::int64_t worker = segment(of);
  Family* into = family(of.run, {known(of.run).id, static_cast<std::int64_t>(kind), name, worker,
                                 static_cast<std::int64_t>(mode)});
  if (into == nullptr) {
    refuse(of.run);
    return false;
  }
  if (x <= into->x_last || x < 0) {
    ++into->repeats;
    return false;
  }
  put_row(*into, of.run, x, values);
  return true;
}

void SeriesWriter::append(const SegmentOf& of, FamilyKind kind, std::uint64_t name, core::Mode mode,
                          std::span<const double> values) {
  const std::int64_t worker = segment(of);
  Family* into = family(of.run, {known(of.run).id, static_cast<std::int64_t>(kind), name, worker,
                                 static_cast<std::int64_t>(mode)});
  if (into == nullptr) return refuse(of.run);
  put_row(*into, of.run, into->x_last + 1, values);
}

void SeriesWriter::put_row(Family& family, const core::RunUid& run, std::int64_t x,
                           std::span<const double> values) {
  if (family.rows == 0) family.x_first = x;
  ++family.rows;
  family.x_last = x;
  note_extremes(family, x, values);
  if (family.waiting.rows == 0) dirty_.push_back(&family);
  waiting_.add(family.waiting, x, values);
  if (!std::exchange(known(run).changed, true)) changed_.insert(run);
}

SeriesRows SeriesWriter::pieces_of(const Family& family) {
  SeriesRows out(columns_of(family.kind).size());
  do_->get_pieces.bind(1, family.id);
  while (do_->get_pieces.next()) {
    const auto rows = decode_rows(do_->get_pieces.text(0));
    if (rows && rows->columns.size() == out.columns.size()) {
      out.append(*rows, 0, rows->size());
    } else {
      database_->found_damage();
    }
  }
  do_->get_pieces.reset();
  do_->gone_pieces.bind(1, family.id).run();
  return out;
}

void SeriesWriter::put_piece(Family& family, const SeriesRows& rows) {
  if (rows.size() == 0) return;
  do_->put_piece.bind(1, family.id).bind(2, rows.x.front());
  encode_rows(rows, false, bytes_);
  do_->put_piece.bind_blob_in_place(3, bytes_).run();
  ++family.pieces;
}

void SeriesWriter::close_chunk(Family& family, const SeriesRows& chunk) {
  if (family.k0 < 0) family.k0 = lowest_level(chunk);
  do_->put_chunk.bind(1, family.id).bind(2, chunk.x.front()).bind(3, chunk.x.back());
  encode_rows(chunk, true, bytes_);
  do_->put_chunk.bind_blob_in_place(4, bytes_).run();
  family.chunked += static_cast<std::int64_t>(chunk.size());
  family.x_chunked = chunk.x.back();
}

// Chunk by chunk, whatever was committed together: so sums are the same whenever they are made again.
void SeriesWriter::roll(const Family& family, std::size_t column,
                        std::span<const SeriesRows> chunks) {
  std::map<std::pair<std::int64_t, std::int64_t>, Buckets> blocks;  // by level and block
  const auto column_number = static_cast<std::int64_t>(column);
  const auto block_at = [&](std::int64_t level, std::int64_t block) -> Buckets& {
    const auto [found, fresh] = blocks.try_emplace({level, block});
    if (!fresh) return found->second;
    StoreStatement& get = do_->get_block;
    get.bind(1, family.id).bind(2, column_number).bind(3, level).bind(4, block);
    if (get.next() && !decode_block(get.text(0), block * kBlockBuckets, found->second))
      database_->found_damage();
    get.reset();
    return found->second;
  };
  for (const SeriesRows& chunk : chunks) {
    visit_rolled(chunk, column, family.k0,
                 [&](std::int64_t level, std::int64_t at, const Bucket& part) {
                   block_at(level, at / kBlockBuckets)[at].append(part);
                 });
  }
  for (const auto& entry : blocks) {
    const std::int64_t level = entry.first.first;
    const std::int64_t block = entry.first.second;
    // Nothing more comes to it. Chunks end where blocks do when every step is logged.
    const bool whole = ((family.x_chunked + 1) >> level) / kBlockBuckets > block;
    do_->put_block.bind(1, family.id).bind(2, column_number).bind(3, level).bind(4, block);
    encode_block(entry.second, block * kBlockBuckets, whole, bytes_);
    do_->put_block.bind_blob_in_place(5, bytes_).run();
  }
}

void SeriesWriter::write(Family& family) {
  SeriesRows& fresh = fresh_;
  const std::size_t width = columns_of(family.kind).size();
  if (fresh.columns.size() != width) fresh.columns.resize(width);
  waiting_.copy(std::exchange(family.waiting, {}), fresh);
  const std::int64_t open_rows = family.rows - family.chunked;
  if (open_rows < static_cast<std::int64_t>(kChunkRows) && family.pieces < kMostPieces) {
    put_piece(family, fresh);
  } else {
    SeriesRows rows = family.pieces > 0 ? pieces_of(family) : SeriesRows(fresh.columns.size());
    family.pieces = 0;
    rows.append(fresh, 0, fresh.size());
    std::vector<SeriesRows> chunks;
    std::size_t from = 0;
    for (; from + kChunkRows <= rows.size(); from += kChunkRows) {
      chunks.emplace_back(rows.columns.size());
      chunks.back().append(rows, from, kChunkRows);
      close_chunk(family, chunks.back());
    }
    SeriesRows rest(rows.columns.size());
    rest.append(rows, from, rows.size() - from);
    put_piece(family, rest);
    const auto columns = columns_of(family.kind);
    for (std::size_t k = 0; k < columns.size() && !chunks.empty(); ++k) {
      if (columns[k].rolled) roll(family, k, chunks);
    }
  }
  write_family(family);
}

void SeriesWriter::write_family(Family& family) {
  family.used = turn_;
  StoreStatement& keep = do_->keep_family;
  keep.bind(1, family.k0).bind(2, family.rows).bind(3, family.chunked).bind(4, family.x_first);
  keep.bind(5, family.x_chunked).bind(6, family.x_last).bind(7, family.repeats);
  keep.bind(8, family.worst).bind(9, family.bad_x).bind(10, family.id).run();
}

core::Status SeriesWriter::commit(const std::vector<core::Position>& positions) {
  begin();
  ++turn_;
  for (Family* family : dirty_) write(*family);
  dirty_.clear();
  waiting_.clear();
  if (fresh_.x.capacity() > kKeptRows) fresh_ = SeriesRows();  // of a series with a backlog
  write_links();
  write_heard_frames();
  for (const core::RunUid& run : changed_) {
    KnownRun& of = known(run);
    of.changed = false;
    do_->hear_run.bind(1, of.heard).bind(2, of.families).bind(3, of.refused).bind(4, of.id).run();
  }
  for (const core::Position& one : positions) {
    do_->put_position.bind(1, std::string_view(one.where.stream));
    do_->put_position.bind(2, std::int64_t{one.where.partition}).bind(3, one.next).run();
  }
  auto before = database_->failure();
  open_ = false;
  changed_.clear();
  forget_what_rests();
  database_->run(before ? "COMMIT" : "ROLLBACK");
  const auto after = database_->failure();
  if (!before) return before;
  if (!after) {
    database_->run("ROLLBACK");
    (void)database_->failure();
  }
  return after;
}

}  // namespace tocsin::insights
