// A day of 64 nodes, written into a journal as fast as it goes: 8 runs, each of 8 nodes with 8 ranks. Each line
// of standard input is a number of seconds: so many are written, then a line tells how many numbers they had.
//
//   day_feed FOLDER BEGIN STEP [RUNS NODES]    BEGIN: UTC seconds of the first step; STEP: seconds of one;
//     other numbers of runs and of nodes in each
//
// Each rank tells the end of each step and five phases; rank 0 tells ten metrics each step and the statistics
// of 500 tensors each tenth one; each node is sampled once a step: 60 series of GPUs and the machine.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "bench/healthy_rows.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file
using namespace std::chrono_literals;

constexpr int kRanks = 8;  // of a node
constexpr int kScalars = 10;
constexpr int kTensors = 500;
constexpr std::size_t kTensorsOfAFrame = 200;
constexpr int kSeries = 60;        // of a node
constexpr int kStepsOfAFrame = 3;  // of what ranks tell of their steps
constexpr std::int64_t kTensorEvery = 10;
constexpr std::int64_t kNanos = 1'000'000'000;
const char* const kPhases[] = {"data_wait", "forward", "backward", "communication", "optimizer"};

core::NullLog quiet;
core::NullTelemetry uncounted;

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "day_feed: %s failed\n", what);
  std::exit(2);
}

struct Fleet {
  int runs = 8;
  int nodes = 8;  // of a run
};

core::FrameHeader header_of(int run, int rank) {
  core::FrameHeader out;
  out.run = core::run_uid_for("day", std::to_string(run));
  out.rank = static_cast<std::uint32_t>(rank);
  out.mode = core::Mode::train;
  out.worker = core::name_hash("worker_" + std::to_string(rank));
  out.incarnation = 1;
  return out;
}

class Day {
 public:
  Day(core::RecordPublisher& publisher, Fleet fleet, std::int64_t begin, std::int64_t step)
      : to_(publisher), fleet_(fleet), begin_(begin), length_(step) {
    for (int at = 0; at < kScalars; ++at) scalars_.push_back("metric_" + std::to_string(at));
    for (int at = 0; at < kTensors; ++at)
      tensors_.push_back(bench::healthy_row("gradient/layer" + std::to_string(at) + ".weight",
                                            core::Role::gradient));
    for (int at = 0; at < kSeries; ++at)
      series_.push_back(at < 32 ? "system.gpu.utilization{gpu.index=" + std::to_string(at / 4) +
                                      ",part=" + std::to_string(at % 4) + "}"
                                : "system.memory.part{part=" + std::to_string(at) + "}");
    for (int run = 0; run < fleet_.runs; ++run) {
      for (int rank = 0; rank < fleet_.nodes * kRanks; ++rank) begin_worker(run, rank);
      for (int node = 0; node < fleet_.nodes; ++node) begin_agent(run, node);
    }
  }

  /// Numbers that were written.
  double go(std::int64_t seconds) {
    const double before = numbers_;
    for (const std::int64_t end = step_ + seconds / length_; step_ < end; ++step_) {
      for (int run = 0; run < fleet_.runs; ++run) {
        tell_metrics(run);
        if (step_ % kTensorEvery == 0) tell_tensors(run);
        for (int node = 0; node < fleet_.nodes; ++node) tell_samples(run, node);
        if (step_ % kStepsOfAFrame != kStepsOfAFrame - 1) continue;
        for (int rank = 0; rank < fleet_.nodes * kRanks; ++rank) tell_steps(run, rank);
      }
    }
    must(to_.flush(60s).has_value(), "writing");
    return numbers_ - before;
  }

 private:
  [[nodiscard]] std::string node_name(int run, int node) const {
    return "node" + std::to_string(run * fleet_.nodes + node);
  }
  [[nodiscard]] std::int64_t time_of(std::int64_t step) const {
    return begin_ + step * length_ * kNanos;
  }
  core::FrameHeader numbered(core::FrameHeader header) {
    header.world_size = static_cast<std::uint32_t>(fleet_.nodes * kRanks);
    header.step = header.global_step = step_;
    header.time = time_of(step_);
    header.sequence = ++sequence_;  // one count for all is one that grows for each
    header.flags |= core::frame_flag::kUnsequenced;
    return header;
  }
  void send(const core::FrameHeader& header, ingest::FrameWriter& frame) {
    const auto bytes = frame.finish();
    must(bytes.has_value(), "a frame");
    const core::OutRecord record{
        core::topic::kTelemetry, core::to_text(header.run),
        std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())};
    while (!to_.publish(record)) must(to_.flush(60s).has_value(), "writing");
  }
  void name_all(const core::FrameHeader& header, core::DictionaryType type,
                const std::vector<std::string>& names) {
    std::vector<core::DictionaryEntry> entries;
    for (const std::string& name : names) {
      core::DictionaryEntry entry;
      entry.hash = core::name_hash(name);
      entry.type = type;
      entry.name = name;
      entries.push_back(entry);
    }
    send(header, writer_.dictionary(header, entries));
  }

  void begin_worker(int run, int rank) {
    const core::FrameHeader header = numbered(header_of(run, rank));
    core::Lifecycle start;
    start.event = core::LifecycleEvent::start;
    start.job = "day-" + std::to_string(run);
    start.node = start.host = node_name(run, rank / kRanks);
    start.worker_name = "worker_" + std::to_string(rank);
    send(header, writer_.lifecycle(header, ingest::encode_lifecycle(start)));
    name_all(header, core::DictionaryType::worker, {start.worker_name});
    if (rank > 0) return;
    name_all(header, core::DictionaryType::track, {"phase"});
    name_all(header, core::DictionaryType::span_name, {std::begin(kPhases), std::end(kPhases)});
    name_all(header, core::DictionaryType::scalar, scalars_);
    std::vector<std::string> tensors;
    tensors.reserve(kTensors);
    for (int at = 0; at < kTensors; ++at)
      tensors.push_back("gradient/layer" + std::to_string(at) + ".weight");
    name_all(header, core::DictionaryType::tensor, tensors);
  }

  core::FrameHeader agent(int run, int node) {
    core::FrameHeader header = numbered(header_of(run, 0));
    header.rank = core::kNodeAgentRank;
    header.worker = core::name_hash(node_name(run, node));
    return header;
  }
  void begin_agent(int run, int node) {
    const core::FrameHeader header = agent(run, node);
    name_all(header, core::DictionaryType::worker, {node_name(run, node)});
    name_all(header, core::DictionaryType::series, series_);
  }

  void tell_metrics(int run) {
    const core::FrameHeader header = numbered(header_of(run, 0));
    std::vector<core::ScalarRow> rows;
    rows.reserve(kScalars);
    for (int at = 0; at < kScalars; ++at)
      rows.push_back({core::name_hash(scalars_[static_cast<std::size_t>(at)]), step_, step_,
                      header.time, std::sin(static_cast<double>(step_ * 31 + at)),
                      core::meta::make(core::Dtype::f64, core::Role::other)});
    numbers_ += kScalars;
    send(header, writer_.scalars(header, rows));
  }

  void tell_tensors(int run) {
    for (std::size_t at = 0; at < tensors_.size(); ++at) {
      const double now = 1 + 0.1 * std::sin(static_cast<double>(step_) + static_cast<double>(at));
      tensors_[at].sum = now;
      tensors_[at].sumsq = 40.96 * now;
      tensors_[at].m2 = 40 * now;
      tensors_[at].abs_sum = 409.6 * now;
      tensors_[at].max = now;
    }
    for (std::size_t at = 0; at < tensors_.size(); at += kTensorsOfAFrame) {
      const core::FrameHeader header = numbered(header_of(run, 0));
      send(header,
           writer_.summary(header, std::span(tensors_).subspan(
                                       at, std::min(kTensorsOfAFrame, tensors_.size() - at))));
    }
    numbers_ += static_cast<double>(tensors_.size()) * 12;
  }

  void tell_samples(int run, int node) {
    const core::FrameHeader header = agent(run, node);
    std::vector<core::SystemRow> rows;
    for (std::size_t at = 0; at < series_.size(); ++at)
      rows.push_back(
          {core::name_hash(series_[at]), header.time,
           static_cast<double>((step_ * 7919 + static_cast<int>(at) * 104'729) % 101) / 101, 0});
    numbers_ += static_cast<double>(rows.size());
    send(header, writer_.system(header, rows));
  }

  void tell_steps(int run, int rank) {
    const core::FrameHeader header = numbered(header_of(run, rank));
    std::vector<core::StepEndRow> ends;
    std::vector<core::SpanRow> spans;
    for (std::int64_t step = step_ - kStepsOfAFrame + 1; step <= step_; ++step) {
      std::int64_t at = time_of(step);
      ends.push_back({step, step, at, at + length_ * kNanos * 9 / 10, 1, 0});
      for (const char* phase : kPhases) {
        const std::int64_t length =
            length_ * kNanos / 10 + (step * 31 + rank * 17) % 97 * 1'000'000;
        spans.push_back({core::name_hash(phase), core::name_hash("phase"), at, length, step, 0, 0});
        at += length;
      }
    }
    numbers_ += static_cast<double>(ends.size()) * 4 + static_cast<double>(spans.size()) * 4;
    send(header, writer_.step_ends(header, ends));
    const core::FrameHeader next = numbered(header_of(run, rank));
    send(next, writer_.spans(next, spans));
  }

  core::RecordPublisher& to_;
  const Fleet fleet_;
  const std::int64_t begin_;   // UTC ns
  const std::int64_t length_;  // seconds of a step
  ingest::FrameWriter writer_;
  std::vector<std::string> scalars_, series_;
  std::vector<core::SummaryRow> tensors_;
  std::int64_t step_ = 0;
  std::uint64_t sequence_ = 0;
  double numbers_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    std::fprintf(stderr, "usage: day_feed FOLDER BEGIN STEP [RUNS NODES]\n");
    return 2;
  }
  ingest::TransportConfig cfg;
  cfg.journal = argv[1];
  auto transport = ingest::Transport::open(cfg, {}, quiet, uncounted);
  must(transport.has_value(), "opening the journal");
  auto publisher = (*transport)->publisher({});
  must(publisher.has_value(), "a publisher");
  const Fleet fleet = argc == 6 ? Fleet{std::atoi(argv[4]), std::atoi(argv[5])} : Fleet{};
  Day day(**publisher, fleet, std::atoll(argv[2]) * kNanos, std::atoll(argv[3]));
  std::string line;
  while (std::getline(std::cin, line)) {
    std::printf("%.0f\n", day.go(std::atoll(line.c_str())));
    std::fflush(stdout);
  }
}
