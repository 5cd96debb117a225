// Fires when a loss stops falling, jumps up, or loses what it had gained.
//
// Reads   scalars with role loss (and what the user selects), averaged over workers.
// Window  since the start of the attempt, O(1) state per series.
// Fires   preset tocsin, on points num_steps apart (each the mean of the losses since the last),
//         v = median of the last 5, first = first v, best = least v so far:
//           stuck  no improvement of 1 % of |best| over 4 points, and best > 0.9 · first
//           early  a point > 2 · |first point|
//           rise   v > best + 0.5 · max(|best|, 0.5 · |first|) for 3 points
//           lost   once first − best > 0.05 · |first|: median of 3 > best + 0.5 · (first − best)
//                  for 2 points
//         preset original, every num_steps steps against the value at least that many steps before:
//           plateau   fall of 0 … diff_percent
//           increase  rise of more than increase_threshold_percent
//           stuck     with flat_evaluations = k: none of the last k brought diff_percent
// Quiet   until the medians are full; for values that are not finite; preset tocsin also when a
//         step has several losses (adversarial training).
// Source  Amazon SageMaker Debugger, LossNotDecreasing; docs/rules/loss_not_decreasing.md.

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/builtin/loss_curve.h"
#include "rules/rule.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLossKinds[] = {"plateau", "increase", "stuck", "early", "rise", "lost"};

struct LossNotDecreasing {
  static constexpr std::span<const std::string_view> kKinds = kLossKinds;
  static constexpr std::string_view kExtensions[] = {"flat_evaluations"};
  static constexpr std::size_t kHistory = 64;
  static constexpr std::size_t kTail = 20;

  struct Config {
    bool original = false;
    bool use_losses_collection = true;
    std::int64_t num_steps = 10;
    double diff_percent = 0.1;
    double increase_threshold_percent = 5;
    std::optional<std::string> mode;
    std::uint32_t flat_evaluations = 0;
  };
  using Saved = LossPoint;
  /// Which modes have been evaluated: without `mode`, only the first of eval, train, global may
  /// hit.
  struct Shared {
    std::uint8_t evaluated = 0;
  };
  struct State : LossCurve {
    // original: the saved values since the last evaluation, oldest first; enough to find the newest
    // one at least num_steps back.
    std::array<Saved, kHistory> history{};
    std::uint32_t kept = 0;
    bool anchored = false;
    std::int64_t evaluated = 0;
    std::array<double, kHistory> reference{};  // of the latest evaluations, for flat_evaluations
    std::array<double, kHistory> loss{};
    std::uint32_t row = 0;  // evaluations without a break
    // evidence
    std::array<Saved, kTail> tail{};
    std::uint32_t tail_size = 0;
    Saved before{};
    double change = 0;
    double limit = 0;
  };

  static Defaults defaults(Preset) { return {}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.original = preset == Preset::original;
    in.optional("use_losses_collection", cfg.use_losses_collection, "add the collection losses");
    in.optional("num_steps", cfg.num_steps, config::at_least(std::int64_t{1}),
                "steps between two evaluations");
    in.optional("diff_percent", cfg.diff_percent, config::between(0.0, 99.999999),
                "original: least fall in percent");
    in.optional("increase_threshold_percent", cfg.increase_threshold_percent,
                config::greater_than(0.0), "original: rise in percent that is too much");
    in.optional("mode", cfg.mode,
                "original: EVAL, TRAIN or GLOBAL; unset: the first that has data");
    in.optional("flat_evaluations", cfg.flat_evaluations,
                config::between(std::uint32_t{0}, std::uint32_t{kHistory}),
                "original: evaluations without a fall of diff_percent; 0 = off");
    if (!cfg.mode) return;
    std::string lower = *cfg.mode;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    if (lower != "eval" && lower != "train" && lower != "global") {
      in.error("mode", "mode must be EVAL, TRAIN or GLOBAL");
    }
    cfg.mode = lower;
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  static void adjust(const Config& cfg, Program& program) {
    if (cfg.use_losses_collection || program.selection.empty()) {
      program.selection.add_collection("losses");
    }
    if (!program.common.modes.empty()) return;
    if (!cfg.original) {
      program.common.mode_mask = kTrainModes;
    } else if (cfg.mode) {
      program.common.mode_mask = mode_bit(core::mode_from(*cfg.mode).value_or(core::Mode::train));
    } else {
      program.common.mode_mask = kTrainModes | mode_bit(core::Mode::eval);
    }
  }

  // ------------------------------------------------------------------------------- original

  static std::optional<Verdict> judge_original(const Config& cfg, State& state, std::int64_t step,
                                               double loss) {
    if (!state.anchored) {
      state.anchored = true;
      state.evaluated = step;
      state.history[0] = {step, loss};
      state.kept = 1;
      return kInsufficient;
    }
    if (distance(step, state.evaluated) < cfg.num_steps) {
      if (state.kept < kHistory) state.history[state.kept++] = {step, loss};
      return std::nullopt;  // not due
    }
    state.before = state.history[0];
    for (std::uint32_t i = 0; i < state.kept; ++i) {
      if (distance(step, state.history[i].step) >= cfg.num_steps) state.before = state.history[i];
    }
    state.now = {step, loss};
    state.evaluated = step;
    state.history[0] = state.now;
    state.kept = 1;
    return compare(cfg, state);
  }

  static Verdict compare(const Config& cfg, State& state) {
    const double older = state.before.loss;
    const double newer = state.now.loss;
    state.change = 100 * (older - newer) / std::fabs(older);
    state.limit = cfg.diff_percent;
    if (!std::isfinite(older) || std::isnan(newer)) {
      state.row = 0;
      return kInsufficient;
    }
    if (newer == HUGE_VAL) return hit(kIncrease);
    if (older == 0) {
      state.row = 0;
      return newer > 0 ? hit(kIncrease) : kOk;
    }
    const bool stuck = flat_row(cfg, state, older, newer);
    if (state.change < 0) {
      if (-state.change > cfg.increase_threshold_percent) {
        state.limit = cfg.increase_threshold_percent;
        return hit(kIncrease);
      }
    } else if (state.change == 0 || state.change < cfg.diff_percent) {
      return hit(kPlateau);
    }
    return stuck ? hit(kStuck) : kOk;
  }

  // True when none of the last k evaluations fell by diff_percent below the reference of the first.
  static bool flat_row(const Config& cfg, State& state, double older, double newer) {
    const std::uint32_t k = cfg.flat_evaluations;
    if (k == 0) return false;
    state.reference[state.row % k] = older;
    state.loss[state.row % k] = newer;
    ++state.row;
    if (state.row < k) return false;
    const double reference = state.reference[state.row % k];  // of the oldest of the k
    for (std::uint32_t i = 0; i < k; ++i) {
      if (100 * (reference - state.loss[i]) / std::fabs(reference) >= cfg.diff_percent)
        return false;
    }
    return true;
  }

  // ---------------------------------------------------------------------------------- engine

  // Losses of another data set that a script logs in its training mode.
  static bool foreign(std::string_view name) {
    for (const std::string_view part : {"val_", "val/", "eval_", "eval/", "test_", "test/"}) {
      if (name.find(part) != std::string_view::npos) return true;
    }
    return name == "error" || name == "merror" || name.ends_with("-error") ||
           name.ends_with("-merror");
  }

  static void remember(State& state, std::int64_t step, double loss) {
    std::rotate(state.tail.begin(), state.tail.begin() + 1, state.tail.end());
    state.tail.back() = {step, loss};
    if (state.tail_size < kTail) ++state.tail_size;
  }

  static bool may_hit(const Config& cfg, const Shared& shared, core::Mode mode) {
    if (!cfg.original || cfg.mode) return true;
    for (const core::Mode first : {core::Mode::eval, core::Mode::train, core::Mode::global}) {
      if ((shared.evaluated & mode_bit(first)) != 0) return first == mode;
    }
    return false;
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    std::size_t own = 0;
    for (const SeriesValue& value : point.values) own += foreign(value.text) ? 0 : 1;
    for (const SeriesValue& value : point.values) {
      const SeriesKey key{value.name, static_cast<std::uint8_t>(point.mode)};
      auto* state = memory.of<State>(key);
      if (state == nullptr || (!cfg.original && foreign(value.text))) continue;
      remember(*state, point.step, value.value);
      std::optional<Verdict> verdict = kNotApplicable;
      if (cfg.original) {
        verdict = judge_original(cfg, *state, point.step, value.value);
        auto& shared = memory.shared<Shared>();
        if (verdict && (verdict->outcome == Outcome::ok || verdict->outcome == Outcome::hit)) {
          shared.evaluated = static_cast<std::uint8_t>(shared.evaluated | mode_bit(point.mode));
          if (!may_hit(cfg, shared, point.mode)) verdict = kNotApplicable;
        }
      } else if (own == 1) {
        verdict = state->judge(point.step, value.value, cfg.num_steps);
      }
      if (!verdict) continue;
      const auto why = [&](const Subject& subject, unsigned kind) {
        return explain(cfg, *state, subject, kind);
      };
      report.evaluated(key, value.text, *verdict, point, why);
    }
  }

  static void on_pass(const Config& cfg, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    on_step(cfg, memory, pass, report);
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject,
                         unsigned kind) {
    const std::string loss = sentence("{} ({})", subject.name, core::to_string(subject.mode));
    Finding finding =
        cfg.original ? explain_original(cfg, state, loss, kind) : explain_tocsin(state, loss, kind);
    finding.advises(kind == kPlateau || kind == kStuck
                        ? "Check the learning rate (too low or far too high), that gradients reach "
                          "the layers, and that data and labels belong together."
                        : "Lower the learning rate or clip gradients, and look at what changed at "
                          "that step: schedule, data, or a resumed checkpoint.");
    core::ValueList tail;
    for (std::size_t i = kTail - state.tail_size; i < kTail; ++i) {
      tail.emplace_back(core::ValueList{state.tail[i].step, state.tail[i].loss});
    }
    return finding.with("tail", std::move(tail));
  }

  static Finding explain_original(const Config& cfg, const State& state, const std::string& loss,
                                  unsigned kind) {
    Finding finding;
    if (kind == kIncrease) {
      finding = Finding::that("rise_percent", -state.change);
      finding.is(">", "increase_threshold_percent", cfg.increase_threshold_percent)
          .says(sentence("{} has risen from {} at step {} to {} at step {}.", loss,
                         state.before.loss, state.before.step, state.now.loss, state.now.step));
    } else {
      finding = Finding::that("fall_percent", state.change);
      finding.is("<", "diff_percent", cfg.diff_percent)
          .says(sentence("{} has stopped falling: {} at step {}, {} at step {} (less than {} %).",
                         loss, state.before.loss, state.before.step, state.now.loss, state.now.step,
                         cfg.diff_percent));
    }
    return finding.since(state.before.step, 2)
        .with("reference", state.before.loss)
        .with("reference_step", state.before.step)
        .with("change_percent", -state.change);
  }

  static Finding explain_tocsin(const State& state, const std::string& loss, unsigned kind) {
    Finding finding = Finding::that("loss", state.now.loss);
    switch (kind) {
      case kStuck:
        finding.observed = {"gain", (state.first - state.best) / std::fabs(state.first)};
        finding.is("<", "least_gain", 0.1)
            .says(sentence("{} does not fall: it began at {} and its best is {} after {} steps, "
                           "without an improvement of 1 % over the last {} points.",
                           loss, state.first, state.best, state.now.step, state.without));
        break;
      case kEarly:
        finding.is(">", "twice_first", 2 * std::fabs(state.first_point))
            .says(sentence("{} is {} at step {}, more than twice its first value of {}.", loss,
                           state.now.loss, state.now.step, state.first_point));
        break;
      case kRise:
        finding
            .is(">", "limit",
                state.best + 0.5 * std::max(std::fabs(state.best), 0.5 * std::fabs(state.first)))
            .says(sentence("{} has risen far above its best: {} at step {}, best {} at step {}.",
                           loss, state.now.loss, state.now.step, state.best, state.best_step));
        break;
      default:
        finding.is(">", "limit", state.best + 0.5 * (state.first - state.best))
            .says(sentence("{} has lost more than half of what it had gained: first {}, best {} at "
                           "step {}, now {} at step {}.",
                           loss, state.first, state.best, state.best_step, state.now.loss,
                           state.now.step));
    }
    return finding.with("first", state.first)
        .with("best", state.best)
        .with("best_step", state.best_step);
  }
};

}  // namespace

RuleDescriptor loss_not_decreasing() {
  return {.name = "loss_not_decreasing",
          .original_name = "LossNotDecreasing",
          .title = "A loss stops falling, jumps up, or loses what it had gained.",
          .unit = "series",
          .needs = "collection losses",
          .presets =
              "tocsin smooths the train loss and asks for clear signs (stuck from the start, "
              "doubled, far above its best, half of the gain lost); original compares two "
              "single values num_steps apart, which fires on 78 % of healthy runs.",
          .severity = core::Severity::warning,
          .read = &read_series_rule<LossNotDecreasing>};
}

}  // namespace tocsin::rules
