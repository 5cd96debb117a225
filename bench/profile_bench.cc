// Samples of nodes and spans of ranks in the store of series: what a sample costs beside decoding it alone,
// the map of 128 cores, the percentiles of a run, and what 512 ranks spent their time on beside reading
// their spans alone.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/bench_report.h"
#include "ingest/ingest.h"
#include "insights/insights.h"

namespace {

using namespace tocsin;  // a program of one file
using Clock = std::chrono::steady_clock;

constexpr int kNodes = 4;
constexpr int kCores = 128;
constexpr int kSweeps = 400;  // of each node
constexpr std::size_t kRowsOfAFrame = 500;
constexpr std::uint32_t kRanks = 512;
constexpr std::int64_t kSteps = 300;
constexpr std::int64_t kAskedSteps = 100;
constexpr int kReads = 20;
constexpr std::int64_t kBegin = 1'700'000'000'000'000'000;
const char* const kModes[] = {"user",   "nice", "system",  "idle",
                              "iowait", "irq",  "softirq", "steal"};
const char* const kPhases[] = {"data_wait", "forward", "backward", "communication", "optimizer"};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "profile_bench: %s failed\n", what);
  std::exit(2);
}

double memory_mib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

core::RunUid the_run() {
  core::RunUid out;
  out.bytes.back() = 1;
  return out;
}

std::string core_series(int core, const char* mode) {
  return "system.cpu.utilization{cpu.logical_number=" + std::to_string(core) + ",cpu.mode=" + mode +
         "}";
}

core::FrameHeader agent_of(int node) {
  core::FrameHeader out;
  out.run = the_run();
  out.rank = core::kNodeAgentRank;
  out.worker = core::name_hash("node" + std::to_string(node));
  out.incarnation = 1;
  return out;
}

class FrameList {
 public:
  void put(const core::Result<std::span<const std::byte>>& frame) {
    must(frame.has_value(), "encode");
    frames_.emplace_back(reinterpret_cast<const char*>(frame->data()), frame->size());
  }
  template <typename Take>
  void decode(const Take& take) {
    for (const std::string& frame : frames_) {
      core::RecordView record;
      record.topic = "telemetry";
      record.value = std::as_bytes(std::span(frame));
      must(!ingest::decode_telemetry(record, json_, take), "decode");
    }
  }

 private:
  std::vector<std::string> frames_;
  ingest::JsonScalarDecoder json_;
};

void fill_samples(FrameList& out) {
  ingest::FrameWriter writer;
  std::vector<std::string> names;
  for (int core = 0; core < kCores; ++core)
    for (const char* mode : kModes) names.push_back(core_series(core, mode));
  std::uint64_t sequence = 0;
  for (int node = 0; node < kNodes; ++node) {
    core::FrameHeader header = agent_of(node);
    header.sequence = ++sequence;
    std::vector<core::DictionaryEntry> entries;
    for (const std::string& name : names) {
      core::DictionaryEntry entry;
      entry.hash = core::name_hash(name);
      entry.type = core::DictionaryType::series;
      entry.name = name;
      entries.push_back(entry);
    }
    out.put(writer.dictionary(header, entries).finish());
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int node = 0; node < kNodes; ++node) {
      core::FrameHeader header = agent_of(node);
      header.time = kBegin + std::int64_t{sweep} * 500'000'000;
      std::vector<core::SystemRow> rows;
      for (std::size_t at = 0; at < names.size(); ++at) {
        const auto noise =
            static_cast<double>((sweep * 7919 + static_cast<int>(at) * 104'729) % 101);
        rows.push_back({core::name_hash(names[at]), header.time, noise / 808, 0});
        if (rows.size() < kRowsOfAFrame && at + 1 < names.size()) continue;
        header.sequence = ++sequence;
        out.put(writer.system(header, rows).finish());
        rows.clear();
      }
    }
  }
}

// Seconds of CPU of a sample: folded, kept and committed; and decoded alone.
void write_samples(insights::SeriesWriter& store) {
  FrameList frames;
  fill_samples(frames);
  constexpr double kSamples = double{kNodes} * kCores * 8 * kSweeps;
  double before = cpu_seconds();
  double sum = 0;
  frames.decode([&](const core::FrameView& frame, const core::FrameBody&) {
    if (frame.header().kind != core::FrameKind::system) return;
    for (std::size_t at = 0; at < frame.rows(); ++at) sum += frame.system(at).value;
  });
  const double alone = (cpu_seconds() - before) / kSamples;
  must(sum > 0, "decode");
  insights::SystemFold fold;
  before = cpu_seconds();
  frames.decode([&](const core::FrameView& frame, const core::FrameBody& body) {
    fold.take(frame, body, core::Duration{}, store);
    if (store.waiting() < 20'000) return;
    fold.settle(core::Duration{}, store);
    must(store.commit({}).has_value(), "commit");
  });
  fold.settle(std::chrono::seconds(10), store);
  must(store.commit({}).has_value(), "commit");
  const double kept = (cpu_seconds() - before) / kSamples;
  bench::beside("profile: keep a sample; floor: decode it", kept * 1e9, alone * 1e9, "ns", 0);
  bench::judged("profile: samples of a CPU-second", 1e-6 / kept, "million", 3, true);
}

void write_spans(insights::SeriesWriter& store) {
  std::vector<insights::SegmentOf> segments;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    segments.push_back({the_run(), core::name_hash("worker_" + std::to_string(rank)), 1, 1, rank});
  const auto track = core::name_hash("phase");
  store.name(the_run(), insights::FamilyKind::span, {track, "phase", core::Role::other, {}});
  for (const char* phase : kPhases) store.name_span(the_run(), core::name_hash(phase), phase);
  const double begin = static_cast<double>(kBegin) / 1000;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (const insights::SegmentOf& segment : segments) {
      double at = begin + static_cast<double>(step) * 1e5;
      for (const char* phase : kPhases) {
        const double length = 1e4 + static_cast<double>((step * 31 + segment.rank * 17) % 97) * 50;
        const auto name = insights::halves_of(core::name_hash(phase));
        const std::array<double, insights::span_column_of::columns> values{
            at + length, at, length * 1000, name.high, name.low, static_cast<double>(step)};
        store.append(segment, insights::FamilyKind::span, track, core::Mode::train, values);
        at += length;
      }
      const std::array<double, 4> clock{0.09, begin + static_cast<double>(step) * 1e5 + 9e4,
                                        static_cast<double>(step), 1};
      store.add(segment, insights::FamilyKind::clock, core::name_hash("step_seconds"),
                core::Mode::train, step, clock);
    }
    if (step % 10 == 0) must(store.commit({}).has_value(), "commit");
  }
  must(store.commit({}).has_value(), "commit");
}

template <typename Ask>
double slowest(const std::string& path, const Ask& ask) {
  std::vector<double> took;
  for (int turn = 0; turn < kReads; ++turn) {
    const auto begin = Clock::now();
    auto reader = insights::SeriesReader::open(path);  // as each request does
    must(reader.has_value(), "open");
    ask(**reader);
    took.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return bench::quantile(took, 0.99) * 1e3;
}

bool read_ranks(const std::string& path) {
  const std::string run = core::to_text(the_run());
  const double before = memory_mib();
  const double asked = slowest(path, [&](insights::SeriesReader& reader) {
    insights::RankAsk ask;
    ask.run = run;
    ask.steps = kAskedSteps;
    const auto answer = insights::ask_ranks(reader, ask);
    must(answer.has_value() && answer->ranks.size() == kRanks && answer->common == kAskedSteps &&
             answer->ranks[7].compute > 0,
         "ranks");
  });
  bench::judged("profile: memory of that", memory_mib() - before, "MiB", 50, false);
  // The rows of these steps, and nothing else.
  const double alone = slowest(path, [&](insights::SeriesReader& reader) {
    double sum = 0;
    reader.all_families(
        run, insights::FamilyKind::span, [&](std::int64_t, insights::FamilyLine&& family) {
          const std::int64_t lo = family.x_last - kAskedSteps * 5;
          reader.rows(family, lo, family.x_last + 1, [&](const insights::SeriesRows& rows) {
            for (const double end : rows.columns[0]) sum += end;
          });
        });
    must(sum > 0, "rows");
  });
  bench::judged("profile: times of 512 ranks, 100 steps, p99", asked, "ms", 300, false);
  return bench::beside("profile: the same; floor: read the spans", asked, alone, "ms", 4);
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("profile-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "curves.db";
  insights::SetAside moved;
  auto store = insights::SeriesWriter::open(path, "bench", moved);
  must(store.has_value(), "open");
  write_samples(**store);
  const auto bytes = static_cast<double>((*insights::SeriesReader::open(path))->size().bytes);
  bench::figure("profile: bytes of a number kept", bytes / (double{kNodes} * kCores * 2 * kSweeps),
                "B");
  bench::judged("profile: map of 128 cores, p99",
                slowest(path,
                        [](insights::SeriesReader& reader) {
                          insights::CoreAsk ask;
                          ask.of.run = core::to_text(the_run());
                          ask.of.node = "node .*|node0";
                          ask.of.name = "system\\.cpu\\.busy\\{cpu.*\\}";
                          must(ask_cores(reader, ask)->rows.size() >= kCores, "map");
                        }),
                "ms", 150, false);
  bench::judged("profile: percentiles of 4 nodes, p99",
                slowest(path,
                        [](insights::SeriesReader& reader) {
                          insights::SystemAsk ask;
                          ask.run = core::to_text(the_run());
                          must(!ask_usage(reader, ask)->empty(), "percentiles");
                        }),
                "ms", 150, false);
  write_spans(**store);
  const bool met = read_ranks(path);
  std::filesystem::remove_all(folder);
  return met ? 0 : 1;
}
