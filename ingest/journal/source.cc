#include "ingest/journal/source.h"

#include <algorithm>
#include <utility>

#include "ingest/journal/fork.h"
#include "ingest/journal/headers.h"
#include "ingest/journal/positions_since.h"

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kCheckEvery{1};
constexpr const char* kColumns = "SELECT id, ts, key, value, headers FROM ";

/// The headers of a row, which are read when one is asked for: most records are of no interest to most.
struct RowHeaders {
  const Statement* row;
  mutable bool read = false;
  mutable HeaderIndex index = {};
};

std::optional<std::string_view> header_of(const void* native, std::string_view name) {
  const auto& headers = *static_cast<const RowHeaders*>(native);
  if (!headers.read) headers.index.read(headers.row->bytes(4));
  headers.read = true;
  return headers.index.find(name);
}

core::RecordView view_of(const JournalTopic& topic, const Statement& row, RowHeaders& headers) {
  headers.read = false;
  core::RecordView view;
  view.topic = view.stream = topic.name;
  view.offset = row.integer(0);
  view.timestamp = row.integer(1);
  if (!row.null(2)) view.key = row.bytes(2);
  view.tombstone = row.null(3);
  const std::string_view value = row.bytes(3);
  view.value = std::as_bytes(std::span(value.data(), value.size()));
  view.native = &headers;
  view.find_header = header_of;
  return view;
}

/// What a poll that meets damage returns: only a new source can help, after somebody repaired it.
core::Error for_poll(core::Error error) {
  if (error.code == core::Code::data_loss) error.code = core::Code::failed_precondition;
  return error;
}

}  // namespace

JournalSource::JournalSource(std::string directory, const JournalTopics& topics,
                             SourceOptions options, std::shared_ptr<GroupLock> owner,
                             core::Log& log, core::Telemetry& telemetry, JournalAccess access)
    : directory_(std::move(directory)),
      topics_(topics),
      options_(std::move(options)),
      access_(access),
      owner_(std::move(owner)),
      log_(log),
      gaps_(telemetry.counter("tocsin_ingest_gaps_total",
                              "Times a reader found records gone or damaged")),
      pace_(options_.patience) {}

JournalSource::Stream* JournalSource::find(const core::StreamPartition& where) {
  const auto it = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.topic->name == where.stream && where.partition == 0;
  });
  return it == streams_.end() ? nullptr : &*it;
}

core::Result<JournalDatabase*> JournalSource::database(JournalFile file) {
  auto& kept = databases_[static_cast<std::size_t>(file)];
  if (kept == nullptr) {
    auto opened = JournalDatabase::open(journal_path(directory_, file), access_);
    if (!opened) return opened.error();
    kept = std::move(*opened);
  }
  return kept.get();
}

core::Result<std::optional<std::int64_t>> JournalSource::committed(const std::string& topic) {
  std::optional<std::int64_t> none;
  if (options_.group.empty()) return none;
  auto control = database(JournalFile::control);
  if (!control) return control.error();
  auto query = (*control)->prepare("SELECT next FROM position WHERE consumer = ? AND topic = ?");
  if (!query) return query.error();
  switch (query->bind(1, options_.group).bind(2, topic).step()) {
    case SQLITE_ROW:
      return std::optional<std::int64_t>(query->integer(0));
    case SQLITE_DONE:
      return none;
    default:
      return (*control)->error();
  }
}

/// First poll: finds out where we stand, and tells the listener.
core::Status JournalSource::begin() {
  const JournalUse use;
  std::vector<Stream> streams;
  std::vector<core::Position> positions;
  std::array<bool, 2> used{};
  for (const auto& name : options_.topics) {
    Stream stream;
    stream.topic = &topics_.find(name)->second;
    const auto file = stream.topic->file;
    auto from = database(file);
    if (!from) return from.error();
    auto rows =
        (*from)->prepare(kColumns + stream.topic->table + " WHERE id >= ? ORDER BY id LIMIT ?");
    if (!rows) return rows.error();
    stream.rows = std::move(*rows);
    auto end = (*from)->prepare("SELECT next FROM topic WHERE name = '" + name + "'");
    if (!end) return end.error();
    stream.end = std::move(*end);
    core::Position position{{name, 0}, -1};
    if (options_.start == Start::committed_or_beginning) {
      auto at = committed(name);
      if (!at) return at.error();
      position.next = stream.next = at->value_or(-1);
    } else if (options_.start == Start::end) {
      const StatementScope scope(stream.end);
      if (stream.end.step() != SQLITE_ROW) return (*from)->error();
      stream.next = stream.end.integer(0);
    }
    stream.paused = options_.listener != nullptr;
    used[static_cast<std::size_t>(file)] = true;
    streams.push_back(std::move(stream));
    positions.push_back(std::move(position));
  }
  for (const auto file : kJournalFiles) {
    if (used[static_cast<std::size_t>(file)]) watch_.add(journal_path(directory_, file) + "-wal");
  }
  streams_ = std::move(streams);
  begun_ = true;
  if (options_.listener != nullptr) options_.listener->assigned(positions);
  return core::ok();
}

core::Error JournalSource::gap(Stream& stream, std::int64_t first) {
  const std::string text = "records " + std::to_string(stream.next) + " to " +
                           std::to_string(first - 1) + " of " + stream.topic->name + " are gone";
  gaps_.add();
  log_.warn("journal_gap_found", {{"topic", stream.topic->name}, {"reason", text}});
  stream.next = first;
  return {core::Code::data_loss, text};
}

/// Without rows: is that the end, or did retention take all there was?
core::Status JournalSource::look_for_end(Stream& stream) {
  const StatementScope scope(stream.end);
  if (stream.end.step() != SQLITE_ROW) {
    return for_poll(databases_[static_cast<std::size_t>(stream.topic->file)]->error());
  }
  const std::int64_t end = stream.end.integer(0);
  if (stream.paused) {
    stream.at_end = stream.next >= end || end == 0;
    return core::ok();
  }
  stream.at_end = true;
  if (stream.next < 0 || stream.next >= end) return core::ok();
  if (!stream.topic->compacted) return gap(stream, end);
  stream.next = end;
  return core::ok();
}

core::Status JournalSource::read(Stream& stream, std::size_t max_records,
                                 core::RecordHandler handler, std::size_t& count) {
  stream.at_end = false;
  if (stream.next >= 0) {
    // Mostly somebody else's records have come. The ends of all topics lie in one page, their rows
    // in pages of each, and after a commit none is kept.
    const StatementScope scope(stream.end);
    if (stream.end.step() == SQLITE_ROW && stream.end.integer(0) <= stream.next) {
      stream.at_end = true;
      return core::ok();
    }
  }
  const std::size_t before = count;
  const auto limit = static_cast<std::int64_t>(max_records - count);
  const StatementScope scope(stream.rows);
  stream.rows.bind(1, std::max<std::int64_t>(stream.next, 0)).bind(2, limit);
  RowHeaders headers{&stream.rows};
  int step = stream.rows.step();
  for (; step == SQLITE_ROW; step = stream.rows.step()) {
    const std::int64_t id = stream.rows.integer(0);
    if (!stream.topic->compacted && stream.next >= 0 && id != stream.next) {
      if (count > 0) return core::ok();  // first what is there; the next poll meets it again
      return gap(stream, id);
    }
    stream.next = id + 1;
    ++count;
    handler(view_of(*stream.topic, stream.rows, headers));
    if (stream.paused || stream.next != id + 1) return core::ok();  // the handler paused or sought
  }
  if (step != SQLITE_DONE) {
    return for_poll(databases_[static_cast<std::size_t>(stream.topic->file)]->error());
  }
  if (count == before && limit > 0) return look_for_end(stream);
  stream.at_end = count < max_records;
  return core::ok();
}

/// One short read transaction per file: rows and ends are of one moment, and no log is held long.
core::Result<std::size_t> JournalSource::look(std::size_t max_records,
                                              core::RecordHandler handler) {
  const JournalUse use;
  std::size_t count = 0;
  core::Status status = core::ok();
  struct Snapshot {
    explicit Snapshot(JournalDatabase* of) : database(of) {
      if (database != nullptr) (void)database->run("BEGIN");
    }
    ~Snapshot() {
      if (database != nullptr) (void)database->run("COMMIT");
    }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    JournalDatabase* database;
  };
  const Snapshot telemetry(databases_[0].get());
  const Snapshot control(databases_[1].get());
  for (std::size_t i = 0; i < streams_.size() && status; ++i) {
    Stream& stream = streams_[(turn_ + i) % streams_.size()];
    if (stream.paused) {
      status = look_for_end(stream);
    } else if (count < max_records) {
      status = read(stream, max_records, handler, count);
    } else {
      stream.at_end = false;
    }
  }
  if (!status && count == 0) return status.error();
  if (count > 0) ++turn_;
  return count;
}

/// A file that was deleted under us goes on being readable, and nothing comes any more.
core::Status JournalSource::check_files() {
  const auto now = Clock::now();
  if (now < next_check_) return core::ok();
  next_check_ = now + kCheckEvery;
  for (const auto& file : databases_) {
    if (file == nullptr || !file->replaced()) continue;
    return core::Error{core::Code::failed_precondition,
                       "journal file " + file->path() + " was removed or replaced"};
  }
  return core::ok();
}

core::Result<std::size_t> JournalSource::poll(milliseconds timeout, std::size_t max_records,
                                              core::RecordHandler handler) {
  if (closed_) {
    return core::Error{core::Code::failed_precondition, "the journal source is closed"};
  }
  const auto deadline = Clock::now() + timeout;
  if (!begun_) {
    if (auto status = begin(); !status) return for_poll(status.error());
  }
  for (bool asked = true;; asked = false) {
    if (auto status = check_files(); !status) return status.error();
    const bool hears = pace_.hears(Clock::now(), asked);
    if (hears && watch_.changed()) pace_.changed();
    if (pace_.due(Clock::now(), asked && hears)) {
      auto count = look(max_records, handler);
      if (count) note_look(*count);
      if (!count || *count > 0) return count;
    }
    const auto now = Clock::now();
    if (now >= deadline || max_records == 0) return std::size_t{0};
    const auto until = std::min(deadline, pace_.next());
    const auto wakeup = watch_.wait(pace_.deaf_until() - now, until - now);
    if (wakeup == JournalWatch::Wakeup::woken) return std::size_t{0};
    if (wakeup == JournalWatch::Wakeup::changed) pace_.changed();
  }
}

void JournalSource::note_look(std::size_t found) {
  const bool trusted = !pace_.distrusts();
  pace_.looked(found, watch_.armed(), Clock::now());
  if (!trusted || !pace_.distrusts()) return;
  log_.warn("journal_changes_not_announced", {{"directory", directory_}});
}

core::Status JournalSource::seek(const core::Position& position) {
  Stream* stream = find(position.where);
  if (stream == nullptr) {
    return core::not_found("topic " + position.where.stream + " is not assigned");
  }
  stream->next = std::max<std::int64_t>(position.next, -1);
  stream->at_end = false;
  pace_.wanted();
  return core::ok();
}

core::Status JournalSource::pause(std::span<const core::StreamPartition> partitions) {
  for (const auto& where : partitions) {
    if (Stream* stream = find(where)) stream->paused = true;
  }
  pace_.wanted();
  return core::ok();
}

core::Status JournalSource::resume(std::span<const core::StreamPartition> partitions) {
  for (const auto& where : partitions) {
    Stream* stream = find(where);
    if (stream == nullptr || !stream->paused) continue;
    stream->paused = stream->at_end = false;
  }
  pace_.wanted();
  return core::ok();
}

std::vector<core::Position> JournalSource::positions() const {
  std::vector<core::Position> positions;
  for (const auto& stream : streams_) positions.push_back({{stream.topic->name, 0}, stream.next});
  return positions;
}

bool JournalSource::at_end() const {
  return begun_ && std::all_of(streams_.begin(), streams_.end(),
                               [](const Stream& stream) { return stream.at_end; });
}

bool JournalSource::at_end(const core::StreamPartition& where) const {
  const auto it = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.topic->name == where.stream && where.partition == 0;
  });
  return it != streams_.end() && it->at_end;
}

core::Status JournalSource::read_all(std::string_view topic, std::int32_t /*partition*/,
                                     std::optional<core::WallTime> since,
                                     core::RecordHandler handler) {
  const JournalUse use;
  const auto known = topics_.find(topic);
  if (known == topics_.end()) {
    return core::not_found("topic " + std::string(topic) + " is not one of ours");
  }
  auto from = database(known->second.file);
  if (!from) return from.error();
  std::int64_t first = 0;
  if (since) {
    const auto found = journal_first_since(**from, known->second, *since);
    if (!found) return found.error();
    first = *found;
  }
  auto rows = (*from)->prepare(kColumns + known->second.table + " WHERE id >= ? ORDER BY id");
  if (!rows) return rows.error();
  RowHeaders headers{&*rows};
  int step = rows->bind(1, first).step();
  for (; step == SQLITE_ROW; step = rows->step()) handler(view_of(known->second, *rows, headers));
  return step == SQLITE_DONE ? core::ok() : core::Status((*from)->error());
}

void JournalSource::close(milliseconds /*deadline*/) {
  if (closed_) return;
  const JournalUse use;
  closed_ = true;
  streams_.clear();
  for (auto& file : databases_) file.reset();
  if (owner_ != nullptr) owner_->release();
}

}  // namespace tocsin::ingest
