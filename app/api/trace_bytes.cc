#include "app/api/trace_bytes.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "app/api/trace_slice.h"
#include "app/recordings/recording.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

constexpr auto kBeforeTheAnswer = std::chrono::minutes(10);  // clocks differ, queues wait
constexpr auto kBehindTheAnswer = std::chrono::hours(1);
constexpr auto kLongestSearch = std::chrono::seconds(20);
constexpr std::size_t kChunksOfATurn = 4;  // up to 1 MiB each
constexpr auto kTraceNeverIdle = std::chrono::hours(1);

/// A run's chunks are in one partition; nullopt: there is only one, or nobody knows.
core::Result<std::optional<std::int32_t>> partition_of(ingest::Transport& transport,
                                                       const core::RunUid& run) {
  if (!transport.is_kafka()) return std::optional<std::int32_t>();
  auto states = transport.topic_states();
  if (!states) return states.error();
  for (const ingest::TopicState& state : *states) {
    if (state.wanted.name != core::topic::kTensors) continue;
    if (!state.partitions) break;
    return std::optional(core::partition_for(core::route_key(run), std::max(*state.partitions, 1)));
  }
  return core::not_found("there is no topic " + std::string(core::topic::kTensors));
}

class TraceStream final : public HttpStream {
 public:
  TraceStream(ingest::Transport& transport, const core::RunUid& run, const SentTrace& trace,
              const TracePlace& place, ByteRange range, std::shared_ptr<std::atomic<int>> open)
      : transport_(transport), chunks_(run, trace), slice_(range), open_(std::move(open)) {
    span_.from.offset = place.offset;
    span_.partition = place.partition;
  }
  TraceStream(const TraceStream&) = delete;
  TraceStream& operator=(const TraceStream&) = delete;
  ~TraceStream() override { open_->fetch_sub(1); }

  void attach(std::function<void()> /*wake*/) override {}
  void detach() override {}
  Piece take() override;
  [[nodiscard]] bool may_wait() const override { return true; }
  [[nodiscard]] std::string idle() const override { return {}; }
  [[nodiscard]] std::chrono::milliseconds idle_after() const override { return kTraceNeverIdle; }

 private:
  void add(const core::RecordView& record, Piece& out);

  ingest::Transport& transport_;
  TraceChunks chunks_;
  TraceSlice slice_;
  std::shared_ptr<std::atomic<int>> open_;
  Span span_;
  std::unique_ptr<RecordingReader> reader_;
};

// A chunk that was sent twice comes twice; one that is missing tears the answer.
void TraceStream::add(const core::RecordView& record, Piece& out) {
  if (const auto chunk = chunks_.chunk_in(record)) slice_.add(*chunk, out);
}

HttpStream::Piece TraceStream::take() {
  Piece out;
  if (reader_ == nullptr) {
    auto opened = RecordingReader::open(transport_, core::topic::kTensors, span_);
    if (!opened) return {"", false, true};
    reader_ = std::move(*opened);
  }
  while (out.text.empty() && !out.torn && !slice_.done()) {
    const auto over =
        reader_->read([&](const core::RecordView& record) { add(record, out); }, kChunksOfATurn);
    const bool cut = !over || reader_->end().gaps > 0 || (*over && !slice_.done());
    out.torn = out.torn || cut;
  }
  out.last = !out.torn && slice_.done();
  return out;
}

}  // namespace

core::Result<TracePlace> find_trace(ingest::Transport& transport, const core::RunUid& run,
                                    const SentTrace& trace, const core::Clock& clock) {
  const auto partition = partition_of(transport, run);
  if (!partition) return partition.error();
  Span span;
  span.from.time = trace.at - kBeforeTheAnswer;
  span.to.time = trace.at + kBehindTheAnswer;
  span.partition = *partition;
  auto reader = RecordingReader::open(transport, core::topic::kTensors, span);
  if (!reader) return reader.error();
  const TraceChunks chunks(run, trace);
  std::optional<TracePlace> found;
  const core::Duration until = clock.monotonic() + kLongestSearch;
  const auto look = [&](const core::RecordView& record) {
    if (found) return;
    const auto chunk = chunks.chunk_in(record);
    if (!chunk || chunk->chunk != 0) return;
    found = TracePlace{record.partition, record.offset, chunk->total_bytes, "", 0, 0};
    if (!chunk->dataref) return;
    found->uri = std::string(chunk->dataref->uri);
    found->object_offset = chunk->dataref->offset;
    found->object_bytes = chunk->dataref->bytes;
  };
  for (bool over = false; !over && !found;) {
    const auto read = (*reader)->read(look, kChunksOfATurn);
    if (!read) return read.error();
    over = *read;
    if (!found && !over && clock.monotonic() > until) {
      return core::Error{core::Code::unavailable,
                         "the topic holds so many raw tensors that the trace was not found within "
                         "20 s: python3 -m tocsin.trace reads on"};
    }
  }
  if (found) return std::move(*found);
  return core::not_found("The bytes of this trace are not in " + transport.describe() +
                         " any more: raw tensors are kept for a time only");
}

std::shared_ptr<HttpStream> trace_stream(ingest::Transport& transport, const core::RunUid& run,
                                         const SentTrace& trace, const TracePlace& place,
                                         ByteRange range, std::shared_ptr<std::atomic<int>> open) {
  return std::make_shared<TraceStream>(transport, run, trace, place, range, std::move(open));
}

}  // namespace tocsin::app
