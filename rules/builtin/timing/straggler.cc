// Fires when one worker is much slower than the others.
//
// Reads   start and end of steps of all workers, and the phases data_wait, forward, backward, optimizer
//         and communication in them.
// Window  in train and global, the last `window` steps that everybody has ended. Compared are the workers that
//         took part in the newest of them and have that many.
// Fires   the median of one worker > threshold × the median over the workers' medians. Compared is
//         the time that they take by themselves (waiting for data, forward, backward and optimizer,
//         less the communication inside these) when all of them mark phases, else the whole step. Where
//         workers wait for each other inside backward and nobody marks that as communication there, a
//         straggler's forward stands for it too.
// Judged  at every completed step, once two workers have a full window.
// Quiet   with one worker.
// Source  ours; docs/rules/straggler.md.

#include <algorithm>
#include <array>
#include <map>

#include "rules/contract/quantity.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/phase.h"
#include "rules/evaluate/timed.h"

namespace tocsin::rules {
namespace {

constexpr double kForwardCounts = 0.1;  // least share of what a step computes

struct StragglerConfig {
  double threshold = 1.5;
  std::uint32_t window = 50;
};

/// Where a worker computed and where it communicated within a step.
struct ComputeNotes {
  struct Stretch {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  static constexpr std::size_t kMostStretches = 256;

  std::vector<Stretch> compute;
  std::vector<Stretch> communication;
  std::int64_t forward = 0;  // ns
  // Of the other sections, ns: waiting for data, backward, optimizer, communication.
  std::array<std::int64_t, 4> others{};
  bool computes = false;  // more was told than that data were waited for

  static bool wants(const core::SpanRow& span) {
    const SpanNames& names = span_names();
    return span.track == names.phase &&
           (span.name == names.data_wait || span.name == names.forward ||
            span.name == names.backward || span.name == names.optimizer ||
            span.name == names.communication);
  }
  void note(const core::SpanRow& span) {
    const SpanNames& names = span_names();
    const core::Duration took(span.duration);
    if (span.name == names.forward) forward = add(forward, took);
    const std::array told{names.data_wait, names.backward, names.optimizer, names.communication};
    for (std::size_t i = 0; i < told.size(); ++i) {
      if (span.name == told[i]) others[i] = add(others[i], took);
    }
    computes = computes || span.name != names.data_wait;
    auto& into = span.name == names.communication ? communication : compute;
    if (into.size() < kMostStretches) into.push_back({span.start, add(span.start, took)});
  }
  /// Nanoseconds of communication inside of what the worker does by itself.
  [[nodiscard]] double waited() const {
    double sum = 0;
    for (const Stretch& own : compute) {
      for (const Stretch& other : communication) {
        const std::int64_t from = std::max(own.from, other.from);
        const std::int64_t to = std::min(own.to, other.to);
        if (to > from) sum += static_cast<double>(distance(to, from));
      }
    }
    return sum;
  }
  /// Seconds of work that waited for nobody.
  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const Stretch& own : compute) sum += static_cast<double>(distance(own.to, own.from));
    return std::max(sum - waited(), 0.0) / kNsPerSecond;
  }
  template <typename A>
  friend void io(A& a, ComputeNotes& n) {
    io_all(a, n.compute, n.communication, n.forward, n.others, n.computes);
  }
};

/// Median: of an even number the mean of the two in the middle.
double middle(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

enum Measure : std::size_t {
  kWholeStep,
  kComputeTime,
  kForwardPass,
  kDataWait,
  kBackwardPass,
  kOptimizerUpdate,
  kCommunication,
  kMeasures
};
constexpr std::array<std::string_view, kMeasures> kMeasureNames{
    "step", "compute", "forward", "data_wait", "backward", "optimizer", "communication"};

struct WorkedStep {
  std::array<double, kMeasures> seconds{};
  bool phases = false;
  bool communicates = false;
};

struct WorkWindow {
  std::vector<WorkedStep> ring;
  std::uint64_t next = 0;
  std::array<double, 3> best{};  // its lowest median so far: of step, compute, forward; 0: none yet

  template <typename A>
  friend void io(A& a, WorkWindow& w) {
    io_all(a, w.ring, w.next, w.best);
  }

  void remember(Measure measure, double median) {
    best[measure] = best[measure] > 0 ? std::min(best[measure], median) : median;
  }

  void push(const WorkedStep& step, std::size_t most) {
    if (ring.size() < most) {
      ring.push_back(step);
      return;
    }
    ring[next] = step;
    next = (next + 1) % ring.size();
  }
  [[nodiscard]] double median(Measure measure, std::vector<double>& scratch) const {
    scratch.clear();
    for (const WorkedStep& one : ring) scratch.push_back(one.seconds[measure]);
    return middle(scratch);
  }
};

struct StragglerState {
  std::map<std::pair<std::uint32_t, std::uint8_t>, WorkWindow> windows;

  template <typename A>
  friend void io(A& a, StragglerState& s) {
    io_all(a, s.windows);
  }
};

/// Workers' medians of one measure, and the median of these.
struct Comparison {
  std::vector<double> medians;
  double usual = 0;
};

struct Straggler {
  using Config = StragglerConfig;
  using Notes = ComputeNotes;
  using State = StragglerState;
  static constexpr std::span<const std::string_view> kKinds{};

  static Defaults defaults(Preset) { return {.selects = false}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::greater_than(1.0),
                "largest time of a worker, as a multiple of the median of the workers");
    in.optional("window", cfg.window, config::between(std::uint32_t{1}, 10'000U),
                "number of newest steps to judge; it waits until there are that many");
  }

  static bool by_steps(const Config&) { return true; }

  static void completed(const Config& cfg, State& state, const TimedStep<Notes>& step,
                        Scope& scope) {
    if (!trains(step.mode)) return;
    std::vector<WorkWindow*> windows;  // of those that are compared
    std::vector<const StepTime<Notes>*> compared;
    for (const StepTime<Notes>& time : step.workers) {
      WorkWindow& window = state.windows[{time.worker, static_cast<std::uint8_t>(step.mode)}];
      WorkedStep worked;
      worked.phases = time.notes.computes && !time.notes.compute.empty();
      worked.communicates = time.notes.waited() > 0;
      worked.seconds = {time.seconds(), time.notes.seconds(),
                        static_cast<double>(time.notes.forward) / kNsPerSecond};
      for (std::size_t i = 0; i < time.notes.others.size(); ++i) {
        worked.seconds[kDataWait + i] = static_cast<double>(time.notes.others[i]) / kNsPerSecond;
      }
      window.push(worked, cfg.window);
      if (window.ring.size() < cfg.window) {
        judge(cfg, time, step, kInsufficient, kWholeStep, {}, 0, scope, {});
        continue;
      }
      windows.push_back(&window);
      compared.push_back(&time);
    }
    if (windows.empty()) return;
    if (windows.size() == 1) {
      const Verdict alone = step.workers.size() == 1 ? kNotApplicable : kInsufficient;
      return judge(cfg, *compared[0], step, alone, kWholeStep, {}, 0, scope, {});
    }
    compare(cfg, windows, compared, step, scope);
  }

  static Comparison medians_of(const std::vector<WorkWindow*>& windows, Measure measure) {
    Comparison out;
    std::vector<double> scratch;
    for (const WorkWindow* one : windows) out.medians.push_back(one->median(measure, scratch));
    scratch = out.medians;
    out.usual = middle(scratch);
    return out;
  }

  static void compare(const Config& cfg, const std::vector<WorkWindow*>& windows,
                      const std::vector<const StepTime<Notes>*>& compared,
                      const TimedStep<Notes>& step, Scope& scope) {
    bool phases = true;
    bool communicates = false;
    for (const WorkWindow* one : windows) {
      for (const WorkedStep& worked : one->ring) {
        phases = phases && worked.phases;
        communicates = communicates || worked.communicates;
      }
    }
    const Measure main = phases ? kComputeTime : kWholeStep;
    const Comparison whole = medians_of(windows, main);
    Comparison forward;
    if (phases && !communicates) forward = medians_of(windows, kForwardPass);
    const bool has_forward = !forward.medians.empty();
    for (std::size_t i = 0; i < windows.size(); ++i) {
      windows[i]->remember(main, whole.medians[i]);
      if (has_forward) windows[i]->remember(kForwardPass, forward.medians[i]);
    }
    for (std::size_t i = 0; i < compared.size(); ++i) {
      const bool slow = whole.medians[i] > cfg.threshold * whole.usual;
      const bool slow_forward = has_forward && forward.usual > kForwardCounts * whole.usual &&
                                forward.medians[i] > cfg.threshold * forward.usual;
      const bool by_forward = slow_forward && !slow;
      judge(cfg, *compared[i], step, slow || slow_forward ? hit() : kOk,
            by_forward ? kForwardPass : main, by_forward ? forward : whole, i, scope, windows);
    }
  }

  static void judge(const Config& cfg, const StepTime<Notes>& time, const TimedStep<Notes>& step,
                    Verdict verdict, Measure measure, const Comparison& among, std::size_t number,
                    Scope& scope, const std::vector<WorkWindow*>& windows) {
    Place place = at_step(step.mode, step.step, time.global_step, time.end);
    judged_worker(scope, time.worker, place, verdict, [&](const Subject& subject, unsigned) {
      const double own = among.medians[number];
      const std::string_view name = kMeasureNames[measure];
      Finding finding = Finding::that("ratio", own / among.usual);
      finding.is(">", "threshold", cfg.threshold)
          .titled(subject.worker, Verb::is, "slower than the other workers")
          .says(sentence("{} takes {} for {}, {} times the median of the {} workers ({}), over {} "
                         "{} steps (limit: {} times).",
                         subject.worker, duration_text(own),
                         measure == kWholeStep ? "a step" : spoken_of(measure), own / among.usual,
                         among.medians.size(), duration_text(among.usual), cfg.window,
                         core::to_string(subject.mode), cfg.threshold))
          .advises(
              "The others wait for it at each step. Check its node (clock rate, temperature, other "
              "processes, network), and whether it gets more or longer data than the others.")
          .with("measure", std::string(name))
          .with("median_seconds", own)
          .with("workers_median_seconds", among.usual)
          .with("workers", std::uint64_t{among.medians.size()})
          .with("score", *std::min_element(among.medians.begin(), among.medians.end()) / own)
          .with("own_best_seconds", windows[number]->best[measure])
          .with("own_score", windows[number]->best[measure] / own);
      if (measure != kWholeStep) finding.with("sections", sections(windows, number));
      const auto least = std::int64_t{cfg.window} - 1;
      return std::move(
          finding.since(std::max<std::int64_t>(distance(step.step, least), 0), cfg.window));
    });
  }

  // Of each section in which somebody spends time: the worker's median, that of the quickest worker, and what
  // share of its own the quickest takes.
  static core::ValueMap sections(const std::vector<WorkWindow*>& windows, std::size_t number) {
    core::ValueMap out;
    for (const Measure one :
         {kDataWait, kForwardPass, kBackwardPass, kOptimizerUpdate, kCommunication}) {
      const Comparison among = medians_of(windows, one);
      const double own = among.medians[number];
      const double best = *std::min_element(among.medians.begin(), among.medians.end());
      if (own <= 0) continue;
      out.emplace_back(
          std::string(kMeasureNames[one]),
          core::ValueMap{{"median_seconds", own}, {"best_seconds", best}, {"score", best / own}});
    }
    return out;
  }

  static std::string_view spoken_of(Measure measure) {
    return measure == kForwardPass ? "the forward pass of a step" : "its computation in a step";
  }

  static void forget(State& state, std::uint32_t worker) {
    std::erase_if(state.windows, [&](const auto& one) { return one.first.first == worker; });
  }
  static void finish(const Config&, State&, Scope&) {}
};

}  // namespace

RuleDescriptor straggler() {
  return {.name = "straggler",
          .original_name = "Straggler",
          .title = "One worker is much slower than the others.",
          .unit = "worker",
          .needs = "step ends of at least two workers",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kProfiler,
          .read = &read_timed_rule<Straggler>};
}

}  // namespace tocsin::rules
