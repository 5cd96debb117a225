// Fires when too many steps of a worker take far longer than its others.
//
// Reads   start and end of steps; for the evidence, which spans were active in the longest ones.
// Window  per worker and mode, the last `window` steps (0: the whole run, at most 1 000 000) that
//         everybody has ended. More than 100 are needed.
// Fires   more than n_outliers of them are longer than mean + stddev·σ, both over the same steps. In
//         preset tocsin a step must also be longer than 3 × the median and take 0.1 s more than it,
//         and the time that these steps took beyond the median must be more than 20 % of all time.
// Judged  original: once per evaluation period of event time, when the worker has passed its end;
//         tocsin: every 50 steps. What is left: at the end of the run.
// Quiet   about steps whose end was lost: they are gaps, no long steps.
// Source  Amazon SageMaker Debugger, StepOutlier; docs/rules/step_outlier.md. Multiples of σ and long
//         steps only. The window and the conditions of preset tocsin are ours: ordinary noise passes
//         3 σ about once in 740 steps, so that a fixed number over a whole run is passed by every
//         long one, and a checkpoint now and then is no fault. Nor are the tens of milliseconds that
//         a scheduler, a garbage collector or the first touch of memory take from a step anywhere:
//         of steps of a millisecond they are most of all time.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>

#include "rules/builtin/timing/step_history.h"
#include "rules/contract/quantity.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/horizon.h"
#include "rules/evaluate/sample.h"
#include "rules/evaluate/timed.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kLeastSteps = 100;  // more than these are judged
constexpr std::size_t kWholeRun = 1'000'000;
constexpr std::size_t kMostListed = 100;  // outliers in the evidence

struct StepOutlierConfig : SampleConfig {
  std::uint32_t stddev = 3;
  std::uint32_t outliers = 10;
  std::uint32_t window = 1000;
  std::uint32_t every = 0;    // steps; 0: by evaluation periods
  double median_factor = 0;   // 0: off
  double excess_seconds = 0;  // 0: off
  double excess_percent = 0;  // 0: off
  std::optional<core::Mode> mode;

  [[nodiscard]] std::size_t most() const noexcept { return window == 0 ? kWholeRun : window; }
};

/// One judgement of a window.
struct Spread {
  double mean = 0;
  double sigma = 0;
  double limit = 0;
  double excess_percent = 0;
  std::vector<double> sorted;
  std::vector<TakenTime> outliers;
};

Spread spread_of(const StepOutlierConfig& cfg, const StepHistory& history) {
  Spread out;
  const std::size_t n = history.ring.size();
  out.sorted.reserve(n);
  for (std::size_t i = 0; i < n; ++i) out.sorted.push_back(history.at(i).seconds);
  const double sum = std::accumulate(out.sorted.begin(), out.sorted.end(), 0.0);
  out.mean = sum / static_cast<double>(n);
  double squares = 0;
  for (const double seconds : out.sorted) squares += (seconds - out.mean) * (seconds - out.mean);
  out.sigma = std::sqrt(squares / static_cast<double>(n));
  std::sort(out.sorted.begin(), out.sorted.end());
  const double median = quantile(out.sorted, 0.5);
  out.limit = out.mean + cfg.stddev * out.sigma;
  double excess = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const TakenTime time = history.at(i);
    if (!(time.seconds > out.limit) || !(time.seconds > cfg.median_factor * median)) continue;
    if (cfg.excess_seconds > 0 && !(time.seconds > median + cfg.excess_seconds)) continue;
    out.outliers.push_back(time);
    excess += time.seconds - median;
  }
  out.excess_percent = 100 * excess / sum;
  return out;
}

using HistoryKey = std::pair<std::uint32_t, std::uint8_t>;  // worker, mode

struct OutlierState {
  std::map<HistoryKey, StepHistory> histories;

  template <typename A>
  friend void io(A& a, OutlierState& s) {
    io_all(a, s.histories);
  }
};

/// Where and when a judgement stands.
Place place_of(const StepOutlierConfig& cfg, const HistoryKey& who, const StepHistory& history) {
  Place place = at_step(static_cast<core::Mode>(who.second), history.last_step(),
                        history.last_global, history.last_end);
  if (cfg.every == 0) {
    place.step_clock = false;
    place.time = history.period_end;
    place.first_time = distance(history.period_end, cfg.scan_interval.count());
  }
  return place;
}

/// The newest of the longest: (step, median and most of what the other workers took).
core::ValueList elsewhere(const OutlierState& state, const HistoryKey& who,
                          const std::vector<TakenTime>& outliers) {
  constexpr std::size_t kCompared = 10;
  core::ValueList out;
  for (std::size_t i = 0; i < std::min(outliers.size(), kCompared); ++i) {
    std::vector<double> others;
    for (const auto& [key, history] : state.histories) {
      if (key.second != who.second || key.first == who.first || history.ring.empty()) continue;
      if (const auto seconds = history.of(outliers[i].step)) others.push_back(*seconds);
    }
    if (others.empty()) continue;
    std::sort(others.begin(), others.end());
    out.emplace_back(core::ValueMap{{"step", outliers[i].step},
                                    {"workers", std::uint64_t{others.size()}},
                                    {"median_seconds", quantile(others, 0.5)},
                                    {"max_seconds", others.back()}});
  }
  return out;
}

/// Seconds of each span in the outliers, longest first.
core::ValueMap active_in(const StepHistory& history, const std::vector<TakenTime>& outliers,
                         const Scope& scope) {
  constexpr std::size_t kNamed = 10;
  std::map<std::uint64_t, double> seconds;
  for (const LongStep& one : history.longest) {
    const bool outlier = std::any_of(outliers.begin(), outliers.end(), [&](const TakenTime& time) {
      return time.step == one.time.step;
    });
    if (!outlier) continue;
    for (const auto& [name, ns] : one.active.spans) {
      seconds[name] += static_cast<double>(ns) / kNsPerSecond;
    }
  }
  std::vector<std::pair<double, std::string>> ranked;
  ranked.reserve(seconds.size());
  for (const auto& [name, sum] : seconds) ranked.emplace_back(-sum, scope.text(name));
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > kNamed) ranked.resize(kNamed);
  core::ValueMap out;
  out.reserve(ranked.size());
  for (const auto& [minus, name] : ranked) {
    out.emplace_back(name, -minus);
  }
  return out;
}

struct StepOutlier {
  using Config = StepOutlierConfig;
  using Notes = SpanTimes;
  using State = OutlierState;
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"window", "every", "median_factor",
                                                     "min_excess_seconds", "min_excess_percent"};

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    std::optional<std::string> mode;
    if (preset == Preset::tocsin) {
      cfg.outliers = 5;
      cfg.every = 50;
      cfg.median_factor = 3;
      cfg.excess_seconds = 0.1;
      cfg.excess_percent = 20;
    }
    in.optional("stddev", cfg.stddev, config::between(std::uint32_t{1}, 1'000'000U),
                "a step is an outlier beyond this many standard deviations above the mean");
    in.optional("mode", mode, "TRAIN, EVAL, PREDICT or GLOBAL; null = each mode by itself");
    in.choices("mode", {"TRAIN", "EVAL", "PREDICT", "GLOBAL"});
    in.optional("n_outliers", cfg.outliers, config::at_least(std::uint32_t{1}),
                "largest number of outliers");
    read_scan_interval(in, cfg);
    in.optional(
        "window", cfg.window, config::between(std::uint32_t{0}, std::uint32_t{kWholeRun}),
        "number of newest steps to judge, more than 100; 0 = all of the run, at most 1000000");
    in.optional("every", cfg.every,
                "steps between two judgements; 0 = once per scan_interval_us of event time");
    in.optional("median_factor", cfg.median_factor, config::at_least(0.0),
                "an outlier is also longer than this many times the median; 0 = off");
    in.optional("min_excess_seconds", cfg.excess_seconds, config::at_least(0.0),
                "an outlier is also this many seconds longer than the median; 0 = off");
    in.optional(
        "min_excess_percent", cfg.excess_percent, config::between(0.0, 100.0),
        "least share of all time, in percent, that outliers take beyond the median; 0 = off");
    if (cfg.window != 0 && cfg.window <= kLeastSteps) {
      in.error("window", "window must be 0 or more than 100");
    }
    if (!mode) return;
    std::transform(mode->begin(), mode->end(), mode->begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    cfg.mode = core::mode_from(*mode);
    if (!cfg.mode) in.error("mode", "expected TRAIN, EVAL, PREDICT or GLOBAL");
  }

  static bool by_steps(const Config& cfg) { return cfg.every != 0; }

  static void completed(const Config& cfg, State& state, const TimedStep<Notes>& step,
                        Scope& scope) {
    if (cfg.mode && *cfg.mode != step.mode) return;
    for (const StepTime<Notes>& time : step.workers) {
      const HistoryKey who{time.worker, static_cast<std::uint8_t>(step.mode)};
      StepHistory& history = state.histories[who];
      if (cfg.every == 0) {
        const std::int64_t end = interval_end(time.end, cfg.scan_interval);
        if (history.period_end != INT64_MIN && end > history.period_end) {
          judge(cfg, state, who, history, scope);
        }
        history.period_end = std::max(history.period_end, end);
      }
      history.push({step.step, time.seconds()}, time.notes, cfg.most());
      history.last_end = time.end;
      history.last_global = time.global_step;
      if (cfg.every != 0 && history.seen % cfg.every == 0) judge(cfg, state, who, history, scope);
    }
  }

  static void forget(State& state, std::uint32_t worker) {
    std::erase_if(state.histories, [&](const auto& one) { return one.first.first == worker; });
  }

  static void finish(const Config& cfg, State& state, Scope& scope) {
    for (auto& [who, history] : state.histories) {
      if (history.seen > history.judged) judge(cfg, state, who, history, scope);
    }
  }

  static void judge(const Config& cfg, const State& state, const HistoryKey& who,
                    StepHistory& history, Scope& scope) {
    history.judged = history.seen;
    const Place place = place_of(cfg, who, history);
    Spread spread;
    Verdict verdict = kInsufficient;
    if (history.ring.size() > kLeastSteps) {
      spread = spread_of(cfg, history);
      const bool slow = cfg.excess_percent == 0 || spread.excess_percent > cfg.excess_percent;
      verdict = spread.outliers.size() > cfg.outliers && slow ? hit() : kOk;
    }
    judged_worker(scope, who.first, place, verdict, [&](const Subject& subject, unsigned) {
      return explain(cfg, state, who, history, spread, subject, scope);
    });
  }

  static Finding explain(const Config& cfg, const State& state, const HistoryKey& who,
                         const StepHistory& history, Spread& spread, const Subject& subject,
                         const Scope& scope) {
    const std::vector<double>& sorted = spread.sorted;
    const double p50 = quantile(sorted, 0.5);
    const std::size_t count = spread.outliers.size();
    std::stable_sort(spread.outliers.begin(), spread.outliers.end(),
                     [](const TakenTime& a, const TakenTime& b) { return a.seconds > b.seconds; });
    if (count > kMostListed) spread.outliers.resize(kMostListed);
    core::ValueList steps;
    core::ValueList seconds;
    for (const TakenTime& one : spread.outliers) {
      steps.emplace_back(one.step);
      seconds.emplace_back(one.seconds);
    }
    Finding finding = Finding::that("outliers", static_cast<double>(count));
    finding.is(">", "n_outliers", cfg.outliers)
        .titled(sentence("some steps of {}", subject.worker), Verb::are,
                "far slower than the others")
        .says(sentence("{} of the last {} {} steps of {} took longer than {}, at most {}; the "
                       "median is {} (limit: {} such steps).",
                       count, sorted.size(), core::to_string(subject.mode), subject.worker,
                       duration_text(spread.limit), duration_text(sorted.back()),
                       duration_text(p50), cfg.outliers))
        .advises(
            "Find what these steps have in common. Most probable first: a checkpoint; an "
            "evaluation; garbage collection; a slow file; another process on the machine.")
        .with("mean_seconds", spread.mean)
        .with("sigma_seconds", spread.sigma)
        .with("limit_seconds", spread.limit)
        .with("p50_seconds", p50)
        .with("p95_seconds", quantile(sorted, 0.95))
        .with("p99_seconds", quantile(sorted, 0.99))
        .with("max_seconds", sorted.back())
        .with("excess_percent", spread.excess_percent)
        .with("outlier_steps", std::move(steps))
        .with("outlier_seconds", std::move(seconds));
    if (auto active = active_in(history, spread.outliers, scope); !active.empty()) {
      finding.with("active_seconds", std::move(active));
    }
    if (auto others = elsewhere(state, who, spread.outliers); !others.empty()) {
      finding.with("other_workers", std::move(others));
    }
    return std::move(finding.since(history.at(0).step, sorted.size()));
  }
};

}  // namespace

RuleDescriptor step_outlier() {
  return {.name = "step_outlier",
          .original_name = "StepOutlier",
          .title = "Too many steps take far longer than the others.",
          .unit = "window",
          .needs = "step ends",
          .presets =
              "tocsin asks for more than 5 outliers, judged every 50 steps. Each is also longer "
              "than 3 times the median and by 0.1 s, and together they take more than 20 % of the "
              "time beyond it. original asks for more than 10 steps beyond 3 standard deviations, "
              "for which an occasional checkpoint is enough.",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kProfiler,
          .read = &read_timed_rule<StepOutlier>};
}

}  // namespace tocsin::rules
