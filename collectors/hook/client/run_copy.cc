#include "collectors/hook/client/run_copy.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "collectors/hook/trouble.h"
#include "core/topics.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCopyPing{5'000};
constexpr milliseconds kCopyPoll{100};
constexpr milliseconds kCopyFlush{30'000};
constexpr int kCopyPatience = 300;  // polls in a row that brought nothing
constexpr std::size_t kCopyBatch = 1024;
constexpr std::size_t kShortestUid = 4;
// Records of a run may have times before the one that the registry has.
constexpr core::Duration kBeforeRun = std::chrono::minutes{10};
// What is copied is kept, however old it is.
constexpr core::Duration kCopyForEver = std::chrono::hours{24 * 365 * 100};
constexpr const char* kCopyMark = "tocsin_copied_from";  // "<partition> <offset>"

struct Mark {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

std::optional<Mark> mark_of(const core::RecordView& record) {
  const auto text = record.header(kCopyMark);
  if (!text) return std::nullopt;
  Mark out;
  const char* end = text->data() + text->size();
  const auto [space, bad] = std::from_chars(text->data(), end, out.partition);
  if (bad != std::errc() || space == end) return std::nullopt;
  if (std::from_chars(space + 1, end, out.offset).ec != std::errc()) return std::nullopt;
  return out;
}

/// Reads to the present end; `handle` gets what is there.
core::Status read_to_end(core::RecordSource& source, core::RecordHandler handle) {
  for (int waits = 0; waits < kCopyPatience;) {
    const auto read = source.poll(kCopyPoll, kCopyBatch, handle);
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (read && *read == 0 && source.at_end()) return core::ok();
    waits = read && *read > 0 ? 0 : waits + 1;
  }
  return core::Error{core::Code::unavailable, "nothing came of the topic for half a minute"};
}

}  // namespace

/// Everything stays paused until its first record is known.
class RunCopy::Assigned final : public core::AssignmentListener {
 public:
  void assigned(std::span<const core::Position> committed) override {
    for (const core::Position& one : committed) where.push_back(one.where);
  }
  void revoked(std::span<const core::StreamPartition> /*partitions*/) override {}
  void lost(std::span<const core::StreamPartition> /*partitions*/) override {}

  std::vector<core::StreamPartition> where;
};

RunCopy::RunCopy()
    : log_(std::make_unique<Trouble>()), telemetry_(std::make_unique<core::NullTelemetry>()) {}
RunCopy::~RunCopy() = default;

core::Result<std::unique_ptr<RunCopy>> RunCopy::open(const Settings& settings,
                                                     const std::string& run,
                                                     const std::string& directory) {
  if (settings.transport.kafka.is_null()) {
    return core::invalid_argument("a copy is made from a cluster: expected kafka://host:9092");
  }
  std::unique_ptr<RunCopy> out(new RunCopy);
  if (auto reached = out->reach(settings); !reached) return reached.error();
  if (auto chosen = out->choose(run); !chosen) return chosen.error();
  if (auto opened = out->open_directory(directory); !opened) return opened.error();
  if (auto begun = out->find_shards(); !begun) return begun.error();
  return out;
}

core::Status RunCopy::reach(const Settings& settings) {
  auto cluster = ingest::Transport::open(settings.transport, settings.topics, *log_, *telemetry_);
  if (!cluster) return cluster.error();
  cluster_ = *std::move(cluster);
  if (auto answered = cluster_->ping(kCopyPing); !answered) return answered;
  const auto states = cluster_->topic_states();
  if (!states) return states.error();
  for (const ingest::TopicState& state : *states) {
    if (state.wanted.name == core::topic::kTelemetry) partitions_ = state.partitions.value_or(0);
  }
  if (partitions_ > 0) return core::ok();
  return core::not_found("there is no topic " +
                         ingest::full_topic_name(settings.topics.prefix, core::topic::kTelemetry));
}

// A whole uid needs no registry: a run that no engine has read is not in it.
core::Status RunCopy::choose(const std::string& run) {
  if (!run.empty() && run.size() < kShortestUid) {
    return core::invalid_argument("run \"" + run + "\": expected a uid, or its first " +
                                  std::to_string(kShortestUid) + " digits or more");
  }
  ingest::SourceOptions options;
  options.topics = {core::topic::kRegistry};
  options.start = ingest::Start::beginning;
  std::map<core::RunUid, core::WallTime> found;
  auto source = cluster_->source(options);
  if (!source) return source.error();
  const auto look = [&](const core::RecordView& record) {
    if (record.tombstone) return;
    const auto decoded = ingest::decode_event(record);
    const auto* job = decoded ? std::get_if<core::JobEvent>(&decoded->event) : nullptr;
    if (job == nullptr || !core::to_text(job->run.uid).starts_with(run)) return;
    const core::WallTime began = job->started_at.value_or(job->time);
    const auto [at, fresh] = found.try_emplace(job->run.uid, began);
    if (!fresh) at->second = std::min(at->second, began);  // of all attempts
  };
  const auto whole = core::parse_run_uid(run);
  if (auto read = read_to_end(**source, look); !read && !whole) return read;
  if (found.empty() && !whole) {
    return core::not_found(
        run.empty() ? "the topic registry names no run: give the uid of one"
                    : "the topic registry names no run whose uid begins with \"" + run + "\"");
  }
  if (found.size() > 1 && !run.empty()) {
    std::string names;
    for (const auto& [uid, _] : found) names += (names.empty() ? "" : ", ") + core::to_text(uid);
    return core::Error{core::Code::failed_precondition,
                       "several runs begin with \"" + run + "\": " + names};
  }
  if (found.empty()) {
    run_ = *whole;
  } else {
    const auto newest = std::max_element(
        found.begin(), found.end(),
        [](const auto& one, const auto& other) { return one.second < other.second; });
    run_ = newest->first;
    began_ = newest->second;
  }
  key_ = core::route_key(run_);
  return core::ok();
}

core::Status RunCopy::open_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return core::Error{core::Code::unavailable, directory + ": " + error.message()};
  if (std::filesystem::exists(std::filesystem::path(directory) / "telemetry.db", error)) {
    auto before = ingest::Transport::open_recording(directory, {}, *log_, *telemetry_);
    if (!before) return before.error();
    ingest::SourceOptions options;
    options.topics = {core::topic::kTelemetry};
    options.start = ingest::Start::beginning;
    auto source = (*before)->source(options);
    if (!source) return source.error();
    bool ours = true;
    const auto look = [&](const core::RecordView& record) {
      const auto mark = mark_of(record);
      const std::string_view key = record.key.value_or("");
      ours = ours && mark && (key == key_ || key.starts_with(key_ + "/"));
      if (!ours) return;
      learn_shards(record);
      std::int64_t& next = marks_[mark->partition];
      next = std::max(next, mark->offset + 1);
    };
    if (auto read = read_to_end(**source, look); !read) return read;
    if (!ours) {
      return core::Error{core::Code::failed_precondition,
                         directory + " has other telemetry than a copy of run " +
                             core::to_text(run_) + ": give an empty directory"};
    }
  }
  ingest::TransportConfig where;
  where.journal = directory;
  where.journal_retention = kCopyForEver;
  ingest::TopicsConfig topics;
  topics.telemetry_retention = kCopyForEver;
  auto opened = ingest::Transport::open(where, topics, *log_, *telemetry_);
  if (!opened) return opened.error();
  directory_ = *std::move(opened);
  ingest::PublisherOptions publishing;
  publishing.writer = "copy";
  auto publisher = directory_->publisher(publishing);
  if (!publisher) return publisher.error();
  publisher_ = *std::move(publisher);
  return core::ok();
}

void RunCopy::learn_shards(const core::RecordView& record) {
  const auto frame = ingest::decode_frame(record.value);
  if (frame) shards_ = std::max(shards_, frame.frame().header().shard_count);
}

core::Status RunCopy::find_shards() {
  for (std::uint16_t shard = 0; shard < shards_; ++shard) {
    const auto partition = core::partition_for(core::route_key(run_, shard), partitions_);
    if (streams_.contains(partition)) continue;
    if (auto begun = begin(partition); !begun) return begun;
  }
  return core::ok();
}

core::Status RunCopy::begin(std::int32_t partition) {
  Stream stream;
  stream.assigned = std::make_unique<Assigned>();
  if (const auto at = marks_.find(partition); at != marks_.end()) stream.next = at->second;
  ingest::SourceOptions options;
  options.topics = {core::topic::kTelemetry};
  options.start = ingest::Start::beginning;
  options.partition = partition;
  options.listener = stream.assigned.get();
  auto source = cluster_->source(options);
  if (!source) return source.error();
  stream.source = *std::move(source);
  streams_.emplace(partition, std::move(stream));
  return core::ok();
}

// From where a copy had come, else from the time at which the run began.
core::Status RunCopy::begin(std::int32_t partition, Stream& stream) {
  if (!stream.next && began_) {
    std::optional<std::int64_t> first;
    const auto look = [&](const core::RecordView& record) {
      if (!first) first = record.offset;
      take(partition, stream, record);
    };
    const auto read =
        stream.source->read_all(core::topic::kTelemetry, partition, *began_ - kBeforeRun, look);
    if (!read) return read;
  }
  const core::StreamPartition& where = stream.assigned->where.front();
  if (stream.next) {
    if (auto sought = stream.source->seek({where, *stream.next}); !sought) return sought;
  }
  stream.begun = true;
  return stream.source->resume({&where, 1});
}

void RunCopy::take(std::int32_t partition, Stream& stream, const core::RecordView& record) {
  if (!status_ || record.offset < stream.next.value_or(0)) return;
  const std::string_view key = record.key.value_or("");
  if (key == key_ || (key.starts_with(key_) && key.substr(key_.size()).starts_with('/'))) {
    learn_shards(record);
    core::OutRecord out;
    out.topic = core::topic::kTelemetry;
    out.key = std::string(key);
    if (!record.tombstone) out.value.emplace(record.text());
    out.timestamp = record.timestamp;
    out.headers.emplace_back(kCopyMark,
                             std::to_string(partition) + " " + std::to_string(record.offset));
    status_ = publisher_->publish(out);
    if (!status_ && status_.error().code == core::Code::resource_exhausted) {
      if ((status_ = publisher_->flush(kCopyFlush))) status_ = publisher_->publish(out);
    }
    if (!status_) return;
    ++copied_;
  }
  stream.next = record.offset + 1;
}

core::Status RunCopy::read(std::int32_t partition, Stream& stream, milliseconds timeout) {
  const auto polled = stream.source->poll(timeout, kCopyBatch, [&](const core::RecordView& record) {
    take(partition, stream, record);
  });
  if (!stream.begun && !stream.assigned->where.empty()) {
    if (auto begun = begin(partition, stream); !begun) return begun;
  }
  if (polled || polled.error().code == core::Code::data_loss || polled.error().retryable()) {
    return status_;
  }
  return polled.error();
}

bool RunCopy::at_end() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& one) {
    return one.second.begun && one.second.source->at_end();
  });
}

core::Result<std::uint64_t> RunCopy::next(milliseconds timeout) {
  const std::uint64_t before = copied_;
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (int waits = 0; waits < kCopyPatience;) {
    const auto began = copied_;
    for (auto& [partition, stream] : streams_) {
      const auto wait = kCopyPoll / static_cast<int>(streams_.size());
      if (auto read_one = read(partition, stream, wait); !read_one) return read_one.error();
    }
    if (auto found = find_shards(); !found) return found.error();
    waits = copied_ > began ? 0 : waits + 1;
    if (waits == 0 || !at_end()) continue;
    if (copied_ > before || std::chrono::steady_clock::now() >= until) break;
    waits = 0;
  }
  if (auto durable = publisher_->flush(kCopyFlush); !durable) return durable.error();
  return copied_ - before;
}

}  // namespace tocsin::hook
