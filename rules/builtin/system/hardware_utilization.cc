// Fires when a resource of a node is used too little or too much.
//
// Reads   system samples of GPUs, their memory, processor cores, the node's memory, and I/O wait;
//         of several devices the mean of a snapshot.
// Window  the last `window` snapshots of a node and resource, after more than `patience`; judged once
//         per evaluation period of event time.
// Fires   p95 < low_p95[resource] (`under`), or p50 > high_p50[resource] (`over`).
// Quiet   for resources that the node does not send, and for limits that are not set.
// Source  ours (HardwareUtilization of the original has no published definition);
//         docs/rules/hardware_utilization.md.

#include <algorithm>
#include <array>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/box.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kUsageKinds[] = {"under", "over"};
constexpr std::array kResources{Metric::gpu, Metric::gpu_memory, Metric::cpu, Metric::memory,
                                Metric::io_wait};

struct HardwareUtilization {
  enum Kind : unsigned { kUnder, kOver };
  static constexpr std::string_view kMetrics[] = {"hw.gpu.utilization", "hw.gpu.memory.utilization",
                                                  "system.cpu.utilization",
                                                  "system.memory.utilization"};

  static constexpr std::span<const std::string_view> kKinds = kUsageKinds;
  static constexpr std::string_view kExtensions[] = {"patience_seconds", "window_seconds"};
  static constexpr std::uint32_t kInputs = 1;

  struct Limits {
    std::optional<double> low;
    std::optional<double> high;
  };
  struct Config : SampleConfig {
    std::vector<std::string> resources{"gpu", "gpu_memory", "cpu", "cpu_memory"};
    std::map<std::string, Limits> limits{{"gpu", {30, {}}},
                                         {"cpu", {{}, 95}},
                                         {"cpu_memory", {{}, 95}},
                                         {"gpu_memory", {{}, 97}},
                                         {"io_wait", {{}, 50}}};
    Horizon horizon;
  };
  struct Resource {
    Ring values;
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;
    std::uint64_t devices = 0;
    bool fresh = false;

    template <typename A>
    friend void io(A& a, Resource& r) {
      io_all(a, r.values, r.first_time, r.last_time, r.devices, r.fresh);
    }
  };
  using State = std::map<std::string, Resource>;

  static Defaults defaults(Preset) { return {.selects = false}; }

  // A given key replaces one default; null removes it.
  static void read_limits(config::Reader& in, Config& cfg, const std::string& key,
                          std::optional<double> Limits::*which, std::string_view help) {
    core::Value given;
    core::ValueMap usual;
    for (const auto& [resource, limits] : cfg.limits) {
      if (limits.*which) usual.emplace_back(resource, *(limits.*which));
    }
    given = usual;
    static constexpr const char* kPercent =
        R"({"type": ["number", "null"], "minimum": 0, "maximum": 100})";
    std::string resources;
    for (const auto& [resource, limits] : cfg.limits) {
      resources += (resources.empty() ? "\"" : ", \"") + resource + "\": " + kPercent;
    }
    in.any(
        key, given, std::string(help),
        R"({"type": "object", "additionalProperties": false, "properties": {)" + resources + "}}");
    if (given.is_null()) return;  // a key without a value
    const auto* map = core::as<core::ValueMap>(given);
    if (map == nullptr) return in.error(key, key + " must map resources to percentages");
    for (const auto& [resource, value] : *map) {
      if (!cfg.limits.contains(resource)) {
        in.error(key, "unknown resource \"" + resource +
                          "\": expected gpu, gpu_memory, cpu, cpu_memory or io_wait");
        continue;
      }
      std::optional<double> number;
      if (const auto* real = core::as<double>(value)) number = *real;
      if (const auto* whole = core::as<std::int64_t>(value)) number = static_cast<double>(*whole);
      if (value.is_null()) {
        (cfg.limits[resource].*which).reset();
      } else if (!number || !(*number >= 0 && *number <= 100)) {
        in.error(key, key + "." + resource + " must be a percentage, 0 … 100, or null");
      } else {
        cfg.limits[resource].*which = *number;
      }
    }
  }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("resources", cfg.resources,
                "what is judged: gpu, gpu_memory, cpu, cpu_memory, io_wait");
    in.choices("resources", {"gpu", "gpu_memory", "cpu", "cpu_memory", "io_wait"});
    for (const std::string& one : cfg.resources) {
      if (!cfg.limits.contains(one)) in.error("resources", "unknown resource \"" + one + "\"");
    }
    read_limits(in, cfg, "low_p95", &Limits::low,
                "per resource: too little used if its 95th percentile is below this percentage");
    read_limits(in, cfg, "high_p50", &Limits::high,
                "per resource: at its limit if its median is above this percentage");
    read_window(in, cfg.horizon, 1);
    read_patience(in, cfg.horizon, 1);
    read_scan_interval(in, cfg);
  }

  static std::uint32_t observe(const Config& cfg, State& state, const NodeSnapshot& snapshot) {
    std::uint32_t seen = 0;
    for (const Metric metric : kResources) {
      const auto readings = snapshot.of(metric);
      const std::string name(to_string(metric));
      if (readings.empty() ||
          std::find(cfg.resources.begin(), cfg.resources.end(), name) == cfg.resources.end()) {
        continue;
      }
      double sum = 0;
      for (const Reading& reading : readings) sum += reading.value;
      Resource& here = state[name];
      if (here.values.seen() == 0) here.first_time = snapshot.time;
      here.last_time = snapshot.time;
      here.devices = readings.size();
      here.fresh = true;
      here.values.push(sum / static_cast<double>(readings.size()), cfg.horizon.window);
      seen = 1;
    }
    return seen;
  }

  static void judge(const Config& cfg, State& state, SampleReport& report) {
    for (auto& [name, resource] : state) {
      if (!std::exchange(resource.fresh, false)) continue;
      const Limits& limits = cfg.limits.at(name);
      const Box box = box_of(resource.values.newest(cfg.horizon.window));
      unsigned kinds = 0;
      if (limits.low && box.p95 < *limits.low) kinds |= 1U << kUnder;
      if (limits.high && box.p50 > *limits.high) kinds |= 1U << kOver;
      Verdict verdict =
          kinds == 0 ? kOk : Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
      if (!cfg.horizon.enough(resource.values.seen(), resource.first_time, resource.last_time)) {
        verdict = kInsufficient;
      }
      report.evaluated(name, verdict,
                       [&, &which = name, &now = resource](const Subject& subject, unsigned kind) {
                         return explain(limits, subject, which, now, box, kind);
                       });
    }
  }

  static Finding explain(const Limits& limits, const Subject& subject, const std::string& name,
                         const Resource& resource, const Box& box, unsigned kind) {
    const std::size_t points = resource.values.size();
    Finding finding;
    if (kind == kUnder) {
      finding = Finding::that(name + "_p95", box.p95);
      finding.is("<", "low_p95", *limits.low)
          .titled(sentence("{} of {}", name, subject.name), Verb::is, "used too little")
          .says(sentence("{} of {} is used too little: the 95th percentile of {} samples is {} % "
                         "(expected: at least {} %).",
                         name, subject.name, points, box.p95, *limits.low))
          .advises("Use larger batches, remove waits, or use a smaller machine.");
    } else {
      finding = Finding::that(name + "_p50", box.p50);
      finding.is(">", "high_p50", *limits.high)
          .titled(sentence("{} of {}", name, subject.name), Verb::is, "at its limit")
          .says(sentence("{} of {} is at its limit: the median of {} samples is {} % (limit {} %).",
                         name, subject.name, points, box.p50, *limits.high))
          .advises("It may slow the training down. If memory runs out, the job ends.");
    }
    finding.with("resource", name)
        .with("p05", box.p05)
        .with("p50", box.p50)
        .with("p95", box.p95)
        .with("devices", resource.devices);
    finding.points = points;
    return finding;
  }
};

}  // namespace

RuleDescriptor hardware_utilization() {
  return {.name = "hardware_utilization",
          .original_name = "HardwareUtilization",
          .title = "A resource of a node is used too little or too much.",
          .unit = "device",
          .needs = "system samples of the resources that are judged",
          .presets = "",
          .severity = core::Severity::warning,
          .metrics = HardwareUtilization::kMetrics,
          .groups = group::kProfiler,
          .read = &read_sample_rule<HardwareUtilization>};
}

}  // namespace tocsin::rules
