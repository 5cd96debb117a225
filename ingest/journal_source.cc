#include "ingest/journal_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tocsin::ingest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::milliseconds kFullLookEvery{1000};
constexpr int kIdleLooksBeforeRest = 10;

std::optional<std::string_view> header_of(const void* native, std::string_view name) {
  return static_cast<const JournalRecord*>(native)->header(name);
}

core::RecordView view_of(const JournalTail& tail) {
  const JournalRecord& record = tail.current();
  core::RecordView view;
  view.topic = record.topic;
  view.stream = tail.writer();
  view.offset = static_cast<std::int64_t>(tail.sequence());
  view.timestamp = record.timestamp;
  if (!record.key.empty()) view.key = record.key;
  if (record.value)
    view.value = std::as_bytes(std::span(record.value->data(), record.value->size()));
  view.tombstone = !record.value.has_value();
  view.native = &record;
  view.find_header = header_of;
  return view;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

std::map<std::string, std::int64_t> parse_positions(std::string_view json) {
  std::map<std::string, std::int64_t> positions;
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) return positions;
  for (const auto& [writer, next] : parsed.items()) {
    if (next.is_number_integer()) positions[writer] = next.get<std::int64_t>();
  }
  return positions;
}

std::string positions_json(const std::map<std::string, std::int64_t>& positions) {
  return nlohmann::json(positions).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::map<std::string, std::int64_t> read_positions(const std::string& directory,
                                                   const std::string& writer) {
  std::string newest;
  JournalTail tail(directory, writer, {std::string(kPositionsTopic)});
  tail.start(TailStart::snapshot);
  for (;;) {
    if (tail.load()) {
      if (tail.current().value) newest = *tail.current().value;
      tail.advance();
    } else if (!tail.take_gap()) {
      return parse_positions(newest);
    }
  }
}

JournalSource::JournalSource(std::string directory, SourceOptions options, bool all_compacted,
                             core::Log& log, core::Telemetry& telemetry)
    : directory_(std::move(directory)),
      options_(std::move(options)),
      all_compacted_(all_compacted),
      log_(log),
      gaps_(telemetry.counter("tocsin_ingest_gaps_total",
                              "Times a reader found records gone or damaged")),
      watch_(directory_) {}

JournalSource::Writer* JournalSource::find(const std::string& name) {
  const auto it = writers_.find(name);
  return it == writers_.end() ? nullptr : it->second.get();
}

/// First poll: takes in the writers there are and tells the listener where we stand.
void JournalSource::begin() {
  const auto now = Clock::now();
  next_look_ = now + kLookEvery;
  next_full_look_ = now + kFullLookEvery;
  discover();
  begun_ = true;
  std::map<std::string, std::int64_t> committed;
  if (!options_.own_writer.empty() && options_.start == Start::committed_or_beginning) {
    committed = read_positions(directory_, options_.own_writer);
  }
  std::vector<core::Position> positions;
  for (auto& [name, writer] : writers_) {
    const auto it = committed.find(name);
    const std::int64_t next = it == committed.end() ? -1 : it->second;
    if (next >= 0) {
      writer->tail.seek(static_cast<std::uint64_t>(next));
    } else if (options_.start == Start::end) {
      writer->tail.start(TailStart::end);
    } else {
      writer->tail.start(all_compacted_ ? TailStart::snapshot : TailStart::oldest);
    }
    writer->paused = options_.listener != nullptr;
    positions.push_back({{name, 0}, next});
  }
  hold_new_ = options_.listener != nullptr && !writers_.empty();
  if (options_.listener != nullptr) options_.listener->assigned(positions);
}

/// Takes in writers that appeared and drops those whose folder went.
void JournalSource::discover() {
  for (const auto& name : list_writers(directory_)) {
    if (writers_.contains(name)) continue;
    auto writer = std::make_unique<Writer>(JournalTail(directory_, name, options_.topics));
    writer->watched = watch_.add(name);
    if (begun_ && all_compacted_) writer->tail.start(TailStart::snapshot);
    writer->paused = writer->held = hold_new_;
    writers_.emplace(name, std::move(writer));
  }
  for (auto it = writers_.begin(); it != writers_.end();) {
    const bool gone = !it->second->tail.loaded() && !is_folder(directory_ + "/" + it->first);
    if (gone) watch_.remove(it->first);
    it = gone ? writers_.erase(it) : std::next(it);
  }
}

void JournalSource::apply(const JournalWatch::Changes& changes) {
  if (changes.writers || changes.lost) discover();
  for (const auto& name : changes.appended) {
    if (Writer* writer = find(name)) writer->dirty = true;
  }
  for (const auto& name : changes.segments) {
    if (Writer* writer = find(name)) {
      writer->dirty = true;
      writer->tail.directory_changed();
    }
  }
  if (changes.lost) next_full_look_ = {};
}

/// What inotify did not tell: every 50 ms for writers it cannot watch, every second for all.
void JournalSource::look_around() {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  const bool full = now >= next_full_look_;
  if (full) {
    next_full_look_ = now + kFullLookEvery;
    discover();
  }
  for (auto& [name, writer] : writers_) {
    if (writer->dirty || (writer->watched && !full)) continue;
    if (full) writer->tail.directory_changed();
    writer->dirty = (full && !writer->watched) || writer->tail.grown();
    if (full && ++writer->idle_looks >= kIdleLooksBeforeRest) writer->tail.rest();
  }
}

/// The writer whose next record was appended first.
JournalSource::Writer* JournalSource::oldest_ready() {
  Writer* best = nullptr;
  for (auto& [name, writer] : writers_) {
    if (writer->paused) continue;
    if (!writer->tail.loaded()) {
      if (!writer->dirty) continue;
      if (!writer->tail.load()) {
        if (auto gap = writer->tail.take_gap()) {
          gaps_.add();
          log_.warn("journal_gap_found", {{"stream", name}, {"reason", *gap}});
          pending_error_ = core::Error{core::Code::data_loss, std::move(*gap)};
          return nullptr;
        }
        writer->dirty = false;
        continue;
      }
      writer->idle_looks = 0;
    }
    if (best == nullptr || writer->tail.appended() < best->tail.appended()) best = writer.get();
  }
  return best;
}

std::size_t JournalSource::hand_out(std::size_t max_records, core::RecordHandler handler) {
  std::size_t count = 0;
  while (count < max_records) {
    Writer* writer = oldest_ready();
    if (writer == nullptr) {
      at_end_ = !pending_error_ && std::none_of(writers_.begin(), writers_.end(), [](auto& entry) {
        return entry.second->paused && (entry.second->dirty || entry.second->tail.loaded());
      });
      break;
    }
    at_end_ = false;
    // A batch's records have one append time: the choice stands for all of them.
    const std::int64_t time = writer->tail.appended();
    do {
      handler(view_of(writer->tail));
      writer->tail.advance();
      ++count;
    } while (count < max_records && writer->tail.load() && writer->tail.appended() <= time &&
             !writer->paused);
  }
  return count;
}

core::Result<std::size_t> JournalSource::poll(std::chrono::milliseconds timeout,
                                              std::size_t max_records,
                                              core::RecordHandler handler) {
  if (closed_) {
    return core::Error{core::Code::failed_precondition, "the journal source is closed"};
  }
  const auto deadline = Clock::now() + timeout;
  if (!begun_) begin();
  apply(watch_.wait(std::chrono::milliseconds{0}));
  look_around();
  for (;;) {
    if (pending_error_) return *std::exchange(pending_error_, std::nullopt);
    const std::size_t count = hand_out(max_records, handler);
    if (count > 0 || max_records == 0) return count;
    if (pending_error_) continue;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::size_t{0};
    apply(watch_.wait(std::min(left, kLookEvery)));
    look_around();
  }
}

core::Status JournalSource::seek(const core::Position& position) {
  Writer* writer = find(position.where.stream);
  if (writer == nullptr) {
    return core::not_found("journal writer " + position.where.stream + " is not assigned");
  }
  if (position.next < 0) {
    writer->tail.start(all_compacted_ ? TailStart::snapshot : TailStart::oldest);
  } else {
    writer->tail.seek(static_cast<std::uint64_t>(position.next));
  }
  writer->dirty = true;
  at_end_ = false;
  return core::ok();
}

core::Status JournalSource::pause(std::span<const core::StreamPartition> partitions) {
  for (const auto& partition : partitions) {
    if (Writer* writer = find(partition.stream)) writer->paused = true;
  }
  return core::ok();
}

core::Status JournalSource::resume(std::span<const core::StreamPartition> partitions) {
  for (const auto& partition : partitions) {
    if (Writer* writer = find(partition.stream)) writer->paused = false;
  }
  if (std::exchange(hold_new_, false)) {
    // Writers that appeared while the owner restored its state were held back unseen by it.
    for (auto& [name, writer] : writers_) {
      if (writer->held) writer->paused = writer->held = false;
    }
  }
  at_end_ = false;
  return core::ok();
}

std::vector<core::Position> JournalSource::positions() const {
  std::vector<core::Position> positions;
  positions.reserve(writers_.size());
  for (const auto& [name, writer] : writers_) {
    positions.push_back({{name, 0}, static_cast<std::int64_t>(writer->tail.next())});
  }
  return positions;
}

core::Status JournalSource::read_all(std::string_view topic, std::int32_t /*partition*/,
                                     core::RecordHandler handler) {
  std::vector<std::unique_ptr<JournalTail>> tails;
  for (const auto& name : list_writers(directory_)) {
    tails.push_back(std::make_unique<JournalTail>(directory_, name,
                                                  std::vector<std::string>{std::string(topic)}));
    tails.back()->start(TailStart::snapshot);
  }
  std::optional<std::string> gap;
  for (;;) {
    JournalTail* best = nullptr;
    for (auto& tail : tails) {
      while (!tail->load()) {
        auto found = tail->take_gap();
        if (!found) break;
        gap = std::move(found);
      }
      if (!tail->loaded()) continue;
      if (best == nullptr || tail->appended() < best->appended()) best = tail.get();
    }
    if (best == nullptr) break;
    handler(view_of(*best));
    best->advance();
  }
  if (gap) return core::Error{core::Code::data_loss, std::move(*gap)};
  return core::ok();
}

void JournalSource::close(std::chrono::milliseconds /*deadline*/) {
  closed_ = true;
  writers_.clear();
}

}  // namespace tocsin::ingest
