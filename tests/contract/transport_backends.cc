#include "tests/contract/transport_backends.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/simulation/broker.h"
#include "tests/support/kafka_fixture.h"

namespace tocsin::tests {

using ingest::Start;
using ingest::Transport;

std::string name_of(BackendKind kind) {
  switch (kind) {
    case BackendKind::memory:
      return "memory";
    case BackendKind::journal:
      return "journal";
    case BackendKind::kafka:
      return "kafka";
  }
  return "";
}

core::Result<std::unique_ptr<Backend>> Backend::open(BackendKind kind) {
  std::unique_ptr<Backend> backend(new Backend);
  backend->kind_ = kind;
  backend->topics_.partitions = 2;
  backend->topics_.prefix = unique_name("t");
  if (kind == BackendKind::memory) {
    backend->transport_ = std::make_unique<simulation::MemoryBroker>(backend->topics_);
    return backend;
  }
  if (kind == BackendKind::journal) {
    backend->config_.journal =
        (std::filesystem::temp_directory_path() / unique_name("tocsin-journal")).string();
  } else {
    const auto servers = kafka_bootstrap_servers();
    if (!servers) return servers.error();
    backend->config_.kafka = core::ValueMap{{"bootstrap.servers", *servers}};
  }
  auto transport =
      Transport::open(backend->config_, backend->topics_, backend->log_, backend->telemetry_);
  if (!transport) return transport.error();
  backend->transport_ = std::move(*transport);
  if (auto status = backend->transport_->ensure_topics(); !status) return status.error();
  return backend;
}

Backend::~Backend() {
  transport_.reset();
  std::error_code ignored;
  if (kind_ == BackendKind::journal) std::filesystem::remove_all(config_.journal, ignored);
}

std::unique_ptr<Transport> Backend::another() {
  auto transport = Transport::open(config_, topics_, log_, telemetry_);
  EXPECT_TRUE(transport) << transport.error().message;
  return transport ? std::move(*transport) : nullptr;
}

std::unique_ptr<core::RecordSource> Backend::source(ingest::SourceOptions options) {
  auto source = transport_->source(std::move(options));
  EXPECT_TRUE(source) << source.error().message;
  return source ? std::move(*source) : nullptr;
}

std::unique_ptr<core::RecordPublisher> Backend::producer() {
  ingest::PublisherOptions options;
  options.writer = "hook-" + std::to_string(++producers_);
  auto publisher = transport_->publisher(options);
  EXPECT_TRUE(publisher) << publisher.error().message;
  return publisher ? std::move(*publisher) : nullptr;
}

std::unique_ptr<core::RecordSource> Backend::member(std::vector<std::string> topics,
                                                    core::AssignmentListener* listener) {
  ingest::SourceOptions options;
  options.group = topics_.prefix + "-engine";
  options.topics = std::move(topics);
  options.listener = listener;
  return source(std::move(options));
}

std::unique_ptr<core::RecordPublisher> Backend::committer(core::RecordSource& source) {
  ingest::PublisherOptions options;
  options.writer = "engine";
  options.transactional_id = topics_.prefix + "-engine-0";
  options.source = &source;
  options.durable = true;
  auto publisher = transport_->publisher(options);
  EXPECT_TRUE(publisher) << publisher.error().message;
  return publisher ? std::move(*publisher) : nullptr;
}

std::unique_ptr<core::RecordSource> Backend::observer(std::vector<std::string> topics) {
  ingest::SourceOptions options;
  options.topics = std::move(topics);
  options.start = Start::beginning;
  return source(std::move(options));
}

Kept keep(const core::RecordView& view, const std::vector<std::string>& header_names) {
  Kept kept;
  kept.topic = view.topic;
  kept.stream = view.stream;
  kept.value = view.text();
  if (view.key) kept.key = std::string(*view.key);
  kept.tombstone = view.tombstone;
  kept.partition = view.partition;
  kept.offset = view.offset;
  kept.timestamp = view.timestamp;
  for (const auto& name : header_names) {
    if (const auto header = view.header(name)) kept.headers.emplace_back(name, *header);
  }
  return kept;
}

namespace {

core::Result<std::vector<Kept>> read_until(core::RecordSource& source,
                                           std::chrono::milliseconds limit,
                                           const std::vector<std::string>& header_names,
                                           const std::function<bool(std::size_t)>& done) {
  std::vector<Kept> all;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done(all.size()) && std::chrono::steady_clock::now() < deadline) {
    const auto polled =
        source.poll(std::chrono::milliseconds{50}, 100,
                    [&](const core::RecordView& view) { all.push_back(keep(view, header_names)); });
    if (!polled) return polled.error();
  }
  return all;
}

}  // namespace

core::Result<std::vector<Kept>> read_records(core::RecordSource& source, std::size_t count,
                                             const std::vector<std::string>& header_names) {
  return read_until(source, std::chrono::seconds{20}, header_names,
                    [&](std::size_t have) { return have >= count; });
}

core::Result<std::vector<Kept>> read_to_end(core::RecordSource& source) {
  bool polled = false;
  return read_until(source, std::chrono::seconds{20}, {},
                    [&](std::size_t) { return std::exchange(polled, true) && source.at_end(); });
}

core::Result<std::vector<Kept>> read_briefly(core::RecordSource& source) {
  return read_until(source, std::chrono::milliseconds{300}, {}, [](std::size_t) { return false; });
}

core::OutRecord record(std::string topic, std::string key, std::string value) {
  core::OutRecord out;
  out.topic = std::move(topic);
  out.key = std::move(key);
  out.value = std::move(value);
  return out;
}

}  // namespace tocsin::tests
