// Gradients of eight training jobs on a Kafka topic, the same at every call: what
// bench/peers/streams.py lets a Kafka Streams program and ours judge.
//
//   streams_feed BOOTSTRAP PREFIX STEPS ROWS [FROM TO]    ROWS of a step's 200 gradients to a frame;
//                                                         of all STEPS those from FROM to before TO
//
// Makes the topics `PREFIX.telemetry.v1` and `PREFIX.issues.v1` (and our others). Every gradient has
// a mean magnitude of about 0.01, but three of each job become a ten-thousandth of that for a while;
// the last one for the last steps, so that who has told of it has read everything.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file
using namespace std::chrono_literals;

constexpr int kRuns = 8;
constexpr int kTensors = 200;
constexpr std::int64_t kStart = 1'767'323'045'000'000'000;
constexpr double kCount = 4096;

std::string name_of(int tensor) { return "gradient/layer" + std::to_string(tensor) + ".weight"; }

bool weak(int run, int tensor, int step, int steps) {
  if (tensor == 5 + run) return step >= steps / 4 && step < steps / 4 + 40;
  if (tensor == 60 + run) return step >= steps / 2 && step < steps / 2 + 12;
  return tensor == 150 + run && step >= steps - 15;
}

class Feed {
 public:
  Feed(core::RecordPublisher& publisher, int steps, int rows)
      : publisher_(publisher), steps_(steps), rows_(static_cast<std::size_t>(rows)) {}

  void dictionary(int run) {
    std::vector<std::string> names;
    for (int tensor = 0; tensor < kTensors; ++tensor) names.push_back(name_of(tensor));
    std::vector<core::DictionaryEntry> entries;
    for (const std::string& name : names) {
      core::DictionaryEntry entry;
      entry.hash = core::name_hash(name);
      entry.dtype = core::Dtype::f32;
      entry.role = core::Role::gradient;
      entry.name = name;
      entries.push_back(entry);
    }
    send(run, writer_.dictionary(header(run, 0), entries));
  }

  /// As if the steps before it had been sent.
  void begin_at(int step) {
    const std::size_t frames = static_cast<std::size_t>(kTensors) / rows_ + 1;
    for (std::uint64_t& each : sequence_) each = 1 + static_cast<std::size_t>(step) * frames;
  }

  void step(int run, int step) {
    std::vector<core::SummaryRow> rows;
    for (int tensor = 0; tensor < kTensors; ++tensor) {
      const double scale = weak(run, tensor, step, steps_) ? 1e-6 : 1e-2;
      core::SummaryRow row;
      row.name = hashes_[static_cast<std::size_t>(tensor)];
      row.count = static_cast<std::uint64_t>(kCount);
      row.abs_sum = kCount * scale * (1 + 0.2 * noise_(random_));
      row.sum = scale * noise_(random_);
      row.sumsq = row.m2 = kCount * scale * scale * (1 + 0.2 * noise_(random_));
      row.min = -3 * scale * (1 + 0.2 * noise_(random_));
      row.max = 3 * scale * (1 + 0.2 * noise_(random_));
      row.negative = 2000 + random_() % 96;
      row.meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
      rows.push_back(row);
      if (rows.size() < rows_ && tensor + 1 < kTensors) continue;
      send(run, writer_.summary(header(run, step), rows));
      rows.clear();
    }
    core::FrameHeader at = header(run, step);
    const core::StepEndRow end{step, step, at.time - 1'000'000, at.time, 1, 0};
    send(run, writer_.step_ends(at, {&end, 1}));
  }

 private:
  core::FrameHeader header(int run, int step) {
    core::FrameHeader out;
    out.run = runs_[static_cast<std::size_t>(run)];
    out.world_size = 1;
    out.mode = core::Mode::train;
    out.step = out.global_step = step;
    out.time = kStart + step * 1'000'000'000LL;
    out.worker = core::name_hash("worker_0");
    out.incarnation = 1;
    out.sequence = ++sequence_[static_cast<std::size_t>(run)];
    return out;
  }

  void send(int run, ingest::FrameWriter& writer) {
    const auto frame = writer.finish();
    const core::OutRecord record{
        "telemetry", core::to_text(runs_[static_cast<std::size_t>(run)]),
        std::string(reinterpret_cast<const char*>(frame->data()), frame->size())};
    while (!publisher_.publish(record)) (void)publisher_.flush(100ms);
  }

  static std::vector<core::RunUid> runs() {
    std::vector<core::RunUid> out;
    for (int run = 0; run < kRuns; ++run)
      out.push_back(core::run_uid_for("peers", "run-" + std::to_string(run)));
    return out;
  }
  static std::vector<std::uint64_t> hashes() {
    std::vector<std::uint64_t> out;
    for (int tensor = 0; tensor < kTensors; ++tensor)
      out.push_back(core::name_hash(name_of(tensor)));
    return out;
  }

  core::RecordPublisher& publisher_;
  int steps_;
  std::size_t rows_;
  ingest::FrameWriter writer_;
  std::mt19937_64 random_{1};
  std::uniform_real_distribution<double> noise_{-1, 1};
  std::vector<core::RunUid> runs_ = runs();
  std::vector<std::uint64_t> hashes_ = hashes();
  std::vector<std::uint64_t> sequence_ = std::vector<std::uint64_t>(kRuns);
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 7) {
    std::fputs("usage: streams_feed BOOTSTRAP PREFIX STEPS ROWS [FROM TO]\n", stderr);
    return 2;
  }
  ingest::TransportConfig config;
  config.kafka = core::ValueMap{{"bootstrap.servers", std::string(argv[1])}};
  ingest::TopicsConfig topics;
  topics.prefix = argv[2];
  topics.partitions = 4;
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open(config, topics, log, telemetry);
  if (!transport) return std::cerr << transport.error().message << "\n", 2;
  if (const auto status = (*transport)->ensure_topics(); !status)
    return std::cerr << status.error().message << "\n", 2;
  ingest::PublisherOptions options;
  options.writer = "peers";
  options.linger = 20ms;
  auto publisher = (*transport)->publisher(options);
  if (!publisher) return std::cerr << publisher.error().message << "\n", 2;
  const int steps = std::atoi(argv[3]);
  Feed feed(**publisher, steps, std::atoi(argv[4]));
  const int from = argc == 7 ? std::atoi(argv[5]) : 0;
  const int to = argc == 7 ? std::atoi(argv[6]) : steps;
  if (from > 0) feed.begin_at(from);
  if (from == 0 && steps > 0) {
    for (int run = 0; run < kRuns; ++run) feed.dictionary(run);
  }
  for (int step = from; step < to; ++step) {
    for (int run = 0; run < kRuns; ++run) feed.step(run, step);
  }
  if (!(*publisher)->flush(60s)) return std::cerr << "the broker did not take the frames\n", 2;
  std::printf("%lld\n", static_cast<long long>(to - from) * kRuns * kTensors);  // rows
  return 0;
}
