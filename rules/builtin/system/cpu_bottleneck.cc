// Fires when GPUs wait while a processor core is saturated.
//
// Reads   system samples hw.gpu.utilization{hw.id=…} and
//         system.cpu.utilization{cpu.logical_number=…,cpu.mode=…} of a node. A core is busy for
//         1 − idle − iowait; where idle is not sent, for the sum of its other modes.
//         For evidence: spans of the workers on the node, phases of steps and operators.
// Window  snapshots (samples within 20 ms) since the start, or the last `window`; judged once per
//         evaluation period of event time.
// Fires   100 · B / N > threshold, N > patience, where B counts snapshots with some GPU below
//         gpu_threshold and some core (or the core mean) above cpu_threshold.
// Quiet   without a GPU: not applicable. NaN and negative samples are discarded.
// Source  Amazon SageMaker Debugger, CPUBottleneck, defaults of its SDK;
//         docs/rules/cpu_bottleneck.md.

#include "rules/contract/sentence.h"
#include "rules/evaluate/bottleneck.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

struct CpuBottleneck {
  static constexpr std::string_view kMetrics[] = {"hw.gpu.utilization", "system.cpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"cpu_aggregate", "window", "patience_seconds",
                                                     "window_seconds"};
  static constexpr std::uint32_t kInputs = Bottleneck::kBoth;

  struct Config : BottleneckConfig {
    bool mean_of_cores = false;
  };
  using State = Bottleneck;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    std::string aggregate = "any_core";
    read_bottleneck(in, cfg);
    cfg.limit = 90;
    in.optional("cpu_threshold", cfg.limit, config::between(0.0, 100.0),
                "a core is saturated above this percentage");
    in.optional("cpu_aggregate", aggregate, config::one_of({"any_core", "mean"}),
                "judge the busiest core, or the mean over cores");
    cfg.mean_of_cores = aggregate == "mean";
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    const auto cores = snapshot.of(Metric::cpu);
    std::uint32_t busy = 0;
    double sum = 0;
    for (const Reading& core : cores) {
      sum += core.value;
      if (core.value > cfg.limit) ++busy;
    }
    if (cfg.mean_of_cores && !cores.empty()) {
      busy = sum / static_cast<double>(cores.size()) > cfg.limit ? 1 : 0;
    }
    return state.observe(cfg, snapshot, cores.size(), busy);
  }

  static ActiveSpans& spans(State& state) { return state.active(); }

  static void judge(const Config& cfg, const State& state, SampleReport& report) {
    report.evaluated({}, state.judge(cfg), [&](const Subject& subject, unsigned) {
      Finding finding = state.finding(cfg, report.scope());
      finding.titled(sentence("GPU of {}", subject.name), Verb::is, "waiting for the CPU")
          .says(sentence("On {} the GPU waits for the CPU in {} % of {} snapshots (limit {} %): a "
                         "GPU is below {} % while {} above {} %.",
                         subject.name, state.share(cfg), state.judged(cfg), cfg.threshold,
                         cfg.gpu_threshold, cfg.mean_of_cores ? "the cores' mean is" : "a core is",
                         cfg.limit))
          .advises(
              "Give the data loader more workers, prefetch, or move preprocessing out of the "
              "training loop. With many cores, judge their mean (cpu_aggregate: mean).");
      return finding;
    });
  }
};

}  // namespace

RuleDescriptor cpu_bottleneck() {
  return {.name = "cpu_bottleneck",
          .original_name = "CPUBottleneck",
          .title = "GPUs wait while a CPU core is saturated.",
          .unit = "node",
          .needs = "system samples of GPUs and CPU cores",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = CpuBottleneck::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<CpuBottleneck>};
}

}  // namespace tocsin::rules
