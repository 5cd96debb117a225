// Fires when a worker spends most of its steps waiting for data.
//
// Reads   start and end of steps, and the phase `data_wait` in them.
// Window  per worker, in train and global, the last `window` steps that everybody has ended.
// Fires   what the steps waited for data is more than `info_threshold` percent of their time (info),
//         or more than `threshold` percent (warning). Judged at every step once the window is full.
// Quiet   until a worker has told that phase once: a hook or a script does. From then on a step
//         without it has not waited.
// Source  ours; docs/rules/data_wait.md.

#include <algorithm>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/phase.h"
#include "rules/evaluate/timed.h"

namespace tocsin::rules {
namespace {

struct DataWaitConfig {
  double threshold = 80;  // percent of step time
  double info_threshold = 50;
  std::uint32_t window = 50;
};

struct Waiting {
  std::int64_t wait = 0;  // ns
  bool marked = false;

  static bool wants(const core::SpanRow& span) {
    return span.track == span_names().phase && span.name == span_names().data_wait;
  }
  void note(const core::SpanRow& span) {
    marked = true;
    wait = add(wait, core::Duration(span.duration));
  }
  template <typename A>
  friend void io(A& a, Waiting& w) {
    io_all(a, w.wait, w.marked);
  }
};

struct WaitedStep {
  std::int64_t step = 0;
  std::int64_t took = 0;  // ns
  std::int64_t waited = 0;
};

struct WaitWindow {
  std::vector<WaitedStep> steps;  // oldest first
  bool marked = false;

  template <typename A>
  friend void io(A& a, WaitWindow& w) {
    io_all(a, w.steps, w.marked);
  }
};

struct DataWaitState {
  std::map<std::pair<std::uint32_t, std::uint8_t>, WaitWindow> windows;

  template <typename A>
  friend void io(A& a, DataWaitState& s) {
    io_all(a, s.windows);
  }
};

struct DataWait {
  using Config = DataWaitConfig;
  using Notes = Waiting;
  using State = DataWaitState;
  static constexpr std::span<const std::string_view> kKinds{};

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::between(0.0, 100.0),
                "warn if waiting takes more than this percentage of the step time");
    in.optional("info_threshold", cfg.info_threshold, config::between(0.0, 100.0),
                "inform if it takes more than this percentage");
    in.optional("window", cfg.window, config::between(std::uint32_t{1}, 10'000U),
                "number of newest steps to judge; it waits until there are that many");
    if (cfg.info_threshold > cfg.threshold) {
      in.error("info_threshold", "info_threshold must not be above threshold");
    }
  }

  static bool by_steps(const Config&) { return true; }

  static void completed(const Config& cfg, State& state, const TimedStep<Notes>& step,
                        Scope& scope) {
    if (!trains(step.mode)) return;
    for (const StepTime<Notes>& time : step.workers) {
      WaitWindow& window = state.windows[{time.worker, static_cast<std::uint8_t>(step.mode)}];
      if (window.steps.size() == cfg.window) window.steps.erase(window.steps.begin());
      window.steps.push_back({step.step, distance(time.end, time.start), time.notes.wait});
      window.marked = window.marked || time.notes.marked;
      Place place = at_step(step.mode, step.step, time.global_step, time.end);
      judge(cfg, window, time.worker, place, scope);
    }
  }

  static void judge(const Config& cfg, const WaitWindow& window, std::uint32_t worker,
                    const Place& place, Scope& scope) {
    double waited = 0;  // ns: whole numbers, as long as nobody waits for months
    double all = 0;
    for (const WaitedStep& one : window.steps) {
      waited += static_cast<double>(one.waited);
      all += static_cast<double>(one.took);
    }
    const double share = 100 * waited / all;
    Verdict verdict = 100 * waited > cfg.info_threshold * all ? hit() : kOk;
    if (window.steps.size() < cfg.window || !window.marked) verdict = kInsufficient;
    judged_worker(scope, worker, place, verdict, [&](const Subject& subject, unsigned) {
      const bool most = share > cfg.threshold;
      Finding finding = Finding::that("data_wait_percent", share);
      finding
          .is(">", most ? "threshold" : "info_threshold", most ? cfg.threshold : cfg.info_threshold)
          .titled(subject.worker, Verb::is, "waiting for data")
          .says(sentence(
              "{} waited for data during {} % of the time of its last {} {} steps (limit {} %).",
              subject.worker, share, window.steps.size(), core::to_string(subject.mode),
              most ? cfg.threshold : cfg.info_threshold))
          .advises(
              "Give the data loader more worker processes, prefetch, store decoded data in a fast "
              "format or cache, or move costly transformations to the accelerator.")
          .with("waited_seconds", waited / kNsPerSecond)
          .with("step_seconds", all / kNsPerSecond)
          .since(window.steps.front().step, window.steps.size());
      finding.severity = most ? core::Severity::warning : core::Severity::info;
      return finding;
    });
  }

  static void forget(State& state, std::uint32_t worker) {
    std::erase_if(state.windows, [&](const auto& one) { return one.first.first == worker; });
  }
  static void finish(const Config&, State&, Scope&) {}
};

}  // namespace

RuleDescriptor data_wait() {
  return {.name = "data_wait",
          .original_name = "DataWait",
          .title = "A worker spends most of its time waiting for data.",
          .unit = "window",
          .needs = "step ends with the phase data_wait",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kProfiler,
          .read = &read_timed_rule<DataWait>};
}

}  // namespace tocsin::rules
