// Fires when the learning rate is gone before anything can be learned: a schedule of epochs that steps at each update.
//
// Reads   scalars named learning_rate (the hook sends them when they change), of each optimizer, in train and global.
// Window  since the start of the attempt, O(1) state per series.
// Fires   the rate has decayed geometrically to `share` (1/16) of its largest, and all updates of this training, those to
//         come among them, are worth fewer than `updates` (50) at the largest rate. Geometrically: from the largest rate to
//         √share of it, and from there to share of it, take equally many updates, by a factor of 1.5.
//         Or the rate has been exactly 0 for `zero_updates` (20) updates, after it was above 0: they change nothing.
// Quiet   for rates that end (linear, cosine, polynomial to zero): they take less time for the second part. Where the
//         training was resumed after `updates` updates, and when the rate rises again: it is judged anew.
// Source  our own; docs/rules/learning_rate_decay.md.

#include <algorithm>
#include <cmath>

#include "rules/rule.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

struct LearningRateDecay {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr double kEven =
      1.5;  // the longer by the shorter part of a geometric decay, at most
  static constexpr std::int64_t kNever = -1;

  struct Config {
    double updates = 50;
    double share = 0.0625;
    std::int64_t zero_updates = 20;
  };
  /// One optimizer's rate.
  struct State {
    double largest = 0;
    double current = 0;
    double worth = 0;            // updates since the first value, in those at the largest rate
    double total = 0;            // with those before and to come; known when the rate has decayed
    std::int64_t before = 0;     // updates before the first value
    std::int64_t step = 0;       // of the current value
    std::int64_t start = 0;      // since when the rate is at its largest
    std::int64_t half = kNever;  // where it was √share of the largest: half of the way in powers
    std::int64_t end = kNever;   // where it was share of it
    std::int64_t zero = kNever;  // since when it is 0, after it was above
    std::uint64_t values = 0;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("updates", cfg.updates, config::greater_than(0.0),
                "updates at the largest rate that a training should be worth");
    in.optional("share", cfg.share, config::between(1e-6, 0.5),
                "of the largest rate, at which the decay is judged");
    in.optional("zero_updates", cfg.zero_updates, config::at_least<std::int64_t>(1),
                "updates at a rate of exactly 0, after it was above 0");
  }

  template <typename Own>
  static void adjust(const Config&, Own& program) {
    std::string error;
    if (program.selection.empty()) {
      program.selection.add_regex("(^|\\.)learning_rate$", error);
    }
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    for (const SeriesValue& one : point.values) {
      const SeriesKey key{one.name, static_cast<std::uint8_t>(point.mode)};
      State* state = memory.of<State>(key);
      if (state == nullptr) continue;
      const auto why = [&](const Subject& subject, unsigned) {
        return explain(cfg, *state, subject);
      };
      report.evaluated(key, one.text, judge(cfg, *state, point.step, one.value), point, why);
    }
  }

  static void on_pass(const Config&, SeriesMemory&, const StepPoint&, SeriesReport&) {}

  static Verdict judge(const Config& cfg, State& state, std::int64_t step, double rate) {
    if (!(rate >= 0 && std::isfinite(rate))) return kInsufficient;
    go_on(state, step);
    if (rate >= state.largest) {
      rise(state, step, rate);
    } else {
      fall(cfg, state, step, rate);
    }
    state.current = rate;
    ++state.values;
    if (rate > 0 || state.largest == 0) {
      state.zero = kNever;
    } else if (state.zero == kNever) {
      state.zero = step;
    }
    return changes_nothing(cfg, state) || decays_too_soon(cfg, state) ? hit() : kOk;
  }

  static bool changes_nothing(const Config& cfg, const State& state) {
    return state.zero != kNever && state.step - state.zero >= cfg.zero_updates;
  }

  static bool decays_too_soon(const Config& cfg, const State& state) {
    return state.end != kNever && state.total < cfg.updates && even(state);
  }

  /// The updates since the value before, at its rate.
  static void go_on(State& state, std::int64_t step) {
    if (state.values == 0) state.before = state.step = step;
    const double since = static_cast<double>(std::max<std::int64_t>(0, step - state.step));
    if (state.largest > 0) state.worth += since * state.current / state.largest;
    state.step = std::max(state.step, step);
  }

  static void rise(State& state, std::int64_t step, double rate) {
    if (state.largest > 0) state.worth *= state.largest / rate;
    if (rate > state.current) state.start = step;
    state.largest = rate;
    state.half = state.end = kNever;
  }

  static void fall(const Config& cfg, State& state, std::int64_t step, double rate) {
    const double middle = std::sqrt(cfg.share) * state.largest;
    if (rate > middle) {  // or again: then the way there begins anew
      state.half = state.end = kNever;
      return;
    }
    if (state.half == kNever) state.half = step;
    if (rate > cfg.share * state.largest || state.end != kNever) return;
    state.end = step;
    // What is to come is a geometric series: √share is what so many updates leave of a rate.
    const double length = static_cast<double>(state.end - state.half);
    state.total = static_cast<double>(state.before) + state.worth +
                  rate / state.largest * length / (-0.5 * std::log(cfg.share));
  }

  static bool even(const State& state) {
    const auto first = static_cast<double>(state.half - state.start);
    const auto second = static_cast<double>(state.end - state.half);
    return first > 0 && second > 0 && first <= kEven * second && second <= kEven * first;
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject) {
    if (changes_nothing(cfg, state)) return explain_zero(cfg, state, subject);
    Finding finding = Finding::that("updates_at_the_largest_rate", state.total);
    return finding.is("<", "updates", cfg.updates)
        .titled(subject.name, Verb::is, "decaying too fast")
        .says(sentence("{} has fallen from {} to {} within {} updates by step {}, and goes on so: "
                       "all updates of "
                       "this training together are worth {} at the largest rate.",
                       subject.name, state.largest, state.current, state.step - state.start,
                       subject.step, state.total))
        .advises(
            "A schedule that is meant for epochs most likely steps at each batch: call "
            "scheduler.step() once per epoch, or give it the number of updates.")
        .since(state.start, state.values)
        .with("largest", state.largest)
        .with("value", state.current)
        .with("half_of_the_way", state.half)
        .with("end", state.end);
  }

  static Finding explain_zero(const Config& cfg, const State& state, const Subject& subject) {
    const std::int64_t count = state.step - state.zero;
    Finding finding = Finding::that("updates_at_rate_0", static_cast<double>(count));
    return finding.is(">=", "zero_updates", static_cast<double>(cfg.zero_updates))
        .says(sentence("{} is 0 since step {}, and training goes on: {} updates until step {} have "
                       "changed nothing.",
                       subject.name, state.zero, count, subject.step))
        .advises(
            "The schedule has ended before the training: give it the number of updates, or call "
            "scheduler.step() once per epoch if it counts epochs. Or end the training here.")
        .since(state.zero, state.values)
        .with("largest", state.largest)
        .with("value", state.current);
  }
};

}  // namespace

RuleDescriptor learning_rate_decay() {
  return {.name = "learning_rate_decay",
          .original_name = "LearningRateDecay",
          .title = "The learning rate is gone before anything can be learned.",
          .unit = "series",
          .needs = "the scalar learning_rate, which the hook sends",
          .presets = "",
          .severity = core::Severity::error,
          .version = "2",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_series_rule<LearningRateDecay>};
}

}  // namespace tocsin::rules
