// Fires when weights move far too much or hardly at all between two saved steps.
//
// Reads   statistics delta_l2, prev_l2 and delta_from_step of tensors with role weight; without
//         them the two norms, which bound the ratio from below. The scalar learning_rate.
// Window  two saved values of one (tensor, worker, mode): step s and the step p before it; with
//         num_steps the earliest saved step at most so many back, of the latest 256.
// Fires   r = |W_s − W_p| / (|W_p| + epsilon) > large_threshold, +Inf included (`too_large`;
//         `from_zero` when |W_p| < epsilon), or < small_threshold (`too_small`). Preset tocsin:
//         r / (s − p), and for too_small divided by learning rate / largest learning rate so far.
// Quiet   at the first saved step, after a change of shape, for parameters that are not trainable,
//         and where only norms are known and they do not prove an excess. Preset tocsin: too_small
//         where the learning rate is 0 but was not always; from_zero, since layers are set to zero
//         on purpose and no ratio to nothing means anything.
// Source  Amazon SageMaker Debugger, WeightUpdateRatio; docs/rules/weight_update_ratio.md. The norm
//         (L2 of the whole tensor, older value below) is our reading of it.

#include <algorithm>
#include <cmath>
#include <optional>

#include "rules/sentence.h"
#include "rules/windowed_row.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kUpdateKinds[] = {"too_large", "too_small", "from_zero"};
struct WeightUpdateRatio {
  enum Kind : unsigned { kTooLarge, kTooSmall, kFromZero };

  static constexpr std::span<const std::string_view> kKinds = kUpdateKinds;
  static constexpr std::int64_t kMost = 256;  // saved steps that are remembered
  static constexpr std::int64_t kWarmUp = 5;  // first steps: a warm-up may begin with a rate of 0

  struct Config {
    std::optional<std::int64_t> num_steps;
    double large_threshold = 10;
    double small_threshold = 1e-8;
    double epsilon = 1e-9;
    bool per_step = false;
  };
  struct Item {
    std::int64_t step = 0;
    double l2 = 0;
  };
  struct State {
    Latest saved;
    std::uint64_t count = 0;  // of the newest saved value, with a hash of its shape
    std::uint64_t shape = 0;
    double rate = std::nan("");   // the learning rate then
    double ratio = 0;             // as compared with the thresholds
    double share = std::nan("");  // learning rate by the largest so far; NaN: not judged by it
    double delta = 0;
    double before = 0;
    std::int64_t from = 0;
    std::int64_t step = 0;
    bool proven = false;  // by deltas, not by the bound of two norms
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.per_step = preset == Preset::tocsin;
    if (cfg.per_step) cfg.small_threshold = 1e-6;
    in.optional("num_steps", cfg.num_steps, config::if_given(config::at_least(std::int64_t{1})),
                "compare with the earliest saved step at most so many steps back; unset: with the "
                "saved step before");
    in.optional("large_threshold", cfg.large_threshold, "ratio above which weights move too much");
    in.optional("small_threshold", cfg.small_threshold, config::at_least(0.0),
                "ratio below which weights hardly move");
    in.optional("epsilon", cfg.epsilon, config::greater_than(0.0), "added to the older norm");
    if (!(cfg.large_threshold > cfg.small_threshold)) {
      in.error("large_threshold", "large_threshold must be greater than small_threshold");
    }
  }

  static std::vector<Need> needs(const Config&) { return {{"weights", {"delta"}}}; }

  /// As many saves as can be within num_steps.
  static std::size_t window(const Config& cfg) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(cfg.num_steps.value_or(1), 1, kMost));
  }

  // The saved step to compare with; nullptr: none in reach that we still know.
  static const Item* partner(const Config& cfg, const State& state, std::span<Item> items,
                             std::int64_t step) {
    if (state.saved.size == 0) return nullptr;
    if (!cfg.num_steps) return &state.saved.at(items, 0);
    const Item* found = nullptr;
    for (std::uint32_t back = 0; back < state.saved.size; ++back) {
      const Item& item = state.saved.at(items, back);
      if (distance(step, item.step) <= *cfg.num_steps) found = &item;
    }
    // With every remembered step in reach an earlier one may be, too.
    const bool unsure = found != nullptr && *cfg.num_steps > kMost &&
                        state.saved.size == items.size() &&
                        found == &state.saved.at(items, state.saved.size - 1);
    return unsure ? nullptr : found;
  }

  static Verdict judge(const Config& cfg, State& state, const RowBatch& batch) {
    const double steps = cfg.per_step ? static_cast<double>(distance(batch.step, state.from)) : 1.0;
    // A lower bound that is far from too large says nothing; most are, and need no division.
    const double limit = cfg.large_threshold * (state.before + cfg.epsilon) * steps;
    if (!state.proven && 1.001 * state.delta < limit) return kInsufficient;
    const double ratio = state.delta / (state.before + cfg.epsilon) / steps;
    if (std::isnan(ratio)) return kInsufficient;
    state.ratio = ratio;
    state.step = batch.step;
    state.share = std::nan("");
    if (ratio > cfg.large_threshold) {
      if (!(state.before < cfg.epsilon)) return hit(kTooLarge);
      return cfg.per_step ? kInsufficient : hit(kFromZero);
    }
    if (!state.proven) return kInsufficient;  // the norms are only a lower bound
    if (cfg.per_step && std::isfinite(batch.learning_rate)) {
      // The update of a single step was made with the rate that stood when its start was saved.
      const bool never = batch.max_learning_rate == 0 && batch.step >= kWarmUp;
      if (never) return state.ratio < cfg.small_threshold ? hit(kTooSmall) : kOk;
      if (batch.learning_rate == 0 || (steps == 1 && state.rate == 0)) return kInsufficient;
      state.share = batch.learning_rate / batch.max_learning_rate;
      state.ratio = ratio / state.share;
    }
    return state.ratio < cfg.small_threshold ? hit(kTooSmall) : kOk;
  }

  // Takes what the hook measured of the way from the partner; false: it did not.
  static bool measured(const Config& cfg, State& state, const Item* older, const Row& row,
                       const RowBatch& batch) {
    const auto from = batch.statistic(core::SparseStat::delta_from_step, row.index());
    if (!from || !std::isfinite(*from) || !(*from < static_cast<double>(batch.step)) ||
        !(*from > -9e15)) {
      return false;
    }
    if (cfg.num_steps && (older == nullptr || static_cast<double>(older->step) != *from)) {
      return false;
    }
    const auto delta = batch.statistic(core::SparseStat::delta_l2, row.index());
    const auto before = batch.statistic(core::SparseStat::prev_l2, row.index());
    if (!delta || !before) return false;
    state.delta = *delta;
    state.before = *before;
    state.from = static_cast<std::int64_t>(*from);
    return true;
  }

  // What is known of the way from the partner; false: nothing.
  static bool measure(const Config& cfg, State& state, std::span<Item> items, double l2,
                      const Row& row, const RowBatch& batch) {
    const Item* older = partner(cfg, state, items, batch.step);
    state.proven = !batch.sparse.empty() && measured(cfg, state, older, row, batch);
    if (state.proven) return true;
    if (older == nullptr) return false;
    state.delta = std::fabs(l2 - older->l2);
    state.before = older->l2;
    state.from = older->step;
    return true;
  }

  static Verdict update(const Config& cfg, State& state, std::span<Item> items, const Row& row,
                        const RowBatch& batch) {
    const std::uint64_t count = row.count();
    if (count == 0 || (row.meta() & core::meta::kNotTrainable) != 0) return kNotApplicable;
    const std::uint64_t shape = batch.shape_of(row);
    const bool other = count != state.count || shape != state.shape;
    if (state.saved.size > 0 && (other || state.saved.at(items, 0).step >= batch.step)) {
      state.saved.clear();  // another shape, or the run went back to an earlier step
    }
    const double l2 = row.l2();
    const bool known = measure(cfg, state, items, l2, row, batch);
    const Verdict verdict = known ? judge(cfg, state, batch) : kInsufficient;
    state.count = count;
    state.shape = shape;
    state.rate = batch.learning_rate;
    state.saved.push(items, Item{batch.step, l2});
    return verdict;
  }

  static double badness(const Config& cfg, const State& state, const Row*) {
    return state.ratio > cfg.large_threshold ? state.ratio : -state.ratio;
  }

  static Finding explain(const Config& cfg, const State& state, const Row*, const RowBatch*,
                         const Subject& subject, unsigned kind) {
    const std::string_view per = cfg.per_step ? " per step" : "";
    const bool scheduled = kind == kTooSmall && std::isfinite(state.share);
    const std::string span = sentence(" between steps {} and {}{}{}", state.from, state.step,
                                      subject.worker.empty() ? "" : " on ", subject.worker);
    Finding finding =
        Finding::that(cfg.per_step ? "update_ratio_per_step" : "update_ratio", state.ratio);
    if (kind == kTooSmall) {
      finding.is("<", "small_threshold", cfg.small_threshold)
          .says(sentence("{} hardly moves: its update is {} of its norm{}{} (limit {}){}.",
                         subject.name, state.ratio, per,
                         scheduled ? ", seen relative to the learning rate" : "",
                         cfg.small_threshold, span))
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
    if (scheduled) finding.with("learning_rate_share", state.share);
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
              "interval does not matter, and relative to the learning rate, so that a schedule "
              "that decays to zero is no fault; original judges the whole interval with 1e-8.",
          .severity = core::Severity::warning,
          .aliases = {"weight_update"},
          .version = "3",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_windowed_row_rule<WeightUpdateRatio>};
}

}  // namespace tocsin::rules
