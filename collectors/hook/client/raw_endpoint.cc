#include "collectors/hook/client/raw_endpoint.h"

#include <algorithm>
#include <utility>

#include "core/topics.h"

namespace tocsin::hook {
namespace {

constexpr std::uint64_t kRawPublisherBytes = 16ULL << 20;  // beside the client's own queue
constexpr std::chrono::milliseconds kRawLinger{5};
constexpr std::chrono::milliseconds kRawPing{1'000};

/// The publisher, and the transport that it needs.
class OwnPublisher final : public core::RecordPublisher {
 public:
  OwnPublisher(std::unique_ptr<Trouble> log, std::unique_ptr<core::NullTelemetry> telemetry,
               std::unique_ptr<ingest::Transport> transport)
      : log_(std::move(log)), telemetry_(std::move(telemetry)), transport_(std::move(transport)) {}

  core::Status open(const ingest::PublisherOptions& options) {
    auto made = transport_->publisher(options);
    if (!made) return made.error();
    publisher_ = *std::move(made);
    return core::ok();
  }
  core::Status publish(const core::OutRecord& record) override {
    return publisher_->publish(record);
  }
  core::Status flush(std::chrono::milliseconds timeout) override {
    return publisher_->flush(timeout);
  }
  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override {
    return publisher_->commit(records, positions);
  }
  core::Result<std::int32_t> partitions(std::string_view topic) override {
    return publisher_->partitions(topic);
  }

 private:
  std::unique_ptr<Trouble> log_;
  std::unique_ptr<core::NullTelemetry> telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<core::RecordPublisher> publisher_;
};

core::Result<std::unique_ptr<core::RecordPublisher>> own_publisher(const Settings& settings,
                                                                   const std::string& writer) {
  auto log = std::make_unique<Trouble>();
  auto telemetry = std::make_unique<core::NullTelemetry>();
  auto transport = ingest::Transport::open(settings.transport, settings.topics, *log, *telemetry);
  if (!transport) return transport.error();
  // Not into the queue of a client that has never reached a broker.
  if (auto answered = (*transport)->ping(kRawPing); !answered) return answered.error();
  auto made =
      std::make_unique<OwnPublisher>(std::move(log), std::move(telemetry), *std::move(transport));
  ingest::PublisherOptions options;
  options.writer = writer;
  options.linger = kRawLinger;
  options.max_queued_bytes = kRawPublisherBytes;
  if (auto opened = made->open(options); !opened) return opened.error();
  if (auto there = made->partitions(core::topic::kTensors); !there) return there.error();
  return std::unique_ptr<core::RecordPublisher>(std::move(made));
}

// A name that is one part of a path.
std::string part_of(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
    out += plain ? c : '_';
  }
  return out;
}

}  // namespace

OpenRawPlace raw_endpoint(const Settings& settings, const Identity& identity,
                          std::uint64_t incarnation) {
  if (settings.capture.dry_run) return nullptr;
  return [settings, identity, incarnation]() -> core::Result<std::unique_ptr<RawPlace>> {
    const RawConfig& raw = settings.capture.raw;
    auto publisher = own_publisher(settings, journal_writer(identity, incarnation) + "-raw");
    if (!publisher) return publisher.error();
    RawFrames frames(identity.worker, raw.chunk);
    const std::string key = core::route_key(identity.run);
    if (raw.on_topic()) return raw_topic(*std::move(publisher), std::move(frames), key);
    auto store = open_blobs(raw);
    if (!store) return store.error();
    const std::string folder = core::to_text(identity.run) + "/" +
                               std::to_string(identity.attempt) + "/" + part_of(identity.worker);
    return raw_objects(*std::move(publisher), std::move(frames), key, *std::move(store), folder);
  };
}

core::Result<TensorSource> tensor_source(const Settings& settings, const core::RunUid& run) {
  TensorSource out;
  auto log = std::make_unique<Trouble>();
  auto telemetry = std::make_unique<core::NullTelemetry>();
  ingest::SourceOptions options;
  options.topics = {core::topic::kTensors};
  options.start = ingest::Start::beginning;
  const bool kafka = !settings.transport.kafka.is_null();
  auto transport =
      kafka ? ingest::Transport::open(settings.transport, settings.topics, *log, *telemetry)
            : ingest::Transport::open_recording(settings.transport.journal, settings.topics, *log,
                                                *telemetry);
  if (!transport) return transport.error();
  if (kafka) {
    auto states = (*transport)->topic_states();
    if (!states) return states.error();
    std::optional<std::int32_t> partitions;
    for (const ingest::TopicState& state : *states) {
      if (state.wanted.name == core::topic::kTensors) partitions = state.partitions;
    }
    if (!partitions) {
      return core::not_found("there is no topic " + ingest::full_topic_name(settings.topics.prefix,
                                                                            core::topic::kTensors));
    }
    options.partition = core::partition_for(core::to_text(run), std::max(*partitions, 1));
  }
  auto source = (*transport)->source(options);
  if (!source) return source.error();
  out.log = std::move(log);
  out.telemetry = std::move(telemetry);
  out.transport = *std::move(transport);
  out.source = *std::move(source);
  return out;
}

}  // namespace tocsin::hook
