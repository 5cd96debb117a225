// Fires when GPUs wait while a processor core waits for I/O.
//
// Reads   system samples hw.gpu.utilization{hw.id=…} and
//         system.cpu.utilization{cpu.logical_number=…,cpu.mode=iowait} of a node.
//         For evidence: spans of the workers on the node, phases of steps and operators.
// Window  snapshots (samples within 20 ms) since the start, or the last `window`; judged once per
//         evaluation period of event time.
// Fires   100 · B / N > threshold, N > patience, where B counts snapshots with some GPU below
//         gpu_threshold and some core whose share of time waiting for I/O is above io_threshold.
// Quiet   without a GPU, and where the kernel counts no I/O wait (some containers).
// Source  Amazon SageMaker Debugger, IOBottleneck, defaults of its SDK; docs/rules/io_bottleneck.md.

#include "rules/contract/sentence.h"
#include "rules/evaluate/bottleneck.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

struct IoBottleneck {
  static constexpr std::string_view kMetrics[] = {"hw.gpu.utilization", "system.cpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"window", "patience_seconds",
                                                     "window_seconds"};
  static constexpr std::uint32_t kInputs = Bottleneck::kBoth;
  using Config = BottleneckConfig;
  using State = Bottleneck;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    read_bottleneck(in, cfg);
    cfg.limit = 50;
    in.optional("io_threshold", cfg.limit, config::between(0.0, 100.0),
                "a core waits for I/O if it does so for more than this percentage of its time");
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    const auto cores = snapshot.of(Metric::io_wait);
    const auto waiting = std::count_if(cores.begin(), cores.end(),
                                       [&](const Reading& core) { return core.value > cfg.limit; });
    return state.observe(cfg, snapshot, cores.size(), static_cast<std::uint32_t>(waiting));
  }

  static ActiveSpans& spans(State& state) { return state.active(); }

  static void judge(const Config& cfg, const State& state, SampleReport& report) {
    report.evaluated({}, state.judge(cfg), [&](const Subject& subject, unsigned) {
      Finding finding = state.finding(cfg, report.scope());
      finding.titled(sentence("GPU of {}", subject.name), Verb::is, "waiting for I/O")
          .says(sentence("On {} the GPU waits for I/O in {} % of {} snapshots (limit {} %): a GPU "
                         "is below {} % while a core waits for I/O more than {} % of its time.",
                         subject.name, state.share(cfg), state.judged(cfg), cfg.threshold,
                         cfg.gpu_threshold, cfg.limit))
          .advises(
              "Prefetch, keep the data set on a faster or local disk, or store it in larger binary "
              "files.");
      return finding;
    });
  }
};

}  // namespace

RuleDescriptor io_bottleneck() {
  return {.name = "io_bottleneck",
          .original_name = "IOBottleneck",
          .title = "GPUs wait while a CPU core waits for I/O.",
          .unit = "node",
          .needs = "system samples of GPUs and of CPU cores with cpu.mode=iowait",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = IoBottleneck::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<IoBottleneck>};
}

}  // namespace tocsin::rules
