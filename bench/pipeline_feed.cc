#include "bench/pipeline_feed.h"

#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include "core/record.h"

namespace tocsin::bench {
namespace {

using namespace std::chrono_literals;

core::NullLog quiet;
core::NullTelemetry uncounted;

class Feed {
 public:
  Feed(const FeedOf& what, core::RecordPublisher& publisher)
      : what_(what), publisher_(publisher), sequence_(FeedOf::kRuns) {
    for (int tensor = 0; tensor < what.tensors; ++tensor) {
      names_.push_back(core::name_hash("gradient/layer" + std::to_string(tensor) + ".weight"));
    }
    for (int run = 0; run < FeedOf::kRuns; ++run) {
      runs_.push_back(core::run_uid_v5("bench/" + std::to_string(run)));
    }
  }

  void step(int run, int step) {
    core::FrameHeader header;
    header.run = runs_[static_cast<std::size_t>(run)];
    header.world_size = 1;
    header.mode = core::Mode::train;
    header.step = header.global_step = step;
    header.time = 1767323045678000000 + step * 1'000'000'000LL;
    header.worker = core::name_hash("worker_0");
    header.incarnation = 1;
    std::uint64_t& sequence = sequence_[static_cast<std::size_t>(run)];
    rows_.clear();
    for (int tensor = 0; tensor < what_.tensors; ++tensor) {
      rows_.push_back(row(tensor));
      if (rows_.size() < static_cast<std::size_t>(what_.rows)) continue;
      header.sequence = ++sequence;
      send(header, writer_.summary(header, rows_).finish());
      rows_.clear();
    }
    const core::StepEndRow end{step, step, header.time - 1000000, header.time, 1, 0};
    header.sequence = ++sequence;
    send(header, writer_.step_ends(header, {&end, 1}).finish());
  }

 private:
  core::SummaryRow row(int tensor) {
    core::SummaryRow row;
    row.name = names_[static_cast<std::size_t>(tensor)];
    row.count = 4096;
    row.abs_sum = 40.96 * (1 + 0.1 * noise_(random_));
    row.sum = noise_(random_);
    row.sumsq = 4.1 * (1 + 0.1 * noise_(random_));
    row.m2 = row.sumsq;
    row.min = -0.1 * (1 + 0.1 * std::abs(noise_(random_)));
    row.max = 0.1 * (1 + 0.1 * std::abs(noise_(random_)));
    row.negative = 2048;
    row.meta = core::meta::make(core::Dtype::f32,
                                tensor % 2 == 0 ? core::Role::gradient : core::Role::weight);
    return row;
  }

  void send(const core::FrameHeader& header,
            const core::Result<std::span<const std::byte>>& frame) {
    const core::OutRecord record{
        "telemetry", core::to_text(header.run),
        std::string(reinterpret_cast<const char*>(frame->data()), frame->size())};
    while (!publisher_.publish(record)) (void)publisher_.flush(100ms);
  }

  const FeedOf& what_;
  core::RecordPublisher& publisher_;
  ingest::FrameWriter writer_;
  std::mt19937_64 random_{1};
  std::normal_distribution<double> noise_{0, 1};
  std::vector<std::uint64_t> names_;
  std::vector<core::RunUid> runs_;
  std::vector<std::uint64_t> sequence_;
  std::vector<core::SummaryRow> rows_;
};

[[noreturn]] void fail(const std::string& message) {
  std::cerr << message << "\n";
  std::exit(2);
}

}  // namespace

std::unique_ptr<ingest::Transport> open_topics(const std::string& bootstrap,
                                               const ingest::TopicsConfig& topics,
                                               core::ValueMap producer) {
  ingest::TransportConfig config;
  core::ValueMap kafka{{"bootstrap.servers", bootstrap}};
  if (!producer.empty()) kafka.emplace_back("producer", std::move(producer));
  config.kafka = std::move(kafka);
  auto transport = ingest::Transport::open(config, topics, quiet, uncounted);
  if (!transport) fail(transport.error().message);
  if (const auto status = (*transport)->ensure_topics(); !status) fail(status.error().message);
  return std::move(*transport);
}

void feed(const FeedOf& what, const std::string& bootstrap, const ingest::TopicsConfig& topics) {
  const auto transport = open_topics(bootstrap, topics, what.producer);
  ingest::PublisherOptions options;
  options.writer = "bench";
  options.linger = 20ms;
  auto publisher = transport->publisher(options);
  if (!publisher) fail(publisher.error().message);
  Feed feed(what, **publisher);
  for (int step = 0; step < what.steps; ++step) {
    for (int run = 0; run < FeedOf::kRuns; ++run) feed.step(run, step);
  }
  if (!(*publisher)->flush(60s)) fail("the broker did not take the frames");
}

}  // namespace tocsin::bench
