// Fires when processors, a GPU and its memory are all little used: the batches are too small for the
// machine.
//
// Reads   system samples system.cpu.utilization, hw.gpu.utilization and hw.gpu.memory.utilization.
// Window  the last `window` samples of each GPU, its memory and the mean of the node's cores, after
//         more than max(window, patience) snapshots; judged once per evaluation period.
// Fires   p95(cores) < cpu_threshold_p95 and p95(GPU) < gpu_threshold_p95 and
//         p95(GPU memory) < gpu_memory_threshold_p95.
// Quiet   without a GPU. A framework that reserves all memory at once hides the effect.
// Source  Amazon SageMaker Debugger, BatchSize, defaults of its SDK; docs/rules/batch_size.md. Cores
//         are those of the node; the original divides by the cores of all nodes.

#include <algorithm>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/box.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

struct BatchSize {
  static constexpr std::string_view kMetrics[] = {"hw.gpu.utilization", "hw.gpu.memory.utilization",
                                                  "system.cpu.utilization"};

  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"patience_seconds", "window_seconds"};
  static constexpr std::uint32_t kInputs = 7;

  struct Config : SampleConfig {
    double cpu = 70;
    double gpu = 70;
    double memory = 70;
    Horizon horizon;
  };
  struct Gpu {
    Ring use;
    Ring memory;
    bool fresh = false;         // new samples of it since the last judgement,
    bool fresh_memory = false;  // and of its memory

    template <typename A>
    friend void io(A& a, Gpu& g) {
      io_all(a, g.use, g.memory, g.fresh, g.fresh_memory);
    }
  };
  struct State {
    Ring cores;
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;
    std::map<std::string, Gpu> gpus;

    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.cores, s.first_time, s.last_time, s.gpus);
    }
  };

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional(
        "cpu_threshold_p95", cfg.cpu, config::between(0.0, 100.0),
        "a machine is busy if the 95th percentile of the cores' mean reaches this percentage");
    in.optional("gpu_threshold_p95", cfg.gpu, config::between(0.0, 100.0), "the same for the GPU");
    in.optional("gpu_memory_threshold_p95", cfg.memory, config::between(0.0, 100.0),
                "the same for its memory");
    read_patience(in, cfg.horizon);
    read_window(in, cfg.horizon, 1);
    read_scan_interval(in, cfg);
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    std::uint32_t seen = 0;
    const auto cores = snapshot.of(Metric::cpu);
    if (!cores.empty()) {
      double sum = 0;
      for (const Reading& core : cores) sum += core.value;
      if (state.cores.seen() == 0) state.first_time = snapshot.time;
      state.last_time = snapshot.time;
      state.cores.push(sum / static_cast<double>(cores.size()), cfg.horizon.window);
      seen |= 1;
    }
    for (const Reading& gpu : snapshot.of(Metric::gpu)) {
      Gpu& here = state.gpus[std::string(gpu.device)];
      here.use.push(gpu.value, cfg.horizon.window);
      here.fresh = true;
      seen |= 2;
    }
    for (const Reading& gpu : snapshot.of(Metric::gpu_memory)) {
      Gpu& here = state.gpus[std::string(gpu.device)];
      here.memory.push(gpu.value, cfg.horizon.window);
      here.fresh_memory = true;
      seen |= 4;
    }
    return seen;
  }

  static bool enough(const Config& cfg, const State& state, const Gpu& gpu) {
    const std::uint64_t window = cfg.horizon.window;
    return state.cores.seen() > window &&
           cfg.horizon.enough(state.cores.seen(), state.first_time, state.last_time) &&
           gpu.use.seen() > window && gpu.memory.seen() > window;
  }

  static void judge(const Config& cfg, State& state, SampleReport& report) {
    for (auto& [device, gpu] : state.gpus) {
      const bool fresh = std::exchange(gpu.fresh, false);
      if (!std::exchange(gpu.fresh_memory, false) || !fresh) continue;
      if (!enough(cfg, state, gpu)) {
        report.evaluated(device, kInsufficient, [](const Subject&, unsigned) { return Finding(); });
        continue;
      }
      const Box cores = box_of(state.cores.newest(cfg.horizon.window));
      const Box use = box_of(gpu.use.newest(cfg.horizon.window));
      const Box memory = box_of(gpu.memory.newest(cfg.horizon.window));
      const bool small = cores.p95 < cfg.cpu && use.p95 < cfg.gpu && memory.p95 < cfg.memory;
      report.evaluated(device, small ? hit() : kOk,
                       [&, &name = device](const Subject& subject, unsigned) {
                         return explain(cfg, subject, name, cores, use, memory);
                       });
    }
  }

  static Finding explain(const Config& cfg, const Subject& subject, const std::string& device,
                         const Box& cores, const Box& use, const Box& memory) {
    Finding finding = Finding::that("gpu_p95", use.p95);
    finding.is("<", "gpu_threshold_p95", cfg.gpu)
        .titled(subject.name, Verb::is, "too large for its batches")
        .says(sentence("{} is too large for its batches: in {} samples the 95th percentile is {} % "
                       "for the cores, {} % for GPU {} and {} % for its memory.",
                       subject.name, cfg.horizon.window, cores.p95, use.p95, device, memory.p95))
        .advises("Raise the batch size, or train on a smaller machine.")
        .with("cpu_p95", cores.p95)
        .with("gpu_p95", use.p95)
        .with("gpu_memory_p95", memory.p95);
    add_box(finding, cores, "cpu_");
    add_box(finding, use, "gpu_");
    add_box(finding, memory, "gpu_memory_");
    finding.points = cfg.horizon.window;
    return finding;
  }
};

}  // namespace

RuleDescriptor batch_size() {
  return {.name = "batch_size",
          .original_name = "BatchSize",
          .title = "Cores, a GPU and its memory are all hardly used.",
          .unit = "device",
          .needs = "system samples of processor cores, GPUs and GPU memory",
          .presets = "",
          .severity = core::Severity::info,
          .metrics = BatchSize::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<BatchSize>};
}

}  // namespace tocsin::rules
