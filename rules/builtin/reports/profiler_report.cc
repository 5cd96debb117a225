// Runs the rules of the profiler together, and sums up what they found: once per evaluation period, and at the end of a
// run.
//
// Reads   issues of the rules of the group all_profiler, ends of steps, system samples of GPUs.
// Window  since the start of the attempt.
// Brings  the rules 21 to 31 of the original (batch_size … dataloader), each with its own id; those
//         that are configured by themselves stay as they are. Their parameters are given here as
//         <RuleName>_<parameter>.
// Fires   never. Its last status is IssuesFound when one of these rules has found something.
// Tells   in the summary of a status per evaluation period and of the last one: how long the run took, and of that its beginning, its
//         steps and its end; durations of steps by mode; how busy each GPU was; what the two rules
//         that sum up have to tell; of each rule how often it was triggered, its issues, its data
//         points, parameters, what it found, and what to do.
// Quiet   always. Without a step or a sample it has no data.
// Source  Amazon SageMaker Debugger, ProfilerReport; docs/rules/profiler_report.md.

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "rules/builtin/reports/found_issues.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/sample.h"
#include "rules/evaluate/spread.h"

namespace tocsin::rules {
namespace {

// Rules 21 to 31: what the original's report runs.
constexpr std::array<std::string_view, 11> kBrought{"batch_size",
                                                    "cpu_bottleneck",
                                                    "gpu_memory_increase",
                                                    "io_bottleneck",
                                                    "load_balancing",
                                                    "low_gpu_utilization",
                                                    "overall_system_usage",
                                                    "max_initialization_time",
                                                    "overall_framework_metrics",
                                                    "step_outlier",
                                                    "dataloader"};

constexpr std::size_t kMostDevices = 256;  // GPUs that are followed
constexpr double kSecond = 1e9;            // in ns
constexpr double kNsOfAMicrosecond = 1e3;

struct ReportConfig : SampleConfig {
  std::vector<RuleSettings> parts;
};

struct DeviceUse {
  Spread busy{Spread::Of::share};
  Spread memory{Spread::Of::share};

  template <typename A>
  friend void io(A& a, DeviceUse& d) {
    io_all(a, d.busy, d.memory);
  }
};

struct ReportState {
  std::map<std::string, FoundIssues> rules;
  std::map<std::uint8_t, Spread> steps;                              // µs, by mode
  std::map<std::pair<std::string, std::string>, DeviceUse> devices;  // node, GPU
  std::uint64_t devices_left_out = 0;                                // readings of further ones
  std::int64_t first_step = 0;       // when the first began; 0: none
  std::int64_t last_step = 0;        // when the last ended
  std::int64_t first_time = 0;       // anything
  std::int64_t counted = INT64_MIN;  // end of the newest evaluation period

  template <typename A>
  friend void io(A& a, ReportState& s) {
    io_all(a, s.rules, s.steps, s.devices, s.devices_left_out, s.first_step, s.last_step,
           s.first_time, s.counted);
  }
};

bool is_reported(std::string_view type) {
  if (type == "profiler_report") return false;
  const RuleDescriptor* rule = find_rule(type);
  return rule != nullptr && rule->name == type && (rule->groups & group::kProfiler) != 0;
}

core::ValueMap spread_of(const Spread& spread, double unit) {
  return {{"count", spread.count()},
          {"min", spread.min() / unit},
          {"p05", spread.quantile(0.05) / unit},
          {"p50", spread.quantile(0.5) / unit},
          {"p95", spread.quantile(0.95) / unit},
          {"p99", spread.quantile(0.99) / unit},
          {"max", spread.max() / unit}};
}

class ReportEvaluator final : public EvaluatorOf<ReportState> {
 public:
  explicit ReportEvaluator(const ReportConfig& config) : config_(config) {}

  void on_step_end(const WorkerStep& step, Scope& scope) override {
    seen(step.start, scope);
    if (state.first_step == 0 || step.start < state.first_step) state.first_step = step.start;
    state.last_step = std::max(state.last_step, step.end);
    const std::int64_t took = distance(step.end, step.start);
    if (took <= 0) return;
    state.steps.try_emplace(static_cast<std::uint8_t>(step.mode), Spread::Of::rate)
        .first->second.take(static_cast<double>(took) / kNsOfAMicrosecond);
  }

  void on_snapshot(const NodeSnapshot& snapshot, Scope& scope) override {
    if (snapshot.readings.empty()) return;
    seen(snapshot.time, scope);
    for (const Metric metric : {Metric::gpu, Metric::gpu_memory}) {
      for (const Reading& reading : snapshot.of(metric)) {
        const std::pair key{std::string(snapshot.name), std::string(reading.device)};
        if (state.devices.size() >= kMostDevices && !state.devices.contains(key)) {
          ++state.devices_left_out;
          continue;
        }
        DeviceUse& device = state.devices[key];
        (metric == Metric::gpu ? device.busy : device.memory).take(reading.value);
      }
    }
  }

  void on_issue(const core::Issue& issue) override {
    if (!is_reported(issue.rule_type)) return;
    state.rules[issue.rule].take(issue);
  }

  void on_end(Scope& scope) override {
    std::string found_by;
    core::ValueMap out = told(scope, found_by);
    scope.summary(std::move(out), std::move(found_by));
  }

 private:
  /// `found_by`: rules that have found something.
  [[nodiscard]] core::ValueMap told(const Scope& scope, std::string& found_by) const {
    core::ValueMap out{{"run", run(scope)}};
    out.reserve(8);  // GCC 12 takes a first growth behind an inlined copy for an overflow
    const std::vector<RuleResult> all = scope.results();
    if (!state.steps.empty()) {
      core::ValueMap modes;
      for (const auto& [mode, spread] : state.steps) {
        modes.emplace_back(core::to_string(static_cast<core::Mode>(mode)),
                           spread_of(spread, kSecond / kNsOfAMicrosecond));
      }
      out.emplace_back("step_seconds", std::move(modes));
    }
    if (!state.devices.empty()) out.emplace_back("gpus", devices());
    std::vector<const RuleResult*> ranked;
    for (const RuleResult& one : all) {
      if (!is_reported(one.rule->type)) continue;
      ranked.push_back(&one);
      if (one.summary != nullptr && !one.summary->empty()) {
        out.emplace_back(one.rule->name, *one.summary);
      }
      if (one.state == core::RuleState::issues_found && !one.rule->shadow) {
        found_by += (found_by.empty() ? "issues of " : ", ") + one.rule->name;
      }
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const RuleResult* a, const RuleResult* b) {
      return triggered(*a) > triggered(*b);
    });
    core::ValueMap rules;
    const bool over = scope.times().ended != 0;
    for (const RuleResult* one : ranked) rules.emplace_back(one->rule->name, record(*one, over));
    out.emplace_back("rules", std::move(rules));
    return out;
  }

  static std::uint64_t triggered(const RuleResult& one) {
    return one.counts[static_cast<std::size_t>(EvaluationOutcome::hit)];
  }

  // Counts as one evaluation per period. What begins another one comes to it, not to the one that is told.
  void seen(std::int64_t time, Scope& scope) {
    if (state.first_time == 0 || time < state.first_time) state.first_time = time;
    const std::int64_t end = interval_end(time, config_.scan_interval);
    if (end <= state.counted) return;
    const std::int64_t over = std::exchange(state.counted, end);
    scope.counted(EvaluationOutcome::ok);
    std::string found_by;
    if (over != INT64_MIN) scope.interim(over, told(scope, found_by));
  }

  [[nodiscard]] core::ValueMap run(const Scope& scope) const {
    const RunTimes times = scope.times();
    // A loop that begins before its first record is a part of the run.
    std::int64_t start = times.started != 0 ? times.started : state.first_time;
    if (state.first_step != 0) start = std::min(start, state.first_step);
    const std::int64_t end = std::max({times.ended, times.newest, state.last_step});
    const auto seconds = [](std::int64_t from, std::int64_t to) {
      return static_cast<double>(std::max<std::int64_t>(distance(to, from), 0)) / kSecond;
    };
    const double all = seconds(start, end);
    core::ValueMap out{{"start", core::to_rfc3339(core::wall_time(start))},
                       {"end", core::to_rfc3339(core::wall_time(end))},
                       {"seconds", all}};
    if (state.first_step == 0) return out;
    const auto add = [&](const char* name, double part) {
      out.emplace_back(
          name, core::ValueMap{{"seconds", part}, {"percent", all > 0 ? 100 * part / all : 0.0}});
    };
    add("initialization", seconds(start, state.first_step));
    add("training_loop", seconds(state.first_step, state.last_step));
    add("finalization", seconds(state.last_step, end));
    return out;
  }

  [[nodiscard]] core::ValueMap devices() const {
    core::ValueMap out;
    for (const auto& [key, use] : state.devices) {
      core::ValueMap device;
      if (use.busy.count() > 0) device.emplace_back("utilization_percent", spread_of(use.busy, 1));
      if (use.memory.count() > 0) device.emplace_back("memory_percent", spread_of(use.memory, 1));
      out.emplace_back(key.first + "/" + key.second, std::move(device));
    }
    if (state.devices_left_out > 0) out.emplace_back("readings_left_out", state.devices_left_out);
    return out;
  }

  [[nodiscard]] core::ValueMap record(const RuleResult& one, bool over) const {
    const auto found = state.rules.find(one.rule->name);
    const FoundIssues* of = found == state.rules.end() ? nullptr : &found->second;
    const RuleDescriptor* type = find_rule(one.rule->type);
    // Its own last status comes after this one.
    const auto stands = over && one.state == core::RuleState::in_progress
                            ? core::RuleState::no_issues_found
                            : one.state;
    core::ValueMap out{
        {"status", std::string(core::to_string(stands))},
        {"triggered", triggered(one)},
        {"violations", of == nullptr ? std::uint64_t{0} : of->raised()},
        {"data_points",
         triggered(one) + one.counts[static_cast<std::size_t>(EvaluationOutcome::ok)]}};
    if (type != nullptr) out.emplace_back("description", std::string(type->title));
    if (of != nullptr && !of->recommendation().empty()) {
      out.emplace_back("recommendation", of->recommendation());
    }
    core::ValueMap parameters;
    for (const core::Parameter& parameter : one.rule->parameters) {
      const bool shared = parameter.name == "min_hits" || parameter.name == "clear_after" ||
                          parameter.name == "cooldown" || parameter.name == "max_open_units" ||
                          parameter.name == "severity";
      if (shared && parameter.origin != "user") continue;
      parameters.emplace_back(parameter.name, parameter.value);
    }
    out.emplace_back("parameters", std::move(parameters));
    if (of == nullptr) return out;
    out.emplace_back("details", of->details());
    return out;
  }

  const ReportConfig& config_;  // of the program, which outlives it
};

class ReportProgram final : public Program {
 public:
  ReportConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kStepEnds | input::kSnapshots | input::kIssues;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<ReportEvaluator>(config);
  }
  [[nodiscard]] bool step_clock() const noexcept override { return false; }
  [[nodiscard]] std::span<const RuleSettings> brings() const noexcept override {
    return config.parts;
  }
};

struct ProfilerReport {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"opt_out_telemetry"};

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, ReportConfig& cfg, Preset preset) {
    bool telemetry = false;
    read_scan_interval(in, cfg);
    in.optional("opt_out_telemetry", telemetry,
                "accepted for old configurations; Tocsin sends no telemetry about its use");
    if (in.describing()) return describe_parts(in, preset);
    core::Value anything;
    std::map<std::string_view, core::ValueMap> given;
    const std::optional<core::Value> own = in.value("");
    const auto* map = own ? core::as<core::ValueMap>(*own) : nullptr;
    static const core::ValueMap kNone;
    for (const auto& [key, value] : map == nullptr ? kNone : *map) {
      if (is_own(key)) continue;
      in.any(key, anything, "");
      const auto [rule, parameter] = parted(key);
      if (rule.empty()) {
        in.error(key,
                 "expected <RuleName>_<parameter> of a rule of the profiler, for instance "
                 "CPUBottleneck_cpu_threshold");
      } else {
        given[rule].emplace_back(parameter, value);
      }
    }
    for (const std::string_view name : kBrought) {
      const RuleDescriptor* rule = find_rule(name);
      if (rule == nullptr) continue;
      config::Diagnostics problems;
      RuleSettings part = make_rule_with(*rule, preset, given[name], problems);
      for (const config::Diagnostic& problem : problems.items()) {
        if (problem.grade == config::Grade::error)
          in.error({}, std::string(name) + ": " + problem.message);
      }
      if (part.program) cfg.parts.push_back(std::move(part));
    }
  }

 private:
  // In the spelling of the original; the other one is accepted too.
  static void describe_parts(config::Reader& in, Preset preset) {
    for (const std::string_view name : kBrought) {
      const RuleDescriptor* rule = find_rule(name);
      if (rule == nullptr) continue;
      in.prefixed(
          {std::string(rule->original_name) + "_", std::string(name) + "_"},
          [&](config::Reader& part) { (void)rule->read(part, preset); },
          [&](const std::string& key) {
            if (is_own(key) && key != "scan_interval_us") return std::string();
            return key + " of " + std::string(name) + "; null = that rule's own";
          });
    }
  }

  static bool is_own(std::string_view key) {
    static constexpr std::string_view kOwn[] = {
        "scan_interval_us", "opt_out_telemetry", "min_hits", "clear_after",
        "cooldown",         "max_open_units",    "severity"};
    return std::find(std::begin(kOwn), std::end(kOwn), key) != std::end(kOwn);
  }

  // "CPUBottleneck_cpu_threshold", "cpu_bottleneck_cpu_threshold": the longest name of a rule counts.
  static std::pair<std::string_view, std::string> parted(const std::string& key) {
    for (std::size_t at = key.rfind('_'); at != std::string::npos && at > 0;
         at = key.rfind('_', at - 1)) {
      const RuleDescriptor* rule = find_rule(std::string_view(key).substr(0, at));
      if (rule == nullptr) continue;
      const auto brought = std::find(kBrought.begin(), kBrought.end(), rule->name);
      if (brought != kBrought.end() && at + 1 < key.size()) return {*brought, key.substr(at + 1)};
    }
    return {};
  }
};

}  // namespace

RuleDescriptor profiler_report() {
  return {.name = "profiler_report",
          .original_name = "ProfilerReport",
          .title = "Runs the profiler rules and reports their results. Raises no issue of its own.",
          .unit = "run",
          .needs = "what its rules need: step ends, system samples, phases and operators",
          .presets = "those of its rules",
          .severity = core::Severity::info,
          .groups = group::kProfiler,
          .read = &read_rule<ProfilerReport, ReportProgram>};
}

}  // namespace tocsin::rules
