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

#include <cmath>

#include "rules/builtin/shared/rate_decay.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct LearningRateDecay {
  static constexpr std::span<const std::string_view> kKinds{};
  struct Config {
    double updates = 50;
    double share = 0.0625;
    std::int64_t zero_updates = 20;
  };
  /// One optimizer's rate.
  struct State {
    RateDecay rate;
    std::int64_t zero = RateDecay::kNever;  // since when it is 0, after it was above
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("updates", cfg.updates, config::greater_than(0.0),
                "least worth of a training, in updates at the largest rate");
    in.optional("share", cfg.share, config::between(1e-6, 0.5),
                "share of the largest rate at which the decay is judged");
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
    state.rate.take(step, rate, cfg.share);
    if (rate > 0 || state.rate.largest == 0) {
      state.zero = RateDecay::kNever;
    } else if (state.zero == RateDecay::kNever) {
      state.zero = step;
    }
    return changes_nothing(cfg, state) || state.rate.too_soon(cfg.updates) ? hit() : kOk;
  }

  static bool changes_nothing(const Config& cfg, const State& state) {
    return state.zero != RateDecay::kNever && state.rate.step - state.zero >= cfg.zero_updates;
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject) {
    if (changes_nothing(cfg, state)) return explain_zero(cfg, state, subject);
    Finding finding = Finding::that("updates_at_the_largest_rate", state.rate.total);
    return finding.is("<", "updates", cfg.updates)
        .titled(subject.name, Verb::is, "decaying too fast")
        .says(sentence(
            "{} fell from {} to {} within {} updates (by step {}). At this pace, the whole "
            "training is worth {} updates at the largest rate (expected: at least {}).",
            subject.name, state.rate.largest, state.rate.current,
            state.rate.step - state.rate.start, subject.step, state.rate.total, cfg.updates))
        .advises(
            "Most probable: a schedule meant for epochs steps at each batch. Call scheduler.step() "
            "once per epoch, or give it the number of updates.")
        .since(state.rate.start, state.rate.values)
        .with("largest", state.rate.largest)
        .with("value", state.rate.current)
        .with("half_of_the_way", state.rate.half)
        .with("end", state.rate.end);
  }

  static Finding explain_zero(const Config& cfg, const State& state, const Subject& subject) {
    const std::int64_t count = state.rate.step - state.zero;
    Finding finding = Finding::that("updates_at_rate_0", static_cast<double>(count));
    return finding.is(">=", "zero_updates", static_cast<double>(cfg.zero_updates))
        .says(sentence("{} is 0 since step {}, but training continues: {} updates until step {} "
                       "have changed nothing.",
                       subject.name, state.zero, count, subject.step))
        .advises(
            "Give the schedule the number of updates. If it counts epochs, call scheduler.step() "
            "once per epoch. Or end the training here.")
        .since(state.zero, state.rate.values)
        .with("largest", state.rate.largest)
        .with("value", state.rate.current);
  }
};

}  // namespace

RuleDescriptor learning_rate_decay() {
  return {.name = "learning_rate_decay",
          .original_name = "LearningRateDecay",
          .title = "The learning rate decays before the model can learn.",
          .unit = "series",
          .needs = "the scalar learning_rate, which the hook sends",
          .presets = "",
          .severity = core::Severity::error,
          .version = "2",
          .groups = group::kPyTorch,  // of the default rules `budget` tells it
          .read = &read_series_rule<LearningRateDecay>};
}

}  // namespace tocsin::rules
