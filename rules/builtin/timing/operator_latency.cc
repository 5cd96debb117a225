// Fires when an operator takes most of a device's time, takes too long, or has become slower.
//
// Reads   spans of the tracks op.cpu and op.gpu/<device>: calls of operators and kernels.
// Window  per worker, mode, device and operator, its calls in the last `window` profiled steps; the
//         operator needs `min_calls` of them. A profiled step is over at the first operator of a
//         later one, or at the end of the run. A call on the host counts without the calls within it.
// Fires   dominant: the operator takes more than max_share_percent of the summed time of all
//         operators of the device. slow: the 95th percentile of its calls > max_p95_us, if given.
//         regressed: their median > slowdown_factor × that of the first full window of the run,
//         which also needs min_calls.
// Quiet   about operators that were profiled in too few steps.
// Source  ours; the name is that of Amazon SageMaker Debugger's TfOperatorTime, which has no
//         published definition; docs/rules/operator_latency.md.

#include <algorithm>
#include <map>
#include <numeric>

#include "rules/builtin/timing/operator_calls.h"
#include "rules/contract/items.h"
#include "rules/contract/quantity.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/phase.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kOperatorKinds[] = {"dominant", "slow", "regressed"};
enum OperatorKind : unsigned { kDominant, kSlow, kRegressed };
constexpr std::size_t kMostCalls = 4096;  // of one profiled step
constexpr double kNsPerMicrosecond = 1e3;
constexpr double kMicrosecondsPerSecond = 1e6;

struct OperatorConfig {
  std::string device = "any";
  std::vector<std::string> op_regex{".*"};
  double max_share_percent = 50;
  std::optional<double> max_p95_us;
  double slowdown_factor = 3;
  std::uint32_t min_calls = 30;
  std::uint32_t window = 100;
  bool all = true;      // op_regex is its default
  Selection operators;  // else
};

using OperatorKey = std::pair<std::uint64_t, std::uint64_t>;  // track, name
using Calls = std::map<OperatorKey, std::vector<double>>;     // µs

struct ProfiledStep {
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;  // the newest end of a call
  std::uint64_t calls = 0;
  std::uint64_t left_out = 0;  // calls beyond kMostCalls
  std::uint64_t holding = 0;   // calls that made others
  Calls of;

  template <typename A>
  friend void io(A& a, ProfiledStep& s) {
    io_all(a, s.step, s.global_step, s.time, s.calls, s.left_out, s.holding, s.of);
  }
};

struct Baseline {
  std::uint64_t calls = 0;
  double p50 = 0;
};

/// What one worker's operators took in one mode.
struct OperatorHistory {
  bool open = false;
  ProfiledStep now;
  std::vector<OperatorCall> made;    // in that step
  std::int64_t judged = INT64_MIN;   // newest step
  std::vector<ProfiledStep> window;  // oldest first
  bool has_baseline = false;
  std::map<OperatorKey, Baseline> baseline;

  template <typename A>
  friend void io(A& a, OperatorHistory& h) {
    io_all(a, h.open, h.now, h.made, h.judged, h.window, h.has_baseline, h.baseline);
  }
};

struct OperatorState {
  std::map<std::pair<std::uint32_t, std::uint8_t>, OperatorHistory> histories;  // worker, mode

  template <typename A>
  friend void io(A& a, OperatorState& s) {
    io_all(a, s.histories);
  }
};

/// One operator in the window.
struct OperatorTimes {
  std::vector<double> sorted;
  double share_percent = 0;
  double p50 = 0;
  double p95 = 0;
  double slowdown = 0;  // 0: nothing to compare with
};

class OperatorEvaluator final : public EvaluatorOf<OperatorState> {
 public:
  explicit OperatorEvaluator(const OperatorConfig& config) : config_(config) {}

  void on_spans(std::uint32_t worker, const core::FrameView& frame, Scope& scope) override {
    const core::FrameHeader& header = frame.header();
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const core::SpanRow span = frame.span(i);
      if (span.duration < 0 || device_of(span.track, scope).empty()) continue;
      end_others(worker, header.mode, span.step, scope);
      OperatorHistory& history = state.histories[{worker, static_cast<std::uint8_t>(header.mode)}];
      if (span.step <= history.judged) {
        scope.late(1);
        continue;
      }
      ProfiledStep& step = history.now;
      history.open = true;
      step.step = span.step;
      step.global_step = std::max(step.global_step, header.global_step);
      step.time = std::max(step.time, add(span.start, core::Duration(span.duration)));
      if (++step.calls > kMostCalls) {
        ++step.left_out;
        continue;
      }
      history.made.push_back({span.track, span.name, span.start, span.duration});
    }
  }
  void on_restart(std::uint32_t worker) override {
    std::erase_if(state.histories, [&](const auto& one) { return one.first.first == worker; });
  }
  void on_end(Scope& scope) override {
    for (auto& [who, history] : state.histories) {
      if (history.open) end(who.first, static_cast<core::Mode>(who.second), history, scope);
    }
  }

 private:
  /// "cpu", "gpu/0"; empty: no track of operators.
  static std::string_view device_of(std::uint64_t track, const Scope& scope) {
    constexpr std::string_view kPrefix = "op.";
    if (track == span_names().cpu_operators) return "cpu";
    const Name* name = scope.find(track);
    if (name == nullptr || !name->text.starts_with("op.gpu")) return {};
    return std::string_view(name->text).substr(kPrefix.size());
  }
  [[nodiscard]] bool looks_at(const OperatorKey& key, const Scope& scope) const {
    const bool device =
        config_.device == "any" || device_of(key.first, scope).starts_with(config_.device);
    return device && (config_.all || config_.operators.matches(
                                         core::Role::other, scope.find(key.second)) == Match::yes);
  }

  // What is open of this worker in another step is over.
  void end_others(std::uint32_t worker, core::Mode mode, std::int64_t step, Scope& scope) {
    const auto from = state.histories.lower_bound({worker, 0});
    for (auto at = from; at != state.histories.end() && at->first.first == worker; ++at) {
      if (!at->second.open) continue;
      const bool same = at->first.second == static_cast<std::uint8_t>(mode);
      if (same && step <= at->second.now.step) continue;
      end(worker, static_cast<core::Mode>(at->first.second), at->second, scope);
    }
  }

  // Kernels of a device are no calls of each other, however they lie.
  static void sort_calls(OperatorHistory& history) {
    std::vector<OperatorCall> host;
    for (const OperatorCall& call : history.made) {
      if (call.track == span_names().cpu_operators) {
        host.push_back(call);
      } else {
        take(history.now, call, call.duration);
      }
    }
    history.made.clear();
    const std::vector<std::int64_t> own = own_times(host);
    for (std::size_t i = 0; i < host.size(); ++i) take(history.now, host[i], own[i]);
  }
  static void take(ProfiledStep& step, const OperatorCall& call, std::int64_t took) {
    step.of[{call.track, call.name}].push_back(static_cast<double>(took) / kNsPerMicrosecond);
    if (took != call.duration) ++step.holding;
  }

  void end(std::uint32_t worker, core::Mode mode, OperatorHistory& history, Scope& scope) {
    history.open = false;
    sort_calls(history);
    history.judged = history.now.step;
    if (history.window.size() == config_.window) history.window.erase(history.window.begin());
    history.window.push_back(std::exchange(history.now, {}));
    Calls all;
    std::map<std::uint64_t, double> devices;  // µs by track
    for (const ProfiledStep& step : history.window) {
      for (const auto& [key, calls] : step.of) {
        std::vector<double>& of = all[key];
        of.insert(of.end(), calls.begin(), calls.end());
      }
    }
    for (const auto& [key, calls] : all) {
      devices[key.first] += std::accumulate(calls.begin(), calls.end(), 0.0);
    }
    const bool first = !history.has_baseline && history.window.size() == config_.window;
    history.has_baseline = history.has_baseline || first;
    for (auto& [key, calls] : all) {
      if (!looks_at(key, scope)) continue;
      const double sum = std::accumulate(calls.begin(), calls.end(), 0.0);
      OperatorTimes times;
      times.sorted = std::move(calls);
      std::sort(times.sorted.begin(), times.sorted.end());
      times.share_percent = 100 * sum / devices[key.first];
      times.p50 = quantile(times.sorted, 0.5);
      times.p95 = quantile(times.sorted, 0.95);
      if (first) history.baseline[key] = {times.sorted.size(), times.p50};
      judge(worker, mode, history, key, times, scope);
    }
  }

  void judge(std::uint32_t worker, core::Mode mode, const OperatorHistory& history,
             const OperatorKey& key, OperatorTimes& times, Scope& scope) {
    const auto baseline = history.baseline.find(key);
    const bool compared =
        baseline != history.baseline.end() && baseline->second.calls >= config_.min_calls;
    unsigned kinds = 0;
    if (times.share_percent > config_.max_share_percent) kinds |= 1U << kDominant;
    if (config_.max_p95_us && times.p95 > *config_.max_p95_us) kinds |= 1U << kSlow;
    if (compared && times.p50 > config_.slowdown_factor * baseline->second.p50) {
      kinds |= 1U << kRegressed;
    }
    Verdict verdict =
        kinds == 0 ? kOk : Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
    if (times.sorted.size() < config_.min_calls) verdict = kInsufficient;
    const ProfiledStep& newest = history.window.back();
    Place place = at_step(mode, newest.step, newest.global_step, newest.time);
    Subject subject;
    subject.name = scope.text(key.second);
    subject.worker = scope.worker(worker);
    subject.mode = mode;
    subject.step = newest.step;
    const std::string device(device_of(key.first, scope));
    const auto labels = [&]() -> Labels {
      return {{"device", device},
              {"metric", subject.name},
              {"mode", std::string(core::to_string(mode))},
              {"worker", subject.worker}};
    };
    scope.judged(unit_number({device, subject.name, core::to_string(mode), subject.worker}), worker,
                 verdict, place, subject, labels, [&](const Subject& about, unsigned kind) {
                   return explain(history, times, compared ? &baseline->second : nullptr, about,
                                  device, kind);
                 });
  }

  [[nodiscard]] Finding explain(const OperatorHistory& history, const OperatorTimes& times,
                                const Baseline* baseline, const Subject& subject,
                                const std::string& device, unsigned kind) const {
    Finding finding = measured(times, baseline, subject, device, kind);
    std::uint64_t left_out = 0;
    std::uint64_t holding = 0;
    for (const ProfiledStep& step : history.window) {
      left_out += step.left_out;
      holding += step.holding;
    }
    finding.with("operator", subject.name)
        .with("device", device)
        .with("calls", std::uint64_t{times.sorted.size()})
        .with("p50_us", times.p50)
        .with("p95_us", times.p95)
        .with("share_percent", times.share_percent);
    if (baseline != nullptr) finding.with("baseline_p50_us", baseline->p50);
    if (holding > 0) finding.with("self_time", true);
    if (left_out > 0) finding.with("calls_left_out", left_out);
    return std::move(finding.since(history.window.front().step, history.window.size()));
  }

  [[nodiscard]] Finding measured(const OperatorTimes& times, const Baseline* baseline,
                                 const Subject& subject, const std::string& device,
                                 unsigned kind) const {
    if (kind == kDominant) {
      Finding out = Finding::that("share_percent", times.share_percent);
      out.is(">", "max_share_percent", config_.max_share_percent)
          .titled(subject.name, Verb::is, "taking most of the time")
          .says(sentence("{} takes {} % of the time of all operators on {} of {} (limit {} %).",
                         subject.name, times.share_percent, device, subject.worker,
                         config_.max_share_percent))
          .advises("Use a fused or lower-precision version of it, or shapes that suit it.");
      return out;
    }
    if (kind == kSlow) {
      Finding out = Finding::that("p95_us", times.p95);
      out.is(">", "max_p95_us", *config_.max_p95_us)
          .titled(subject.name, Verb::is, "slow")
          .says(sentence("The 95th percentile of calls of {} on {} of {} is {} (limit {}).",
                         subject.name, device, subject.worker,
                         duration_text(times.p95 / kMicrosecondsPerSecond),
                         duration_text(*config_.max_p95_us / kMicrosecondsPerSecond)))
          .advises("Check its input: shapes, memory layout, type, and the device of the data.");
      return out;
    }
    // It is there: nothing else is slower than it was.
    const double first = baseline != nullptr ? baseline->p50 : times.p50;
    Finding out = Finding::that("slowdown", times.p50 / first);
    out.is(">", "slowdown_factor", config_.slowdown_factor)
        .titled(subject.name, Verb::is, "slower than at first")
        .says(sentence(
            "Calls of {} on {} of {} take {}, {} times as long as at first ({}; limit: {} times).",
            subject.name, device, subject.worker, duration_text(times.p50 / kMicrosecondsPerSecond),
            times.p50 / first, duration_text(first / kMicrosecondsPerSecond),
            config_.slowdown_factor))
        .advises(
            "Check what has changed. Most probable first: larger inputs; fragmented memory; a "
            "device that lowers its clock; another process on it.");
    return out;
  }

  const OperatorConfig& config_;  // of the program, which outlives it
};

class OperatorProgram final : public Program {
 public:
  OperatorConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override { return input::kSpans; }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<OperatorEvaluator>(config);
  }
};

struct OperatorLatency {
  static constexpr std::span<const std::string_view> kKinds = kOperatorKinds;

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, OperatorConfig& cfg, Preset) {
    const std::vector<std::string> usual = cfg.op_regex;
    in.optional("device", cfg.device, config::one_of({"cpu", "gpu", "any"}),
                "operators of the host, kernels of devices, or both");
    read_items(in, "op_regex", cfg.op_regex,
               "operators whose name contains a match of one of these patterns (RE2)");
    in.optional("max_share_percent", cfg.max_share_percent, config::above(0, 100),
                "largest percentage of the time of all operators on the device that one may take");
    in.optional("max_p95_us", cfg.max_p95_us, config::if_given(config::greater_than(0.0)),
                "largest 95th percentile of its calls, in microseconds");
    in.optional(
        "slowdown_factor", cfg.slowdown_factor, config::greater_than(1.0),
        "largest slowdown, as a multiple of the median of the first full window of the run");
    in.optional("min_calls", cfg.min_calls, config::at_least(std::uint32_t{1}),
                "least number of calls in the window");
    in.optional("window", cfg.window, config::between(std::uint32_t{1}, 10'000U),
                "number of newest profiled steps to judge");
    cfg.all = cfg.op_regex == usual;
    for (const std::string& pattern : cfg.op_regex) {
      std::string problem;
      if (!cfg.operators.add_regex(pattern, problem)) {
        in.error("op_regex", "\"" + pattern + "\" is no regular expression: " + problem);
      }
    }
  }
};

}  // namespace

RuleDescriptor operator_latency() {
  return {
      .name = "operator_latency",
      .original_name = "TfOperatorTime",
      .title = "An operator takes most of a device's time, takes too long, or has become slower.",
      .unit = "operator",
      .needs = "operator events of the profiler",
      .presets = "",
      .severity = core::Severity::info,
      .aliases = {"tf_operator_time"},
      .version = "2",
      .groups = group::kProfiler,
      .read = &read_rule<OperatorLatency, OperatorProgram>};
}

}  // namespace tocsin::rules
