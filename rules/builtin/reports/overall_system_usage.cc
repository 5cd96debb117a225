// Sums up how busy the nodes of a run are, and were.
//
// Reads   system samples of GPUs, their memory, processor cores, the node's memory, I/O wait and
//         network; of several devices the mean of a snapshot, of network the sum.
// Window  since the start of the attempt, in counts: quantiles to half a percent.
// Fires   never.
// Tells   per node and metric min, p50, p95, p99 and max, in the summary of a status per evaluation
//         period and of the last one, and what they say of the node:
//           gpu p95 < 70 and cpu p95 < 70   too little work for it
//           gpu p95 < 70 and cpu p95 > 70   the processors are probably the bottleneck
//           gpu p50 > 70                    well used
// Quiet   always. Without samples it has no data.
// Source  Amazon SageMaker Debugger, OverallSystemUsage; docs/rules/overall_system_usage.md.

#include <array>
#include <map>
#include <vector>

#include "rules/evaluate/sample.h"
#include "rules/evaluate/spread.h"

namespace tocsin::rules {
namespace {

struct OverallSystemUsage {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::uint32_t kInputs = 1;
  static constexpr std::size_t kMostTold = 64;  // nodes
  static constexpr double kBusy = 70;           // percent
  static constexpr std::array kTold{Metric::gpu,    Metric::gpu_memory, Metric::cpu,
                                    Metric::memory, Metric::io_wait,    Metric::network};

  using Config = SampleConfig;
  struct State {
    std::map<std::uint8_t, Spread> metrics;
    std::int64_t told = INT64_MIN;  // end of the newest period that was summed up behind this node

    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.metrics, s.told);
    }
  };
  using Nodes = std::map<std::uint64_t, NodeMemory<OverallSystemUsage>>;

  static Defaults defaults(Preset) { return {.selects = false}; }
  static void read(config::Reader& in, Config& cfg, Preset) { read_scan_interval(in, cfg); }

  static std::uint32_t observe(const Config&, State& state, const NodeSnapshot& snapshot) {
    std::uint32_t seen = 0;
    for (const Metric metric : kTold) {
      const auto readings = snapshot.of(metric);
      if (readings.empty()) continue;
      double sum = 0;
      for (const Reading& reading : readings) sum += reading.value;
      const bool rate = metric == Metric::network;
      const auto place = state.metrics.try_emplace(static_cast<std::uint8_t>(metric),
                                                   rate ? Spread::Of::rate : Spread::Of::share);
      place.first->second.take(rate ? sum : sum / static_cast<double>(readings.size()));
      seen = 1;
    }
    return seen;
  }

  static void judge(const Config&, State&, SampleReport& report) {
    report.evaluated({}, kOk, [](const Subject&, unsigned) { return Finding{}; });
  }

  // Once per period, of all nodes as far as they have come: by the first of them that is beyond it.
  static core::ValueMap interim(const Nodes& nodes, NodeMemory<OverallSystemUsage>& node,
                                std::int64_t period_end) {
    for (const auto& [hash, one] : nodes) {
      if (one.state.told >= period_end) return {};
    }
    node.state.told = period_end;
    return summary(nodes);
  }

  static core::ValueMap summary(const Nodes& nodes) {
    std::vector<const NodeMemory<OverallSystemUsage>*> all;
    for (const auto& [hash, node] : nodes) {
      if (!node.state.metrics.empty()) all.push_back(&node);
    }
    std::sort(all.begin(), all.end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    core::ValueMap by_name;
    for (std::size_t i = 0; i < all.size() && i < kMostTold; ++i) {
      by_name.emplace_back(all[i]->name, told(all[i]->state));
    }
    if (by_name.empty()) return {};
    core::ValueMap out{{"nodes", std::move(by_name)}};
    if (all.size() > kMostTold) out.emplace_back("more_nodes", all.size() - kMostTold);
    return out;
  }

 private:
  static core::ValueMap told(const State& state) {
    core::ValueMap out;
    for (const Metric metric : kTold) {
      const auto found = state.metrics.find(static_cast<std::uint8_t>(metric));
      if (found == state.metrics.end()) continue;
      const Spread& spread = found->second;
      out.emplace_back(std::string(to_string(metric)),
                       core::ValueMap{{"min", spread.min()},
                                      {"p50", spread.quantile(0.5)},
                                      {"p95", spread.quantile(0.95)},
                                      {"p99", spread.quantile(0.99)},
                                      {"max", spread.max()},
                                      {"unit", metric == Metric::network ? "B/s" : "%"}});
    }
    if (const std::string_view means = hint(state); !means.empty()) {
      out.emplace_back("means", std::string(means));
    }
    return out;
  }

  static std::string_view hint(const State& state) {
    const auto gpu = state.metrics.find(static_cast<std::uint8_t>(Metric::gpu));
    const auto cpu = state.metrics.find(static_cast<std::uint8_t>(Metric::cpu));
    if (gpu == state.metrics.end()) return "";
    if (gpu->second.quantile(0.5) > kBusy) return "well used";
    if (cpu == state.metrics.end() || gpu->second.quantile(0.95) >= kBusy) return "";
    const double busy = cpu->second.quantile(0.95);
    if (busy < kBusy) return "too little work: a smaller machine is enough";
    return busy > kBusy ? "the processors probably hold the GPUs back" : "";
  }
};

constexpr std::string_view kUsageMetrics[] = {"hw.gpu.utilization", "hw.gpu.memory.utilization",
                                              "system.cpu.utilization", "system.memory.utilization",
                                              "system.network.io"};

}  // namespace

RuleDescriptor overall_system_usage() {
  return {.name = "overall_system_usage",
          .original_name = "OverallSystemUsage",
          .title = "Reports how busy the nodes of a run were. Raises no issue.",
          .unit = "node",
          .needs = "system samples",
          .presets = "",
          .severity = core::Severity::info,
          .metrics = kUsageMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<OverallSystemUsage>};
}

}  // namespace tocsin::rules
