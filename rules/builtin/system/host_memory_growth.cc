// Fires when the memory of a training process only grows.
//
// Reads   system samples process.memory.usage{process.pid=…}: resident bytes of each process.
// Window  a process's samples after `warm_up` seconds; the mean of each evaluation period is a point,
//         and the last `points` of them must each lie above the one before.
// Fires   the newest point > growth × the first one after warm-up, and every one of the last points
//         rose.
// Quiet   while data is read into memory at the start, and where memory goes up and down.
// Source  ours; docs/rules/host_memory_growth.md.

#include <algorithm>
#include <map>

#include "rules/contract/quantity.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

struct HostMemoryGrowth {
  static constexpr std::string_view kMetrics[] = {"process.memory.usage"};

  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::uint32_t kInputs = 1;

  struct Config : SampleConfig {
    double growth = 1.3;
    std::uint32_t points = 10;
    core::Duration warm_up = std::chrono::minutes(5);
  };
  struct Process {
    std::int64_t first_time = 0;
    bool known = false;
    double sum = 0;  // of the open period
    std::uint64_t samples = 0;
    double first = 0;  // the first point after warm-up; 0: none yet
    Ring points;

    template <typename A>
    friend void io(A& a, Process& p) {
      io_all(a, p.first_time, p.known, p.sum, p.samples, p.first, p.points);
    }
  };
  using State = std::map<std::string, Process>;
  static constexpr std::size_t kMostProcesses = 4096;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("growth", cfg.growth, config::greater_than(1.0),
                "largest growth of a process, as a multiple of its memory after warm-up");
    in.optional("points", cfg.points, config::between(std::uint32_t{2}, 1000U),
                "evaluation periods in a row that must each show more memory");
    in.optional("warm_up", cfg.warm_up, "time after the start of a process that does not count");
    read_scan_interval(in, cfg);
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    const auto processes = snapshot.of(Metric::process_memory);
    for (const Reading& reading : processes) {
      const std::string pid(reading.device);
      if (!state.contains(pid) && state.size() >= kMostProcesses) continue;
      Process& process = state[pid];
      if (!process.known) {
        process.known = true;
        process.first_time = snapshot.time;
      }
      if (snapshot.time < add(process.first_time, cfg.warm_up)) continue;
      process.sum += reading.value;
      ++process.samples;
    }
    return processes.empty() ? 0 : 1;
  }

  static Verdict judge_one(const Config& cfg, Process& process) {
    const double point = process.sum / static_cast<double>(process.samples);
    process.sum = 0;
    process.samples = 0;
    if (process.first == 0) process.first = point;
    process.points.push(point, std::size_t{cfg.points} + 1);
    const std::vector<double> points = process.points.newest(std::size_t{cfg.points} + 1);
    if (points.size() <= cfg.points) return kInsufficient;
    const bool rising =
        std::adjacent_find(points.begin(), points.end(), std::greater_equal<>()) == points.end();
    return rising && point > cfg.growth * process.first ? hit() : kOk;
  }

  static void judge(const Config& cfg, State& state, SampleReport& report) {
    for (auto& [pid, process] : state) {
      if (process.samples == 0) continue;
      const Verdict verdict = judge_one(cfg, process);
      report.evaluated("process " + pid, verdict,
                       [&, &number = pid, &now = process](const Subject& subject, unsigned) {
                         return explain(cfg, subject, number, now);
                       });
    }
  }

  static Finding explain(const Config& cfg, const Subject& subject, const std::string& pid,
                         const Process& process) {
    const std::vector<double> points = process.points.newest(std::size_t{cfg.points} + 1);
    const double ratio = points.back() / process.first;
    Finding finding = Finding::that("growth", ratio);
    finding.is(">", "growth", cfg.growth)
        .titled(sentence("memory of process {} on {}", pid, subject.name), Verb::is, "growing")
        .says(
            sentence("The memory of process {0} on {1} only grows: from {3} after warm-up to {2}, "
                     "{4} times as much (limit {5}), and more in each of the last {6} periods.",
                     pid, subject.name, size_text(points.back()), size_text(process.first), ratio,
                     cfg.growth, cfg.points))
        .advises(
            "Most probable first: lists that collect tensors or losses with their graph; caches "
            "without a bound; data-loader workers that copy the data set.")
        .with("bytes", points.back())
        .with("bytes_at_start", process.first)
        .with("pid", pid);
    finding.points = points.size();
    return finding;
  }
};

}  // namespace

RuleDescriptor host_memory_growth() {
  return {.name = "host_memory_growth",
          .original_name = "HostMemoryGrowth",
          .title = "The memory of a training process keeps growing.",
          .unit = "process",
          .needs = "system samples of processes",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = HostMemoryGrowth::kMetrics,
          .groups = group::kDefault | group::kProfiler,
          .read = &read_sample_rule<HostMemoryGrowth>};
}

}  // namespace tocsin::rules
