// Fires when one of several losses of a step has all but won: a discriminator that is never fooled, a
// generator that has nothing left to learn from.
//
// Reads   scalars with role loss in train and global, at least two of them at a step.
// Window  medians of the latest 5 values of each; three steps in a row (min_hits 3).
// Fires   smallest median < ratio_threshold (0.02) · largest median.
// Quiet   for a single loss, until each has 5 values, while one of those is no finite number, for
//         losses that have ever been negative (of those a small one passes through zero), for losses that were as
//         unequal from the start: those are weighted so; and where one is of a policy or of values (is_of_policy).
// Source  our own; docs/rules/adversarial_imbalance.md.

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct AdversarialImbalance {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::uint32_t kMedian = 5;
  static constexpr std::uint64_t kGroup = 0;  // name of the losses of a mode, together

  struct Config {
    double ratio_threshold = 0.02;
    bool balanced_first = true;
  };
  struct Loss {
    std::array<double, kMedian> values{};
    std::uint32_t seen = 0;
    std::uint32_t negative = 0;  // 1: a value was
    double first = 0;

    void take(double value) {
      if (seen == 0) first = value;
      if (value < 0) negative = 1;
      values[seen++ % kMedian] = value;
    }
    [[nodiscard]] bool complete() const {
      return seen >= kMedian && std::all_of(values.begin(), values.end(),
                                            [](double value) { return std::isfinite(value); });
    }
    [[nodiscard]] double median() const {
      std::array<double, kMedian> sorted = values;
      std::nth_element(sorted.begin(), sorted.begin() + kMedian / 2, sorted.end());
      return sorted[kMedian / 2];
    }
  };
  struct State {
    std::uint32_t row = 0;  // steps in a row below
    std::uint32_t losses = 0;
    std::int64_t since = 0;
    double smallest = 0;
    double largest = 0;
  };
  /// What the losses of one step come to.
  struct Compared {
    std::uint32_t losses = 0;
    bool complete = true;  // each has its median
    bool positive = true;  // none was ever below 0
    bool policy = false;   // one is of learning by reward
    std::string_view small_name;
    std::string_view large_name;
    double smallest = HUGE_VAL;
    double largest = -HUGE_VAL;
    double small_fall = 0;
    double large_fall = 0;
    double first_smallest = HUGE_VAL;
    double first_largest = 0;
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes, .roles = {core::Role::loss}, .min_hits = 3};
  }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("ratio_threshold", cfg.ratio_threshold, config::greater_than(0.0),
                "smallest ratio of the smallest loss to the largest");
    in.optional("balanced_first", cfg.balanced_first,
                "ignore losses that were as unequal at their start, and those that do not move "
                "against each other: parts of one loss, several metrics");
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    const auto mode = static_cast<std::uint8_t>(point.mode);
    Compared all;
    for (const ReadSeries& one : read_series(point, {})) {
      if (!one.trains || one.grows || one.name.counts_samples) continue;
      ++all.losses;
      all.policy = all.policy || is_of_policy(one.value->text);
      Loss* loss = memory.of<Loss>({one.value->name, mode});
      if (loss == nullptr) {
        all.complete = false;
        continue;
      }
      loss->take(one.value->value);
      compare(all, *loss, one.value->text);
    }
    if (all.losses < 2) return;
    State* state = memory.of<State>({kGroup, static_cast<std::uint8_t>(mode | 0x80)});
    if (state == nullptr) return;
    const Verdict verdict = judge(cfg, *state, all, point.step);
    const auto why = [&](const Subject& subject, unsigned) {
      return explain(cfg, *state, all, subject);
    };
    report.evaluated({kGroup, mode}, "losses", verdict, point, why);
  }

  static void on_pass(const Config&, SeriesMemory&, const StepPoint&, SeriesReport&) {}

  static void compare(Compared& all, const Loss& loss, std::string_view name) {
    all.first_smallest = std::min(all.first_smallest, loss.first);
    all.first_largest = std::max(all.first_largest, loss.first);
    if (!loss.complete()) {
      all.complete = false;
      return;
    }
    const double median = loss.median();
    all.positive = all.positive && loss.negative == 0;
    const double fall = loss.first - median;
    // Of equal ones those that stand most clearly against each other, in whatever order they come.
    if (median < all.smallest || (median == all.smallest && fall > all.small_fall)) {
      all.smallest = median;
      all.small_fall = fall;
      all.small_name = name;
    }
    if (median > all.largest || (median == all.largest && fall < all.large_fall)) {
      all.largest = median;
      all.large_fall = fall;
      all.large_name = name;
    }
  }

  static Verdict judge(const Config& cfg, State& state, const Compared& all, std::int64_t step) {
    if (!all.complete) return kInsufficient;
    if (!all.positive || all.policy) return kNotApplicable;
    if (cfg.balanced_first && all.first_smallest < cfg.ratio_threshold * all.first_largest) {
      return kNotApplicable;
    }
    state.smallest = all.smallest;
    state.largest = all.largest;
    state.losses = all.losses;
    const bool opposed = !cfg.balanced_first || (all.small_fall > 0 && all.large_fall <= 0);
    if (!opposed || !(all.smallest < cfg.ratio_threshold * all.largest)) {
      state.row = 0;
      return kOk;
    }
    if (state.row++ == 0) state.since = step;
    return hit();
  }

  static Finding explain(const Config& cfg, const State& state, const Compared& all,
                         const Subject& subject) {
    return Finding::that("ratio", state.smallest / state.largest)
        .is("<", "ratio_threshold", cfg.ratio_threshold)
        .titled(all.small_name, Verb::has, "nearly won")
        .says(sentence("{} has nearly won: its median is {}, that of {} is {} ({} steps in a row, "
                       "up to {} step {}).",
                       all.small_name, state.smallest, all.large_name, state.largest, state.row,
                       core::to_string(subject.mode), subject.step))
        .advises(
            "Balance the two sides: lower the learning rate or make fewer updates of the winner, "
            "add label smoothing or noise to a discriminator, or change the loss.")
        .since(state.since, state.row)
        .with("smallest", std::string(all.small_name))
        .with("largest", std::string(all.large_name))
        .with("losses", std::uint64_t{state.losses});
  }
};

}  // namespace

RuleDescriptor adversarial_imbalance() {
  return {.name = "adversarial_imbalance",
          .original_name = "AdversarialImbalance",
          .title = "One of several opposed losses has nearly won.",
          .unit = "series",
          .needs = "collection losses, several of them at a step",
          .presets = "",
          .severity = core::Severity::info,
          .version = "5",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_series_rule<AdversarialImbalance>};
}

}  // namespace tocsin::rules
