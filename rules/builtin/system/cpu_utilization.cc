// Fires when a node's processors are saturated, idle, or loaded unevenly.
//
// Reads   system samples system.cpu.utilization{cpu.logical_number=…,cpu.mode=…}.
// Window  the last `window` snapshots of a node, after more than `patience`; judged once per
//         evaluation period of event time.
// Fires   p50 of the cores' mean > threshold_high_p50 (`saturated`); p95 of it < threshold_low_p95
//         (`idle`); mean of the busiest core − mean of the median core > core_imbalance
//         (`imbalanced`). A limit of 0 switches the last two off.
// Quiet   in a container the cores are those of the machine: its own limit is not in these numbers.
// Source  ours (CPUUtilization of the original has no published definition);
//         docs/rules/cpu_utilization.md.

#include <algorithm>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/box.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLoadKinds[] = {"saturated", "idle", "imbalanced"};
struct CpuUtilization {
  enum Kind : unsigned { kSaturated, kIdle, kImbalanced };
  static constexpr std::string_view kMetrics[] = {"system.cpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds = kLoadKinds;
  static constexpr std::string_view kExtensions[] = {"patience_seconds", "window_seconds"};
  static constexpr std::uint32_t kInputs = 1;

  struct Config : SampleConfig {
    double high_p50 = 90;
    double low_p95 = 0;
    double imbalance = 0;
    Horizon horizon;
  };
  /// A core's values, and the numbers of the snapshots that held them.
  struct Core {
    Ring values;
    Ring numbers;

    template <typename A>
    friend void io(A& a, Core& c) {
      io_all(a, c.values, c.numbers);
    }
  };
  struct State {
    Ring mean;
    std::map<std::string, Core> cores;
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;

    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.mean, s.cores, s.first_time, s.last_time);
    }
  };
  struct Load {
    Box mean;
    double busiest = 0;  // means over the window
    double median = 0;
    std::string busiest_core;
    std::size_t points = 0;
  };

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold_high_p50", cfg.high_p50, config::between(0.0, 100.0),
                "cores are saturated if the median of their mean is above this percentage");
    in.optional(
        "threshold_low_p95", cfg.low_p95, config::between(0.0, 100.0),
        "cores are idle if the 95th percentile of their mean is below this percentage; 0 = off");
    in.optional("core_imbalance", cfg.imbalance, config::between(0.0, 100.0),
                "largest difference between the busiest and the median core, in percentage points; "
                "0 = off");
    read_window(in, cfg.horizon, 1);
    read_patience(in, cfg.horizon, 1);
    read_scan_interval(in, cfg);
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    const auto cores = snapshot.of(Metric::cpu);
    if (cores.empty()) return 0;
    double sum = 0;
    for (const Reading& core : cores) {
      sum += core.value;
      if (cfg.imbalance > 0) {
        Core& here = state.cores[std::string(core.device)];
        here.values.push(core.value, cfg.horizon.window);
        here.numbers.push(static_cast<double>(state.mean.seen()), cfg.horizon.window);
      }
    }
    if (state.mean.seen() == 0) state.first_time = snapshot.time;
    state.last_time = snapshot.time;
    state.mean.push(sum / static_cast<double>(cores.size()), cfg.horizon.window);
    return 1;
  }

  static Load load_of(const Config& cfg, const State& state) {
    Load load;
    const std::vector<double> means = state.mean.newest(cfg.horizon.window);
    load.mean = box_of(means);
    load.points = means.size();
    std::vector<std::pair<double, std::string>> cores;
    // The window counts snapshots of the node, whichever cores they held.
    const double oldest = static_cast<double>(state.mean.seen()) - cfg.horizon.window;
    for (const auto& [name, core] : state.cores) {
      const std::vector<double> values = core.values.newest(cfg.horizon.window);
      const std::vector<double> numbers = core.numbers.newest(cfg.horizon.window);
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (numbers[i] < oldest) continue;
        sum += values[i];
        ++count;
      }
      if (count > 0) cores.emplace_back(sum / static_cast<double>(count), name);
    }
    if (cores.empty()) return load;
    std::sort(cores.begin(), cores.end());
    std::vector<double> sorted;
    sorted.reserve(cores.size());
    for (const auto& [value, core] : cores) sorted.push_back(value);
    load.busiest = cores.back().first;
    load.busiest_core = cores.back().second;
    load.median = quantile(sorted, 0.5);
    return load;
  }

  static void judge(const Config& cfg, const State& state, SampleReport& report) {
    if (!cfg.horizon.enough(state.mean.seen(), state.first_time, state.last_time)) {
      report.evaluated({}, kInsufficient, [](const Subject&, unsigned) { return Finding(); });
      return;
    }
    const Load load = load_of(cfg, state);
    unsigned kinds = 0;
    if (load.mean.p50 > cfg.high_p50) kinds |= 1U << kSaturated;
    if (cfg.low_p95 > 0 && load.mean.p95 < cfg.low_p95) kinds |= 1U << kIdle;
    if (cfg.imbalance > 0 && load.busiest - load.median > cfg.imbalance) {
      kinds |= 1U << kImbalanced;
    }
    const Verdict verdict =
        kinds == 0 ? kOk : Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    report.evaluated({}, verdict, [&](const Subject& subject, unsigned kind) {
      return explain(cfg, subject, load, kind);
    });
  }

  static Finding explain(const Config& cfg, const Subject& subject, const Load& load,
                         unsigned kind) {
    Finding finding;
    if (kind == kSaturated) {
      finding = Finding::that("cpu_p50", load.mean.p50);
      finding.is(">", "threshold_high_p50", cfg.high_p50)
          .titled(sentence("CPU of {}", subject.name), Verb::is, "saturated")
          .says(sentence(
              "The cores of {} are saturated: the median of {} samples is {} % (limit {} %).",
              subject.name, load.points, load.mean.p50, cfg.high_p50))
          .advises("Move work off the CPU, or use a machine with more cores.");
    } else if (kind == kIdle) {
      finding = Finding::that("cpu_p95", load.mean.p95);
      finding.is("<", "threshold_low_p95", cfg.low_p95)
          .titled(sentence("CPU of {}", subject.name), Verb::is, "hardly used")
          .says(sentence("The cores of {} are hardly used: the 95th percentile of {} samples is {} "
                         "% (expected: at least {} %).",
                         subject.name, load.points, load.mean.p95, cfg.low_p95))
          .advises("A machine with fewer cores is enough.");
    } else {
      finding = Finding::that("core_imbalance", load.busiest - load.median);
      finding.is(">", "core_imbalance", cfg.imbalance)
          .titled(sentence("one core of {}", subject.name), Verb::is, "far busier than the others")
          .says(sentence("On {} core {} is busy {} % of the time, the median core {} % (limit: {} "
                         "percentage points apart).",
                         subject.name, load.busiest_core, load.busiest, load.median, cfg.imbalance))
          .advises(
              "One process does most of the work. Use more data-loader workers, or check thread "
              "pinning.")
          .with("busiest_core", load.busiest_core)
          .with("busiest", load.busiest)
          .with("median", load.median);
    }
    finding.with("p50", load.mean.p50).with("p95", load.mean.p95);
    finding.points = load.points;
    return finding;
  }
};

}  // namespace

RuleDescriptor cpu_utilization() {
  return {.name = "cpu_utilization",
          .original_name = "CPUUtilization",
          .title = "The cores of a node are saturated, idle, or loaded unevenly.",
          .unit = "node",
          .needs = "system samples of CPU cores",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = CpuUtilization::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<CpuUtilization>};
}

}  // namespace tocsin::rules
