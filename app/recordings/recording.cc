#include "app/recordings/recording.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kRecordingWait = 100ms;
constexpr int kRecordingPatience = 600;  // waits in a row without a record
// Records of several writers are not sorted by time: what is further behind the end than this, ends.
constexpr std::int64_t kDisorder = 300'000'000'000;

struct Found {};  // leaves read_all() at its first record

/// nullopt: every record is older.
core::Result<std::optional<std::int64_t>> first_since(core::RecordSource& source,
                                                      std::string_view topic,
                                                      std::int32_t partition,
                                                      core::WallTime since) {
  std::optional<std::int64_t> first;
  try {
    const auto read = source.read_all(topic, partition, since, [&](const core::RecordView& record) {
      first = record.offset;
      throw Found{};
    });
    if (!read) return read.error();
  } catch (const Found&) {
  }
  return first;
}

bool is_date(const std::string& text) { return text.size() == 10 && text[4] == '-'; }

}  // namespace

core::Result<Bound> parse_bound(std::string_view option, const std::string& text,
                                core::WallTime now) {
  Bound out;
  if (text.empty()) return out;
  if (text.front() == '@') {
    std::int64_t offset = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + 1, last, offset);
    if (error == std::errc() && end == last && offset >= 0) {
      out.offset = offset;
      return out;
    }
  } else if (text == "now") {
    out.time = now;
    return out;
  } else if (const auto time = core::parse_rfc3339(is_date(text) ? text + "T00:00:00Z" : text)) {
    out.time = *time;
    return out;
  } else if (const auto ago = core::parse_duration(text); ago && *ago > core::Duration{}) {
    out.time = now - *ago;
    return out;
  }
  return core::invalid_argument(std::string(option) + " " + text +
                                ": expected a time such as 2026-11-22T14:00:00Z or 2026-11-22, a "
                                "span back from now such as 2h, now, or an offset such as @1200");
}

core::Status check_span(const Span& span, bool several_partitions, const std::string& since,
                        const std::string& until) {
  const bool offsets = span.from.offset || span.to.offset;
  if (offsets && several_partitions && !span.partition) {
    return core::invalid_argument(
        "an offset (@…) counts in one partition: name it with --partition");
  }
  if (span.from.time && span.to.time && *span.from.time >= *span.to.time) {
    return core::invalid_argument(since + " " + core::to_rfc3339(*span.from.time) +
                                  " is not before " + until + " " +
                                  core::to_rfc3339(*span.to.time));
  }
  if (span.from.offset && span.to.offset && *span.from.offset >= *span.to.offset) {
    return core::invalid_argument(since + " @" + std::to_string(*span.from.offset) +
                                  " is not before " + until + " @" +
                                  std::to_string(*span.to.offset));
  }
  return core::ok();
}

/// Notes what is assigned; everything stays paused until its first record is known.
class RecordingReader::Assigned final : public core::AssignmentListener {
 public:
  void assigned(std::span<const core::Position> committed) override {
    for (const core::Position& one : committed) partitions.push_back(one.where);
    known = true;
  }
  void revoked(std::span<const core::StreamPartition>) override {}
  void lost(std::span<const core::StreamPartition>) override {}

  std::vector<core::StreamPartition> partitions;
  bool known = false;
};

RecordingReader::RecordingReader(std::string_view topic, Span span)
    : topic_(topic), span_(span), assigned_(std::make_unique<Assigned>()) {}
RecordingReader::~RecordingReader() = default;

core::Result<std::unique_ptr<RecordingReader>> RecordingReader::open(ingest::Transport& transport,
                                                                     std::string_view topic,
                                                                     Span span) {
  std::unique_ptr<RecordingReader> out(new RecordingReader(topic, span));
  ingest::SourceOptions options;
  options.topics = {std::string(topic)};
  options.start = ingest::Start::beginning;
  options.listener = out->assigned_.get();
  auto source = transport.source(options);
  if (!source) return source.error();
  out->source_ = std::move(*source);
  return out;
}

core::Status RecordingReader::begin() {
  for (const auto& where : assigned_->partitions) {
    Stream& stream = streams_[where.partition];
    stream.where = where;
    stream.over = stream.paused = span_.partition && *span_.partition != where.partition;
    if (stream.over) continue;
    if (auto begun = begin(stream); !begun) return begun;
  }
  if (span_.partition && !streams_.contains(*span_.partition)) {
    return core::invalid_argument("there is no partition " + std::to_string(*span_.partition) +
                                  " of " + topic_ + ": it has " + std::to_string(streams_.size()));
  }
  begun_ = true;
  return core::ok();
}

core::Status RecordingReader::begin(Stream& stream) {
  std::optional<std::int64_t> first;
  if (span_.from.offset) {
    first = *span_.from.offset;
  } else if (span_.from.time) {
    const auto found = first_since(*source_, topic_, stream.where.partition, *span_.from.time);
    if (!found) return found.error();
    if (!*found) {
      stream.over = stream.paused = true;
      return core::ok();
    }
    first = **found;
  }
  if (first) {
    if (auto sought = source_->seek({stream.where, *first}); !sought) return sought;
  }
  return source_->resume({&stream.where, 1});
}

void RecordingReader::take(const core::RecordView& record, core::RecordHandler handle) {
  const auto found = streams_.find(record.partition);
  if (found == streams_.end() || found->second.over) return;
  if (span_.to.offset && record.offset >= *span_.to.offset) {
    found->second.over = true;
    return;
  }
  if (span_.from.time && record.timestamp < core::nanoseconds(*span_.from.time)) return;
  if (span_.to.time) {
    const std::int64_t end = core::nanoseconds(*span_.to.time);
    found->second.over = record.timestamp - kDisorder >= end;
    if (record.timestamp >= end) return;
  }
  handle(record);
}

core::Status RecordingReader::pause_ended() {
  for (auto& [partition, stream] : streams_) {
    if (!stream.over || stream.paused) continue;
    if (auto paused = source_->pause({&stream.where, 1}); !paused) return paused;
    stream.paused = true;
  }
  return core::ok();
}

bool RecordingReader::at_end() const {
  return std::all_of(streams_.begin(), streams_.end(), [&](const auto& one) {
    return one.second.over || source_->at_end(one.second.where);
  });
}

core::Result<bool> RecordingReader::read(core::RecordHandler handle, std::size_t most) {
  if (!begun_ && assigned_->known) {
    if (auto status = begin(); !status) return status.error();
    waits_ = 0;
  }
  const auto read = source_->poll(begun_ && at_end() ? 0ms : kRecordingWait, most,
                                  [&](const core::RecordView& record) { take(record, handle); });
  if (!read && read.error().code == core::Code::data_loss) {
    ++end_.gaps;
  } else if (!read && !read.error().retryable()) {
    return read.error();
  }
  waits_ = read && *read > 0 ? 0 : waits_ + 1;
  if (auto paused = pause_ended(); !paused) return paused.error();
  if (begun_ && waits_ > 0 && at_end()) return true;
  if (waits_ < kRecordingPatience) return false;
  return core::Error{core::Code::deadline_exceeded,
                     begun_
                         ? "nothing came of " + topic_ + " for a minute, and it is not at its end"
                         : "nothing answered for a minute"};
}

core::Result<RecordingEnd> read_recording(ingest::Transport& transport, std::string_view topic,
                                          const Span& span, core::RecordHandler handle,
                                          core::FunctionRef<void()> between) {
  auto reader = RecordingReader::open(transport, topic, span);
  if (!reader) return reader.error();
  for (;;) {
    const auto done = (*reader)->read(handle);
    if (!done) return done.error();
    between();
    if (*done) return (*reader)->end();
  }
}

}  // namespace tocsin::app
