// Fires when a GPU is hardly used, or used in fits and starts.
//
// Reads   system samples hw.gpu.utilization{hw.id=…}.
// Window  the last `window` samples of each GPU, after more than `patience`; judged once per
//         evaluation period of event time.
// Fires   p95 < threshold_p95 (`underutilized`; `unused` when it was never used at all), or
//         p95 ≥ threshold_p95 and p05 < threshold_p5 (`fluctuating`).
// Quiet   without a GPU. The counter says that some kernel ran, not that it ran well.
// Source  Amazon SageMaker Debugger, LowGPUUtilization; docs/rules/low_gpu_utilization.md. Exactly
//         threshold_p95 was a gap in the original; here it counts as used.

#include <algorithm>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/box.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kUseKinds[] = {"underutilized", "fluctuating", "unused"};
struct LowGpuUtilization {
  enum Kind : unsigned { kUnderutilized, kFluctuating, kUnused };
  static constexpr std::string_view kMetrics[] = {"hw.gpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds = kUseKinds;
  static constexpr std::string_view kExtensions[] = {"patience_seconds", "window_seconds"};
  static constexpr std::uint32_t kInputs = 1;

  struct Config : SampleConfig {
    double threshold_p95 = 70;
    double threshold_p5 = 10;
    Horizon horizon;
  };
  struct Gpu {
    Ring values;
    double max = 0;  // since the start
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;
    bool fresh = false;  // new samples since the last judgement

    template <typename A>
    friend void io(A& a, Gpu& g) {
      io_all(a, g.values, g.max, g.first_time, g.last_time, g.fresh);
    }
  };
  using State = std::map<std::string, Gpu>;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold_p95", cfg.threshold_p95, config::between(0.0, 100.0),
                "a GPU is used if its 95th percentile reaches this percentage");
    in.optional("threshold_p5", cfg.threshold_p5, config::between(0.0, 100.0),
                "a used GPU has idle times if its 5th percentile is below this percentage");
    read_window(in, cfg.horizon, 1);
    read_patience(in, cfg.horizon);
    read_scan_interval(in, cfg);
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    const auto gpus = snapshot.of(Metric::gpu);
    for (const Reading& reading : gpus) {
      Gpu& gpu = state[std::string(reading.device)];
      if (gpu.values.seen() == 0) gpu.first_time = snapshot.time;
      gpu.last_time = snapshot.time;
      gpu.values.push(reading.value, cfg.horizon.window);
      gpu.max = std::max(gpu.max, reading.value);
      gpu.fresh = true;
    }
    return gpus.empty() ? 0 : 1;
  }

  static Verdict verdict_of(const Config& cfg, const Gpu& gpu, const Box& box) {
    if (box.p95 < cfg.threshold_p95) return hit(gpu.max == 0 ? kUnused : kUnderutilized);
    return box.p05 < cfg.threshold_p5 ? hit(kFluctuating) : kOk;
  }

  static void judge(const Config& cfg, State& state, SampleReport& report) {
    for (auto& [device, gpu] : state) {
      if (!std::exchange(gpu.fresh, false)) continue;
      const bool enough = cfg.horizon.enough(gpu.values.seen(), gpu.first_time, gpu.last_time);
      const std::vector<double> values = gpu.values.newest(cfg.horizon.window);
      const Box box = box_of(values);
      const Verdict verdict = enough ? verdict_of(cfg, gpu, box) : kInsufficient;
      report.evaluated(device, verdict,
                       [&, &name = device, &now = gpu](const Subject& subject, unsigned kind) {
                         return explain(cfg, subject, name, now, box, values.size(), kind);
                       });
    }
  }

  static Finding explain(const Config& cfg, const Subject& subject, const std::string& device,
                         const Gpu& gpu, const Box& box, std::size_t points, unsigned kind) {
    Finding finding;
    if (kind == kFluctuating) {
      finding = Finding::that("gpu_p05", box.p05);
      finding.is("<", "threshold_p5", cfg.threshold_p5)
          .titled(sentence("GPU {} on {}", device, subject.name), Verb::is,
                  "used with interruptions")
          .says(sentence("GPU {} on {} works with interruptions: the 5th percentile of its use is "
                         "{} % over {} samples (expected: at least {} %), the 95th {} %.",
                         device, subject.name, box.p05, points, cfg.threshold_p5, box.p95))
          .advises(
              "Find what the GPU waits for between steps. Most probable first: data loading; "
              "checkpoints; blocking calls; a slower worker.");
    } else {
      finding = Finding::that("gpu_p95", box.p95);
      finding.is("<", "threshold_p95", cfg.threshold_p95)
          .titled(sentence("GPU {} on {}", device, subject.name), Verb::is,
                  kind == kUnused ? "not used" : "hardly used")
          .says(kind == kUnused
                    ? sentence("GPU {} on {} was idle in all {} samples.", device, subject.name,
                               gpu.values.seen())
                    : sentence("GPU {} on {} is hardly used: the 95th percentile of {} samples is "
                               "{} % (expected: at least {} %).",
                               device, subject.name, points, box.p95, cfg.threshold_p95))
          .advises(kind == kUnused ? "Check that the job sees the GPU and puts its model there, or "
                                     "give the GPU back."
                                   : "Raise the batch size, remove blocking calls, feed the GPU "
                                     "faster, or use a smaller GPU.");
    }
    finding.with("p05", box.p05).with("p95", box.p95).with("max", gpu.max);
    add_box(finding, box);
    finding.points = points;
    return finding;
  }
};

}  // namespace

RuleDescriptor low_gpu_utilization() {
  return {.name = "low_gpu_utilization",
          .original_name = "LowGPUUtilization",
          .title = "A GPU is hardly used, or used with interruptions.",
          .unit = "device",
          .needs = "system samples of GPUs",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = LowGpuUtilization::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<LowGpuUtilization>};
}

}  // namespace tocsin::rules
