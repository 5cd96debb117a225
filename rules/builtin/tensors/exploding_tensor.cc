// Fires when a tensor or a logged value contains NaN or Inf.
//
// Reads   the counts of NaN, +Inf and −Inf of every published tensor and scalar.
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   nan + posinf + neginf >= 1; with only_nan: nan >= 1.
// Quiet   for integers and bool, empty tensors, and gradients of a step that the optimizer skipped
//         (dynamic loss scaling does that on purpose).
// Source  Amazon SageMaker Debugger, ExplodingTensor; docs/rules/exploding_tensor.md. Sums,
//         means and norms are not looked at: they can overflow on finite data.

#include <cmath>

#include "rules/contract/no_number.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/contract/together.h"

namespace tocsin::rules {
namespace {

struct ExplodingTensor {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::string_view kExtensions[] = {"ignore_skipped_steps", "ignore_masks"};

  struct Config {
    bool only_nan = false;
    bool ignore_skipped_steps = true;
    bool ignore_masks = false;
  };
  struct State {
    double last_finite_abs_max = kNoNumber;
    std::int64_t last_finite_step = 0;
  };

  static Defaults defaults(Preset) { return {.everything = true}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.ignore_masks = preset == Preset::tocsin;
    in.optional("only_nan", cfg.only_nan, "look at NaN only, not at Inf");
    in.optional("ignore_skipped_steps", cfg.ignore_skipped_steps,
                "ignore gradients of steps that the optimizer skipped");
    in.optional("ignore_masks", cfg.ignore_masks,
                "ignore layer inputs that hold only zeros and -Inf: attention masks");
  }

  static std::vector<Need> needs(const Config&) {
    return {{"gradients"}, {"weights"}, {"biases"}, {"losses"}};
  }

  static bool can_be_non_finite(core::Dtype dtype) {
    return dtype == core::Dtype::unknown || core::is_floating(dtype) || dtype == core::Dtype::c64 ||
           dtype == core::Dtype::c128;
  }

  // What is added to the scores of attention: 0 where one may look, -Inf where not.
  static bool is_mask(const Row& row) {
    const core::Role role = core::meta::role(row.meta());
    if (role != core::Role::activation_in && role != core::Role::input) return false;
    return row.neginf() > 0 && row.neginf() + row.zero() == row.count();
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const std::uint64_t meta = row.meta();
    if (row.count() == 0 || !can_be_non_finite(core::meta::dtype(meta))) return kNotApplicable;
    const bool skipped = (meta & core::meta::kOptimizerSkipped) != 0 &&
                         core::meta::role(meta) == core::Role::gradient;
    if (skipped && cfg.ignore_skipped_steps) return kNotApplicable;
    if (cfg.ignore_masks && is_mask(row)) return kNotApplicable;
    if ((cfg.only_nan ? row.nan() : row.non_finite()) > 0) return hit();
    state.last_finite_abs_max = row.abs_max();
    state.last_finite_step = batch.step;
    return kOk;
  }

  // Where nothing is NaN or Inf, empty, an integer or of a step that was left out. One of these, and
  // row by row it is. Without branches, so that several rows are looked at in one instruction.
  TOCSIN_TOGETHER static bool quiet(const Config&, State* states, const RowBatch& batch,
                                    std::size_t from, std::size_t count) {
    constexpr std::uint64_t kFirst = static_cast<std::uint64_t>(core::Dtype::f32);
    constexpr std::uint64_t kLast = static_cast<std::uint64_t>(core::Dtype::f8_e5m2);
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    const auto counts = batch.column<std::uint64_t>(core::summary_column::count, from);
    const auto metas = batch.column<std::uint64_t>(core::summary_column::meta, from);
    const auto nans = batch.column<std::uint64_t>(core::summary_column::nan, from);
    const auto tops = batch.column<std::uint64_t>(core::summary_column::posinf, from);
    const auto bottoms = batch.column<std::uint64_t>(core::summary_column::neginf, from);
    const auto lows = batch.column<double>(core::summary_column::min, from);
    const auto highs = batch.column<double>(core::summary_column::max, from);
    std::uint64_t found = 0;  // NaN and Inf
    std::uint64_t below = 0;  // its sign: a count of 0, or a type that is no floating-point one
    std::uint64_t flags = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t meta = metas[i];
      const std::uint64_t dtype = meta & 0xFF;
      found |= nans[i] | tops[i] | bottoms[i];
      below |= (counts[i] - 1) | (dtype - kFirst) | (kLast - dtype);
      flags |= meta;
    }
    if (found != 0 || (below & kSign) != 0 || (flags & core::meta::kOptimizerSkipped) != 0) {
      return false;
    }
    const double none = kNoNumber;
    for (std::size_t i = 0; i < count; ++i) {
      const double low = std::fabs(lows[i]);
      const double high = std::fabs(highs[i]);
      const double larger = low > high ? low : high;
      // NaN where either is.
      states[i].last_finite_abs_max = std::isunordered(low, high) ? none : larger;
      states[i].last_finite_step = batch.step;
    }
    return true;
  }

  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : static_cast<double>(row->non_finite());
  }

  static Finding explain(const Config& cfg, const State& state, const Row* row,
                         const RowBatch* batch, const Subject& subject, unsigned) {
    const std::uint64_t bad = cfg.only_nan ? row->nan() : row->non_finite();
    Finding finding = Finding::that(cfg.only_nan ? "nan" : "non_finite", static_cast<double>(bad));
    finding.is(">=", "limit", 1)
        .advises(
            "Lower the learning rate or clip gradients. With mixed precision, check the loss "
            "scale. Look for a division by zero or a logarithm of zero in the loss.");
    if (batch->scalar) {
      const auto* what = row->nan() > 0 ? "NaN" : row->posinf() > 0 ? "+Inf" : "-Inf";
      finding.titled(subject.name, Verb::is, what)
          .says(sentence("{} became {} at {}.", subject.name, what, subject.place()));
    } else {
      finding.titled(subject.name, Verb::has, row->nan() > 0 ? "NaN" : "Inf")
          .says(sentence(
              "{} has {} of {} values that are not finite ({} NaN, {} +Inf, {} -Inf) at {}.",
              subject.name, bad, row->count(), row->nan(), row->posinf(), row->neginf(),
              subject.place()));
    }
    if (std::isfinite(state.last_finite_abs_max)) {
      finding
          .adds(sentence(
              "Its largest magnitude was {} at step {}, the last step with only finite values.",
              state.last_finite_abs_max, state.last_finite_step))
          .with("last_finite_abs_max", state.last_finite_abs_max)
          .with("last_finite_step", state.last_finite_step);
    }
    if (!subject.first_hit.empty() && subject.first_hit != subject.name) {
      finding.adds(sentence("The first to go was {}.", subject.first_hit));
    }
    finding.with("nan", row->nan())
        .with("posinf", row->posinf())
        .with("neginf", row->neginf())
        .with("share", static_cast<double>(bad) / row->n());
    const auto first = batch->statistic(core::SparseStat::first_bad_index, row->index());
    if (first && *first >= 0 && *first < 9e18) {
      finding.with("first_flat_index", static_cast<std::int64_t>(*first));
    }
    if (!subject.first_hit.empty()) finding.with("origin", subject.first_hit);
    return finding;
  }
};

}  // namespace

RuleDescriptor exploding_tensor() {
  return {.name = "exploding_tensor",
          .original_name = "ExplodingTensor",
          .title = "A tensor or a logged value contains NaN or Inf.",
          .unit = "tensor",
          .needs = "any tensor or scalar; asks for gradients, weights, biases and losses",
          .presets =
              "tocsin ignores attention masks, which hold only zeros and -Inf. original does not.",
          .severity = core::Severity::error,
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_row_rule<ExplodingTensor>};
}

}  // namespace tocsin::rules
