// Fires when weights move far too much or hardly at all between two saved steps.
//
// Reads   statistics delta_l2, prev_l2 and delta_from_step of tensors with role weight; without
//         them the two norms, which bound the ratio from below.
// Window  two saved values of one (tensor, worker, mode): step s and the step p before it.
// Fires   r = |W_s − W_p| / (|W_p| + epsilon) > large_threshold (`too_large`; `from_zero` when
//         |W_p| < epsilon) or < small_threshold (`too_small`). Preset tocsin: r / (s − p).
// Quiet   at the first saved step, after a change of shape, for parameters that are not trainable,
//         and where only norms are known and they do not prove an excess.
// Source  Amazon SageMaker Debugger, WeightUpdateRatio; docs/rules/weight_update_ratio.md. The norm
//         (L2 of the whole tensor, older value below) is our reading of it.

#include <array>
#include <cmath>
#include <optional>

#include "rules/rule.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kUpdateKinds[] = {"too_large", "too_small", "from_zero"};
enum Kind : unsigned { kTooLarge, kTooSmall, kFromZero };

struct WeightUpdateRatio {
  static constexpr std::span<const std::string_view> kKinds = kUpdateKinds;

  struct Config {
    std::optional<std::int64_t> num_steps;
    double large_threshold = 10;
    double small_threshold = 1e-8;
    double epsilon = 1e-9;
    bool per_step = false;
  };
  struct Saved {
    std::int64_t step = 0;
    double l2 = 0;
  };
  struct State {
    std::array<Saved, 3> saved{};  // newest first
    std::uint32_t known = 0;
    bool proven = false;  // by deltas, not by the bound of two norms
    std::uint64_t count = 0;
    double ratio = 0;  // as compared with the thresholds
    double delta = 0;
    double before = 0;
    std::int64_t from = 0;
    std::int64_t step = 0;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.per_step = preset == Preset::tocsin;
    if (cfg.per_step) cfg.small_threshold = 1e-6;
    in.optional("num_steps", cfg.num_steps,
                "compare with the earliest saved step at most so many steps back; unset: with the "
                "saved step before");
    in.optional("large_threshold", cfg.large_threshold, "ratio above which weights move too much");
    in.optional("small_threshold", cfg.small_threshold, config::at_least(0.0),
                "ratio below which weights hardly move");
    in.optional("epsilon", cfg.epsilon, config::greater_than(0.0), "added to the older norm");
    if (cfg.num_steps && *cfg.num_steps < 1) in.error("num_steps", "num_steps must be >= 1");
    if (!(cfg.large_threshold > cfg.small_threshold)) {
      in.error("large_threshold", "large_threshold must be greater than small_threshold");
    }
  }

  static std::vector<Need> needs(const Config&) { return {{"weights", {"delta"}}}; }

  // The saved step to compare with; nullptr: none in reach that we still know.
  static const Saved* partner(const Config& cfg, const State& state, std::int64_t step) {
    if (state.known == 0) return nullptr;
    if (!cfg.num_steps) return &state.saved[0];
    const Saved* found = nullptr;
    for (std::uint32_t i = 0; i < state.known; ++i) {
      if (distance(step, state.saved[i].step) <= *cfg.num_steps) found = &state.saved[i];
    }
    // With every remembered step in reach an earlier one may be, too.
    const bool unsure = found != nullptr && found == &state.saved.back();
    return unsure ? nullptr : found;
  }

  static void remember(State& state, std::int64_t step, double l2) {
    for (std::size_t i = state.saved.size() - 1; i > 0; --i) state.saved[i] = state.saved[i - 1];
    state.saved[0] = {step, l2};
    if (state.known < state.saved.size()) ++state.known;
  }

  static Verdict judge(const Config& cfg, State& state, std::int64_t step) {
    const double steps = cfg.per_step ? static_cast<double>(distance(step, state.from)) : 1.0;
    const double ratio = state.delta / (state.before + cfg.epsilon) / steps;
    if (!std::isfinite(ratio)) return kInsufficient;
    state.ratio = ratio;
    state.step = step;
    if (ratio > cfg.large_threshold) return hit(state.before < cfg.epsilon ? kFromZero : kTooLarge);
    if (!state.proven) return kInsufficient;  // the norms are only a lower bound
    return ratio < cfg.small_threshold ? hit(kTooSmall) : kOk;
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const std::uint64_t count = row.count();
    if (count == 0 || (row.meta() & core::meta::kNotTrainable) != 0) return kNotApplicable;
    const double l2 = row.l2();
    if (!std::isfinite(l2)) return kInsufficient;
    if (state.known > 0 && (count != state.count || state.saved[0].step >= batch.step)) {
      state.known = 0;  // another shape, or the run went back to an earlier step
    }
    const Saved* older = partner(cfg, state, batch.step);
    Verdict verdict = kInsufficient;
    const auto delta = batch.statistic(core::SparseStat::delta_l2, row.index());
    const auto before = batch.statistic(core::SparseStat::prev_l2, row.index());
    const auto from = batch.statistic(core::SparseStat::delta_from_step, row.index());
    const bool measured = delta && before && from && std::isfinite(*delta) &&
                          std::isfinite(*from) && *from < static_cast<double>(batch.step) &&
                          *from > -9e15;
    const bool matches =
        measured &&
        (!cfg.num_steps || (older != nullptr && static_cast<double>(older->step) == *from));
    if (matches) {
      state.proven = true;
      state.delta = *delta;
      state.before = *before;
      state.from = static_cast<std::int64_t>(*from);
      verdict = judge(cfg, state, batch.step);
    } else if (older != nullptr) {
      state.proven = false;
      state.delta = std::fabs(l2 - older->l2);
      state.before = older->l2;
      state.from = older->step;
      verdict = judge(cfg, state, batch.step);
    }
    state.count = count;
    remember(state, batch.step, l2);
    return verdict;
  }

  static double badness(const Config& cfg, const State& state, const Row*) {
    return state.ratio > cfg.large_threshold ? state.ratio : -state.ratio;
  }

  static Finding explain(const Config& cfg, const State& state, const Row*, const RowBatch*,
                         const Subject& subject, unsigned kind) {
    const std::string_view per = cfg.per_step ? " per step" : "";
    const std::string span = sentence(" between steps {} and {}{}{}", state.from, state.step,
                                      subject.worker.empty() ? "" : " on ", subject.worker);
    Finding finding =
        Finding::that(cfg.per_step ? "update_ratio_per_step" : "update_ratio", state.ratio);
    if (kind == kTooSmall) {
      finding.is("<", "small_threshold", cfg.small_threshold)
          .says(sentence("{} hardly moves: its update is {} of its norm{} (limit {}){}.",
                         subject.name, state.ratio, per, cfg.small_threshold, span))
          .advises(
              "Raise the learning rate, or check that the tensor gets a gradient; mark frozen "
              "parameters as not trainable.");
    } else {
      finding.is(">", "large_threshold", cfg.large_threshold)
          .says(sentence("{} moves too much: its update is {} times its norm{} (limit {}){}.",
                         subject.name, state.ratio, per, cfg.large_threshold, span))
          .advises("Lower the learning rate, add warm-up, or clip gradients.");
    }
    if (kind == kFromZero) {
      finding
          .says(
              sentence("{} was zero and has moved to norm {}{}.", subject.name, state.delta, span))
          .advises("Usual for a tensor that is initialised with zeros.")
          .severity = core::Severity::info;
    }
    finding.since(state.from, 2)
        .with("delta_l2", state.delta)
        .with("prev_l2", state.before)
        .with("from_step", state.from)
        .with("steps", distance(state.step, state.from));
    if (!state.proven) finding.with("lower_bound", true);
    return finding;
  }
};

}  // namespace

RuleDescriptor weight_update_ratio() {
  return {.name = "weight_update_ratio",
          .original_name = "WeightUpdateRatio",
          .title = "Weights move far too much, or hardly at all.",
          .unit = "tensor",
          .needs = "collection weights with statistic delta",
          .presets =
              "tocsin judges the update per step with small_threshold 1e-6, so that the save "
              "interval does not matter; original judges the whole interval with 1e-8.",
          .severity = core::Severity::warning,
          .read = &read_row_rule<WeightUpdateRatio>};
}

}  // namespace tocsin::rules
