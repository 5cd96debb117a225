// Fires when a GPU's memory fills up.
//
// Reads   system samples hw.gpu.memory.utilization{hw.id=…}: share of the device's memory.
// Window  at each sample of a GPU: the last `window` samples and as many before them, after more
//         than max(patience, 2·window) samples.
// Fires   mean(last window) − mean(the window before) > increase, in percentage points; judged at each
//         sample. scan_interval_us of the original only paces repetition, which cooldown does here.
// Quiet   without a GPU. A change of phase (evaluation with larger batches) is a legitimate jump.
// Source  Amazon SageMaker Debugger, GPUMemoryIncrease, defaults of its SDK;
//         docs/rules/gpu_memory_increase.md. The original compares windows of unequal length that
//         overlap, so that a rise shows at a fifth of its height.

#include <algorithm>
#include <map>
#include <numeric>

#include "rules/contract/sentence.h"
#include "rules/evaluate/box.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

double mean_of(const std::vector<double>& values, std::size_t from, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(from);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

struct GpuMemoryIncrease {
  static constexpr std::string_view kMetrics[] = {"hw.gpu.memory.utilization"};

  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"patience_seconds", "window_seconds"};
  static constexpr std::uint32_t kInputs = 1;
  static constexpr bool kEachSample = true;

  struct Config : SampleConfig {
    double increase = 5;  // percentage points
    Horizon horizon{1000, 10, {}};
  };
  struct Rise {
    double before = 0;
    double after = 0;
    [[nodiscard]] double by() const noexcept { return after - before; }
  };
  struct Gpu {
    Ring values;
    double max = 0;
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;
    bool fresh = false;
    bool judged = false;  // the newest sample had enough before it
    Rise rise;

    template <typename A>
    friend void io(A& a, Gpu& g) {
      io_all(a, g.values, g.max, g.first_time, g.last_time, g.fresh, g.judged, g.rise);
    }
  };
  using State = std::map<std::string, Gpu>;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("increase", cfg.increase, config::between(0.0, 100.0),
                "largest rise between two windows, in percentage points");
    read_patience(in, cfg.horizon);
    read_window(in, cfg.horizon, 1);
    read_scan_interval(in, cfg);
  }

  static void add(const Config& cfg, Gpu& gpu, double value, std::int64_t time) {
    const std::size_t window = cfg.horizon.window;
    if (gpu.values.seen() == 0) gpu.first_time = time;
    gpu.last_time = time;
    gpu.values.push(value, 2 * window);
    gpu.max = std::max(gpu.max, value);
    gpu.fresh = true;
    if (gpu.values.seen() <= 2 * window ||
        !cfg.horizon.enough(gpu.values.seen(), gpu.first_time, gpu.last_time)) {
      return;
    }
    const std::vector<double> both = gpu.values.newest(2 * window);
    const Rise now{mean_of(both, 0, window), mean_of(both, window, window)};
    gpu.rise = now;
    gpu.judged = true;
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    const auto gpus = snapshot.of(Metric::gpu_memory);
    for (const Reading& reading : gpus) {
      add(cfg, state[std::string(reading.device)], reading.value, snapshot.time);
    }
    return gpus.empty() ? 0 : 1;
  }

  static void judge(const Config& cfg, State& state, SampleReport& report) {
    for (auto& [device, gpu] : state) {
      if (!std::exchange(gpu.fresh, false)) continue;
      Verdict verdict = kInsufficient;
      if (std::exchange(gpu.judged, false)) verdict = gpu.rise.by() > cfg.increase ? hit() : kOk;
      report.evaluated(device, verdict,
                       [&, &name = device, &now = gpu](const Subject& subject, unsigned) {
                         return explain(cfg, subject, name, now);
                       });
    }
  }

  static Finding explain(const Config& cfg, const Subject& subject, const std::string& device,
                         const Gpu& gpu) {
    Finding finding = Finding::that("increase", gpu.rise.by());
    finding.is(">", "increase", cfg.increase)
        .titled(sentence("memory of GPU {} on {}", device, subject.name), Verb::is, "filling up")
        .says(sentence("The memory of GPU {} on {} fills up: {} % in use, {} % before (windows of "
                       "{} samples, limit: {} percentage points).",
                       device, subject.name, gpu.rise.after, gpu.rise.before, cfg.horizon.window,
                       cfg.increase))
        .advises(
            "Look for tensors that are kept from step to step, such as a sum of losses with its "
            "graph. A larger GPU or smaller batches only delay the end.")
        .with("mean", gpu.rise.after)
        .with("mean_before", gpu.rise.before)
        .with("max", gpu.max);
    const std::vector<double> values = gpu.values.newest(2 * std::size_t{cfg.horizon.window});
    add_box(finding, box_of(values));
    finding.points = values.size();
    return finding;
  }
};

}  // namespace

RuleDescriptor gpu_memory_increase() {
  return {.name = "gpu_memory_increase",
          .original_name = "GPUMemoryIncrease",
          .title = "The memory of a GPU fills up.",
          .unit = "device",
          .needs = "system samples of GPU memory",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = GpuMemoryIncrease::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<GpuMemoryIncrease>};
}

}  // namespace tocsin::rules
