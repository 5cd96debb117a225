// Fires when weights move far too much or hardly at all between two saved steps.
//
// Reads   statistics delta_l2, prev_l2 and delta_from_step of tensors with role weight; without
//         them the two norms, which bound the ratio from below. The scalar learning_rate.
// Window  two saved values of one (tensor, worker, mode): step s and the step p before it; with
//         num_steps the earliest saved step at most so many back, of the latest 256.
// Fires   r = |W_s − W_p| / (|W_p| + epsilon) > large_threshold, +Inf included (`too_large`;
//         `from_zero` when |W_p| < epsilon), or < small_threshold (`too_small`). Preset tocsin:
//         r / (s − p), and for too_small divided by learning rate / largest learning rate so far:
//         the smaller share of those at p and s, since at s a schedule may have started anew.
// Quiet   at the first saved step, after a change of shape, for parameters that are not trainable,
//         and where only norms are known and they do not prove an excess. Preset tocsin: too_small
//         where the learning rate is 0 but was not always, and where it is so small that rounding
//         takes an update of the usual size, for a tenth of the run at most, and where all elements are
//         of one size and both signs, as weights that are clipped to a limit are, or where the update has
//         become small by and by, each at least a tenth of the one before, and in the first 10 updates where it has not
//         moved yet (behind a branch that begins at zero there is no gradient); from_zero, since
//         layers are set to zero on purpose and no ratio to nothing means anything.
// Source  Amazon SageMaker Debugger, WeightUpdateRatio; docs/rules/weight_update_ratio.md. The norm
//         (L2 of the whole tensor, older value below) is our reading of it.

#include <algorithm>
#include <cmath>
#include <optional>

#include "rules/contract/no_number.h"
#include "rules/contract/sentence.h"
#include "rules/contract/windowed_row.h"

namespace tocsin::rules {
namespace {

// From 1 to the next larger number of the type: what is less than half of it is lost when it is
// added to 1, and nowhere is it more than that of the sum. float32 where the type is not known.
double resolution(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::f64:
    case core::Dtype::c128:
      return 0x1p-52;
    case core::Dtype::f16:
      return 0x1p-10;
    case core::Dtype::bf16:
      return 0x1p-7;
    case core::Dtype::f8_e4m3:
      return 0x1p-3;
    case core::Dtype::f8_e5m2:
      return 0x1p-2;
    default:
      return 0x1p-23;
  }
}

constexpr std::string_view kUpdateKinds[] = {"too_large", "too_small", "from_zero"};
struct WeightUpdateRatio {
  enum Kind : unsigned { kTooLarge, kTooSmall, kFromZero };

  static constexpr std::span<const std::string_view> kKinds = kUpdateKinds;
  static constexpr TensorUse kTensorUse = TensorUse::several;  // the scalar learning_rate
  static constexpr std::int64_t kMost = 256;                   // saved steps that are remembered
  /// Updates in which a tensor behind branches that begin at zero may get no gradient.
  static constexpr std::int64_t kZeroStart = 10;
  static constexpr std::int64_t kWarmUp = 5;  // first steps: a warm-up may begin with a rate of 0
  // An update of fewer resolutions than this, of the norm and per step, may be lost to rounding: a
  // half of one is where all of it is. The rest is for gradients that differ between saves.
  static constexpr double kRounding = 4;
  // Up to this share of the largest rate. Above it an update is less than a bit shorter than at the
  // full rate: if that is lost the type is too coarse, and the schedule explains nothing.
  static constexpr double kMuchLess = 0.5;
  // Of the steps so far, those that a tensor may lie still for rounding. A cosine is below a share
  // s of its rate in its last 2 √s / π: where float32 takes updates of 1e-5 at the full rate, 5 %.
  // A rate that has died for longer is a fault.
  static constexpr double kStill = 0.1;

  // Elements so small on average are next to nothing: a layer's scale, a gate or an adapter starts there
  // and is many times as large after one update.
  static constexpr double kNothing = 1e-4;
  static constexpr double kSameSize = 1e-6;  // relative
  static constexpr double kFades = 10;       // an update that is smaller by less has not stopped
  // A single number that turns round is where it was at the save before; many are not at once.
  static constexpr std::uint32_t kStands = 3;  // saves in a row

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
    double share = kNoNumber;  // learning rate by the largest so far, then
  };
  struct State {
    Latest saved;
    std::uint64_t count = 0;  // of the newest saved value, with a hash of its shape
    std::uint64_t shape = 0;
    double rate = kNoNumber;   // the learning rate then
    double older = kNoNumber;  // its share where the way begins
    double usual = 0;          // ratio per step and share when it last moved
    double last = 0;           // ratio where it moved, or had become smaller by and by since
    std::int64_t still = -1;   // where it came to lie still; -1: it moves
    double ratio = 0;          // as compared with the thresholds
    double share = kNoNumber;  // learning rate by the largest so far; NaN: not judged by it
    double delta = 0;
    double before = 0;
    std::int64_t from = 0;
    std::int64_t step = 0;
    std::uint64_t elements = 0;  // of the row that is judged
    bool proven = false;         // by deltas, not by the bound of two norms
    Gap<3> gap{};
    std::uint32_t small = 0;  // times in a row that it was too small
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.per_step = preset == Preset::tocsin;
    if (cfg.per_step) cfg.small_threshold = 1e-6;
    in.optional("num_steps", cfg.num_steps, config::if_given(config::at_least(std::int64_t{1})),
                "compare with the earliest saved step at most this many steps back; unset = with "
                "the previous saved step");
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

  // Whether a tensor that moved as usual would have moved by no more than rounding takes, which
  // ends soon in a schedule that comes to its end, or starts anew.
  static bool rounded(const State& state, core::Dtype dtype) {
    const auto lain = static_cast<double>(distance(state.step, state.still));
    return state.usual > 0 && state.share <= kMuchLess &&
           state.usual * state.share < kRounding * resolution(dtype) &&
           lain <= kStill * static_cast<double>(state.step);
  }

  // too_small with the learning rate known: relative to the largest so far.
  static Verdict judge_rated(const Config& cfg, State& state, const RowBatch& batch, double steps,
                             core::Dtype dtype) {
    const bool never = batch.max_learning_rate == 0 && batch.step >= kWarmUp;
    if (never) return state.ratio < cfg.small_threshold ? hit(kTooSmall) : kOk;
    // The update of a single step was made with the rate that stood when its start was saved.
    if (batch.learning_rate == 0 || (steps == 1 && state.rate == 0)) return kInsufficient;
    const double share = std::fmin(state.older, batch.learning_share);
    if (share == 0) return kInsufficient;
    state.share = share;
    state.ratio /= share;
    if (state.ratio < cfg.small_threshold) {
      if (state.still < 0) state.still = state.from;
      return rounded(state, dtype) ? kInsufficient : hit(kTooSmall);
    }
    state.usual = state.ratio;
    state.still = -1;
    return kOk;
  }

  // All elements are of one size, of both signs: each stands at the limit to which it is clipped, and an
  // update that would take it beyond is taken back.
  static bool at_limits(const Row& row) {
    const double all = row.abs_max() * static_cast<double>(row.count());
    return row.negative() > 0 && row.positive() > 0 && row.zero() == 0 &&
           std::fabs(row.abs_sum() - all) <= kSameSize * all;
  }

  // It has come to this from updates of a usual size, each not much smaller than the one before: as the
  // gradients of a task that is solved do. What stops does so at once.
  static bool fades(State& state) {
    const bool slowly = state.last > 0 && state.ratio * kFades >= state.last;
    if (slowly) state.last = state.ratio;
    return slowly;
  }

  static Verdict judge(const Config& cfg, State& state, const RowBatch& batch, core::Dtype dtype) {
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
      const double size =
          cfg.per_step ? kNothing * std::sqrt(static_cast<double>(state.elements)) : 0;
      if (!(state.before < std::max(cfg.epsilon, size))) return hit(kTooLarge);
      return cfg.per_step ? kInsufficient : hit(kFromZero);
    }
    if (!state.proven) return kInsufficient;  // the norms are only a lower bound
    if (cfg.per_step && std::isfinite(batch.learning_rate)) {
      return judge_rated(cfg, state, batch, steps, dtype);
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
    // The update was made between the two: at a restart of the schedule with the rate before. In a
    // first warm-up the share is 1 at both ends. fmin takes what is known.
    state.older = older == nullptr ? std::nan("") : older->share;
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
      state.usual = state.last = 0;
      state.small = 0;
      state.still = -1;
    }
    const double l2 = row.l2();
    const bool known = measure(cfg, state, items, l2, row, batch);
    state.elements = count;
    Verdict verdict = known ? judge(cfg, state, batch, row.dtype()) : kInsufficient;
    const bool small =
        verdict.outcome == EvaluationOutcome::hit && verdict.kinds == 1U << kTooSmall;
    if (known) state.small = small ? state.small + 1 : 0;
    const bool turns = count == 1 && state.small < kStands;
    const bool begins = !(state.last > 0) && batch.step < kZeroStart;
    if (small && cfg.per_step && (turns || begins || at_limits(row) || fades(state))) {
      verdict = kInsufficient;
    }
    if (verdict.outcome == EvaluationOutcome::ok) state.last = state.ratio;
    state.count = count;
    state.shape = shape;
    state.rate = batch.learning_rate;
    state.saved.push(items, Item{batch.step, l2, batch.learning_share});
    return verdict;
  }

  /// Norms alone, against the save before: they bound the ratio from below, and that bound is nearly always
  /// far from too large, which says nothing.
  class Glance {
   public:
    static constexpr Verdict kAnswer = kInsufficient;

    Glance(const Config& cfg, const RowBatch& batch) : cfg_(cfg), batch_(batch) {}
    [[nodiscard]] bool helps() const { return !cfg_.num_steps && batch_.sparse.empty(); }
    bool settles(State& state, std::span<Item> items, const Row& row, std::uint32_t slot) const {
      const std::uint64_t count = row.count();
      const bool same =
          count == state.count && slot < batch_.shapes.size() && batch_.shapes[slot] == state.shape;
      Item& item = items[0];
      if (count == 0 || !same || state.saved.size != 1 || item.step >= batch_.step ||
          (row.meta() & core::meta::kNotTrainable) != 0) {
        return false;
      }
      const double l2 = row.l2();
      const double delta = std::fabs(l2 - item.l2);
      const double steps =
          cfg_.per_step ? static_cast<double>(distance(batch_.step, item.step)) : 1.0;
      if (!(1.001 * delta < cfg_.large_threshold * (item.l2 + cfg_.epsilon) * steps)) return false;
      state.older = item.share;
      state.proven = false;
      state.delta = delta;
      state.before = item.l2;
      state.from = item.step;
      state.rate = batch_.learning_rate;
      item = Item{batch_.step, l2, batch_.learning_share};
      return true;
    }

   private:
    const Config& cfg_;
    const RowBatch& batch_;
  };

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
          .titled(subject.name, Verb::is, "hardly moving")
          .says(sentence("{} hardly moves: its update is {} times its norm{}{} (limit {}){}.",
                         subject.name, state.ratio, per,
                         scheduled ? ", relative to the learning rate" : "", cfg.small_threshold,
                         span))
          .advises(
              "Raise the learning rate, or check that the tensor gets a gradient. Mark frozen "
              "parameters as not trainable.");
    } else {
      finding.is(">", "large_threshold", cfg.large_threshold)
          .titled(subject.name, Verb::is, "moving too much")
          .says(sentence("{} moves too much: its update is {} times its norm{} (limit {}){}.",
                         subject.name, state.ratio, per, cfg.large_threshold, span))
          .advises("Lower the learning rate, add warm-up, or clip gradients.");
    }
    if (kind == kFromZero) {
      finding.titled(subject.name, Verb::has, "left zero")
          .says(sentence("{} was zero and now has norm {}{}.", subject.name, state.delta, span))
          .advises("This is usual for a tensor that is initialised with zeros.")
          .severity = core::Severity::info;
    }
    finding.since(state.from, 2)
        .with("delta_l2", state.delta)
        .with("prev_l2", state.before)
        .with("from_step", state.from)
        .with("steps", distance(state.step, state.from));
    if (scheduled) finding.with("learning_rate_share", state.share);
    if (kind == kTooSmall && state.usual > 0) finding.with("usual_ratio", state.usual);
    if (!state.proven) finding.with("lower_bound", true);
    return finding;
  }
};

}  // namespace

RuleDescriptor weight_update_ratio() {
  return {.name = "weight_update_ratio",
          .original_name = "WeightUpdateRatio",
          .title = "Weights move too much, or hardly at all.",
          .unit = "tensor",
          .needs = "collection weights with statistic delta",
          .presets =
              "tocsin judges the update per step with small_threshold 1e-6, so the save interval "
              "does not matter. It judges relative to the learning rate, so a schedule that decays "
              "to zero is no fault, and updates that rounding erases at its end are none either. "
              "original judges the whole interval with 1e-8.",
          .severity = core::Severity::warning,
          .aliases = {"weight_update"},
          .version = "8",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_windowed_row_rule<WeightUpdateRatio>};
}

}  // namespace tocsin::rules
