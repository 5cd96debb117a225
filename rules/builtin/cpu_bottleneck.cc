// Fires when GPUs wait while a processor core is saturated.
//
// Reads   system samples hw.gpu.utilization{hw.id=…} and
//         system.cpu.utilization{cpu.logical_number=…,cpu.mode=…} of a node. A core is busy for
//         1 − idle − iowait; where idle is not sent, for the sum of its other modes.
// Window  snapshots (samples within 20 ms) since the start, or the last `window`; judged once per
//         evaluation period of event time.
// Fires   100 · B / N > threshold, N > patience, where B counts snapshots with some GPU below
//         gpu_threshold and some core (or the core mean) above cpu_threshold.
// Quiet   without a GPU: not applicable. NaN and negative samples are discarded.
// Source  Amazon SageMaker Debugger, CPUBottleneck, defaults of its SDK;
//         docs/rules/cpu_bottleneck.md.

#include <algorithm>
#include <cstring>

#include "rules/rule.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

class CpuBottleneckProgram final : public SystemProgram {
 public:
  double threshold = 50;
  double gpu_threshold = 10;
  double cpu_threshold = 90;
  std::uint32_t patience = 1000;
  std::optional<double> patience_seconds;
  std::uint32_t window = 0;
  bool mean_of_cores = false;

  void read(config::Reader& in, Preset) {
    constexpr std::uint32_t kMost = 1'000'000;
    std::string aggregate = "any_core";
    std::int64_t scan_us = 60'000'000;
    std::optional<double> window_seconds;
    in.optional("threshold", threshold, config::between(0.0, 100.0),
                "percentage of snapshots that may be bottlenecks");
    in.optional("gpu_threshold", gpu_threshold, config::between(0.0, 100.0),
                "percent below which a GPU waits");
    in.optional("cpu_threshold", cpu_threshold, config::between(0.0, 100.0),
                "percent above which a core is saturated");
    in.optional("patience", patience, config::between(std::uint32_t{0}, kMost),
                "snapshots before the first judgement");
    in.optional("patience_seconds", patience_seconds, "instead of patience: seconds of samples");
    in.optional("scan_interval_us", scan_us,
                config::between(std::int64_t{1}, std::int64_t{86'400'000'000}),
                "evaluation period in event time");
    in.optional("cpu_aggregate", aggregate, config::one_of({"any_core", "mean"}),
                "compare the busiest core, or the mean over cores");
    in.optional("window", window, config::between(std::uint32_t{0}, kMost),
                "newest snapshots that count; 0 = all of the run");
    in.optional("window_seconds", window_seconds,
                "instead of window, at the usual two snapshots a second");
    if (patience_seconds && *patience_seconds < 0) {
      in.error("patience_seconds", "patience_seconds must be >= 0");
    }
    if (window_seconds) {
      if (!(*window_seconds > 0) || *window_seconds > kMost / 2.0) {
        in.error("window_seconds", "window_seconds must be > 0 … 500000");
      } else {
        window = static_cast<std::uint32_t>(*window_seconds * 2);
      }
    }
    mean_of_cores = aggregate == "mean";
    scan_interval = std::chrono::microseconds(scan_us);
  }

  void init(std::vector<std::byte>& state) const override {
    state.assign(sizeof(State) + (window + 7) / 8, std::byte{});
    new (state.data()) State{};
  }

  void observe(std::span<std::byte> bytes, const SystemSnapshot& snapshot) const override {
    if (snapshot.gpus.empty() || snapshot.cores.empty()) return;
    State state = load(bytes);
    if (state.snapshots == 0) state.first_time = snapshot.time;
    state.last_time = snapshot.time;
    const auto low = static_cast<std::uint32_t>(
        std::count_if(snapshot.gpus.begin(), snapshot.gpus.end(),
                      [this](double value) { return value < gpu_threshold; }));
    double sum = 0;
    for (const double core : snapshot.cores) sum += core;
    const double mean = sum / static_cast<double>(snapshot.cores.size());
    auto busy = static_cast<std::uint32_t>(
        std::count_if(snapshot.cores.begin(), snapshot.cores.end(),
                      [this](double value) { return value > cpu_threshold; }));
    if (mean_of_cores) busy = mean > cpu_threshold ? busy : 0;
    const bool saturated = mean_of_cores ? mean > cpu_threshold : busy > 0;
    const bool bottleneck = low > 0 && saturated;
    if (low > 0) ++state.low_gpu;
    if (bottleneck) {
      state.gpus = std::max(state.gpus, low);
      state.cores = std::max(state.cores, busy);
    }
    push(bytes, state, bottleneck);
    ++state.snapshots;
    std::memcpy(bytes.data(), &state, sizeof state);
  }

  Verdict judge(std::span<const std::byte> bytes) const override {
    const State state = load(bytes);
    if (state.snapshots == 0) return kNotApplicable;
    const bool enough =
        patience_seconds ? static_cast<double>(distance(state.last_time, state.first_time)) / 1e9 >=
                               *patience_seconds
                         : state.snapshots > patience;
    if (!enough) return kInsufficient;
    return share(state) > threshold ? hit() : kOk;
  }

  [[nodiscard]] Finding explain(std::span<const std::byte> bytes, const Subject& subject,
                                unsigned) const override {
    const State state = load(bytes);
    Finding finding = Finding::that("bottleneck_percent", share(state));
    finding.is(">", "threshold", threshold)
        .says(sentence("On {} the GPU waits for the processor in {} % of {} snapshots (limit {} "
                       "%): a GPU below {} % while {} above {} %.",
                       subject.name, share(state), judged(state), threshold, gpu_threshold,
                       mean_of_cores ? "the cores' mean is" : "a core is", cpu_threshold))
        .advises(
            "Give the data loader more workers, prefetch, or move preprocessing off the training "
            "loop; with many cores compare their mean (cpu_aggregate: mean).")
        .with("bottlenecks", state.bottlenecks)
        .with("snapshots", judged(state))
        .with("snapshots_with_low_gpu", state.low_gpu)
        .with("gpus", std::uint64_t{state.gpus})
        .with("cores", std::uint64_t{state.cores});
    finding.points = judged(state);
    return finding;
  }

 private:
  /// Followed by one bit per snapshot of the window.
  struct State {
    std::uint64_t snapshots = 0;
    std::uint64_t bottlenecks = 0;  // in the window, or of all
    std::uint64_t low_gpu = 0;
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;
    std::uint32_t gpus = 0;   // most GPUs below the limit in one bottleneck
    std::uint32_t cores = 0;  // most cores above it
  };

  static State load(std::span<const std::byte> bytes) {
    State state;
    std::memcpy(&state, bytes.data(), sizeof state);
    return state;
  }

  void push(std::span<std::byte> bytes, State& state, bool bottleneck) const {
    if (window != 0) {
      const std::uint64_t place = state.snapshots % window;
      std::byte& cell = bytes[sizeof(State) + place / 8];
      const std::byte bit{static_cast<unsigned char>(1U << (place % 8))};
      if ((cell & bit) != std::byte{}) --state.bottlenecks;
      cell = bottleneck ? cell | bit : cell & ~bit;
    }
    if (bottleneck) ++state.bottlenecks;
  }

  [[nodiscard]] std::uint64_t judged(const State& state) const {
    return window == 0 ? state.snapshots : std::min<std::uint64_t>(state.snapshots, window);
  }
  [[nodiscard]] double share(const State& state) const {
    return 100.0 * static_cast<double>(state.bottlenecks) / static_cast<double>(judged(state));
  }
};

struct CpuBottleneck {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"cpu_aggregate", "window", "patience_seconds",
                                                     "window_seconds"};
  static Defaults defaults(Preset) { return {.selects = false}; }
};

constexpr std::string_view kMetrics[] = {"hw.gpu.utilization", "system.cpu.utilization"};

}  // namespace

RuleDescriptor cpu_bottleneck() {
  return {.name = "cpu_bottleneck",
          .original_name = "CPUBottleneck",
          .title = "GPUs wait while a processor core is saturated.",
          .unit = "node",
          .needs = "system samples of GPUs and processor cores",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = kMetrics,
          .read = &read_rule<CpuBottleneck, CpuBottleneckProgram>};
}

}  // namespace tocsin::rules
