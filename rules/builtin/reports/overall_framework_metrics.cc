// Sums up what the time of a run goes, and went, into.
//
// Reads   ends of steps that say when they began; spans: phases of steps, operators and kernels
//         (op.cpu, op.gpu/<device>), communication.
// Window  since the start of the attempt. Overlapping spans of parallel threads count each: shares are
//         of summed time, not of the time that went by.
// Fires   never.
// Tells   in the summary of a status per evaluation period and of the last one: steps by mode and
//         `others`, the time between two steps of a worker; phases; operators by device and
//         communication, of which those at or below 2 % are left out and the rest is brought to
//         100 %. Where others > 25 %, or forward or backward > 70 % of both, what that means.
// Quiet   always. Without durations it has no data.
// Source  Amazon SageMaker Debugger, OverallFrameworkMetrics; docs/rules/overall_framework_metrics.md.

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "rules/contract/sentence.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/phase.h"
#include "rules/evaluate/sample.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMostFamilies = 4096;  // different spans of a run that are told apart
constexpr double kNsOfASecond = 1e9;

struct TimeTotals {
  using Family = std::pair<std::uint64_t, std::uint64_t>;  // track, name
  std::array<std::int64_t, 4> modes{};                     // ns in steps
  std::int64_t others = 0;                                 // ns between steps
  std::map<std::uint32_t, std::int64_t> ended;             // per worker: when its newest step was
  std::map<Family, std::int64_t> spans;                    // ns
  std::uint64_t left_out = 0;                              // spans beyond kMostFamilies
  std::int64_t counted = INT64_MIN;                        // end of the newest evaluation period

  template <typename A>
  friend void io(A& a, TimeTotals& t) {
    io_all(a, t.modes, t.others, t.ended, t.spans, t.left_out, t.counted);
  }
};

class TimeTotalsEvaluator final : public EvaluatorOf<TimeTotals> {
 public:
  explicit TimeTotalsEvaluator(const SampleConfig& config) : config_(config) {}

  void on_step_end(const WorkerStep& step, Scope& scope) override {
    const std::int64_t took = distance(step.end, step.start);
    if (took > 0) evaluated(step.end, scope);
    const auto before = state.ended.find(step.worker);
    // Where a step was lost nobody knows how much of the time lies between two of them.
    if (before != state.ended.end() && took > 0 && !step.partial) {
      state.others += std::max<std::int64_t>(distance(step.start, before->second), 0);
    }
    state.ended[step.worker] = step.end;
    if (took <= 0) return;
    state.modes[static_cast<std::size_t>(step.mode) & 3U] += took;
  }

  void on_spans(std::uint32_t, const core::FrameView& frame, Scope& scope) override {
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const core::SpanRow span = frame.span(i);
      if (span.duration < 0) continue;
      evaluated(add(span.start, core::Duration(span.duration)), scope);
      const TimeTotals::Family family{span.track, span.name};
      const auto known = state.spans.find(family);
      if (known != state.spans.end()) {
        known->second += span.duration;
      } else if (state.spans.size() < kMostFamilies) {
        state.spans.emplace(family, span.duration);
      } else {
        ++state.left_out;
      }
    }
  }

  void on_restart(std::uint32_t worker) override { state.ended.erase(worker); }
  void on_end(Scope& scope) override { scope.summary(told(scope)); }

 private:
  using Shares = std::vector<std::pair<std::string, std::int64_t>>;

  // Once per evaluation period. What begins another one comes to it, not to the one that is told.
  void evaluated(std::int64_t time, Scope& scope) {
    const std::int64_t end = interval_end(time, config_.scan_interval);
    if (end <= state.counted) return;
    const std::int64_t over = std::exchange(state.counted, end);
    scope.counted(EvaluationOutcome::ok);
    if (over != INT64_MIN) scope.interim(over, told(scope));
  }

  [[nodiscard]] core::ValueMap told(Scope& scope) const {
    Shares steps;
    for (std::size_t m = 0; m < state.modes.size(); ++m) {
      if (state.modes[m] > 0) {
        steps.emplace_back(core::to_string(static_cast<core::Mode>(m)), state.modes[m]);
      }
    }
    if (state.others > 0) steps.emplace_back("others", state.others);
    core::ValueMap out;
    if (core::ValueMap told = kept(steps, 0); !told.empty()) {
      if (percent_of(steps, "others") > 25) {
        told.emplace_back("means", "much of the time passes between steps");
      }
      out.emplace_back("steps", std::move(told));
    }
    std::map<std::string, std::map<std::string, std::int64_t>> tracks;
    for (const auto& [family, duration] : state.spans) {
      tracks[track_of(family.first, scope)][scope.text(family.second)] += duration;
    }
    core::ValueMap by_track;
    for (const auto& [track, names] : tracks) {
      const bool phases = track == "phase";
      Shares shares(names.begin(), names.end());
      core::ValueMap told = kept(shares, phases ? 0 : 0.02);
      if (told.empty()) continue;
      if (phases) {
        if (std::string means = uneven(shares); !means.empty()) {
          told.emplace_back("means", std::move(means));
        }
      }
      by_track.emplace_back(track, std::move(told));
    }
    if (!by_track.empty()) out.emplace_back("tracks", std::move(by_track));
    if (state.left_out > 0) out.emplace_back("spans_left_out", state.left_out);
    return out;
  }

  // The processes of a data loader have a track each: together they are one.
  static std::string track_of(std::uint64_t track, const Scope& scope) {
    if (track == span_names().phase) return "phase";
    std::string text = scope.text(track);
    return text.starts_with("dataloader/") ? "dataloader" : text;
  }

  /// The shares of what is more than `least` of the whole, the largest first; empty: there is none.
  static core::ValueMap kept(Shares& shares, double least) {
    double all = 0;
    for (const auto& [name, duration] : shares) all += static_cast<double>(duration);
    std::erase_if(shares, [&](const auto& one) {
      return all == 0 || static_cast<double>(one.second) <= least * all;
    });
    if (shares.empty()) return {};
    std::sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    core::ValueMap percents;
    for (const auto& [name, duration] : shares) {
      percents.emplace_back(name, percent_of(shares, name));
    }
    return {{"seconds", all / kNsOfASecond}, {"percent", std::move(percents)}};
  }

  static double percent_of(const Shares& shares, std::string_view name) {
    double all = 0;
    double own = 0;
    for (const auto& [other, duration] : shares) {
      all += static_cast<double>(duration);
      if (other == name) own = static_cast<double>(duration);
    }
    return all > 0 ? 100 * own / all : 0;
  }

  static std::string uneven(const Shares& phases) {
    double forward = 0;
    double backward = 0;
    for (const auto& [name, duration] : phases) {
      if (name == "forward") forward = static_cast<double>(duration);
      if (name == "backward") backward = static_cast<double>(duration);
    }
    const double larger = std::max(forward, backward);
    if (forward == 0 || backward == 0 || larger <= 0.7 * (forward + backward)) return "";
    return sentence("{} takes {} % of the time of forward and backward",
                    forward > backward ? "forward" : "backward",
                    100 * larger / (forward + backward));
  }

  const SampleConfig& config_;  // of the program, which outlives its evaluators
};

class TimeTotalsProgram final : public Program {
 public:
  SampleConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kStepEnds | input::kSpans;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<TimeTotalsEvaluator>(config);
  }
};

struct OverallFrameworkMetrics {
  static constexpr std::span<const std::string_view> kKinds{};
  static Defaults defaults(Preset) { return {.selects = false}; }
  static void read(config::Reader& in, SampleConfig& cfg, Preset) { read_scan_interval(in, cfg); }
};

}  // namespace

RuleDescriptor overall_framework_metrics() {
  return {.name = "overall_framework_metrics",
          .original_name = "OverallFrameworkMetrics",
          .title = "Reports how a run spent its time. Raises no issue.",
          .unit = "run",
          .needs = "step durations; phases and operators if they are profiled",
          .presets = "",
          .severity = core::Severity::info,
          .groups = group::kProfiler,
          .read = &read_rule<OverallFrameworkMetrics, TimeTotalsProgram>};
}

}  // namespace tocsin::rules
