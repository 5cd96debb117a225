// Fires when weights run into the end of what their type, or a clamp, can hold.
//
// Reads   statistic at_least(bound) of tensors with role weight; without it min, max and the sums,
//         which prove most cases (share_bounds.h).
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   100 · elements with |w| >= bound / n > threshold_percent. Without `bound` it is 95 % of the
//         largest finite value of the tensor's type, of an integer's code range. ±Inf counts.
// Quiet   for empty tensors and types without an end; NaN counts as not saturated.
// Source  docs/rules/weight_saturation.md. A rule that its users asked the original for.

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "rules/builtin/shared/share_bounds.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

// The largest finite value of a type; NaN: it has none that counts.
constexpr double largest_of(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::f32:
      return std::numeric_limits<float>::max();
    case core::Dtype::f64:
      return std::numeric_limits<double>::max();
    case core::Dtype::f16:
      return 65504;
    case core::Dtype::bf16:
      return 0x1.FEp127;
    case core::Dtype::f8_e4m3:
      return 448;
    case core::Dtype::f8_e5m2:
      return 57344;
    case core::Dtype::i8:
      return 127;
    case core::Dtype::i16:
      return 32767;
    case core::Dtype::i32:
      return 2147483647;
    case core::Dtype::i64:
      return 0x1p63;
    case core::Dtype::u8:
      return 255;
    case core::Dtype::u16:
      return 65535;
    case core::Dtype::u32:
      return 4294967295;
    case core::Dtype::u64:
      return 0x1p64;
    case core::Dtype::unknown:
    case core::Dtype::boolean:
    case core::Dtype::c64:
    case core::Dtype::c128:
    case core::Dtype::text:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// 95 % of that, by the type's code.
constexpr auto kUsualBounds = [] {
  std::array<double, 256> all{};
  for (std::size_t code = 0; code < all.size(); ++code) {
    const double largest = largest_of(static_cast<core::Dtype>(code));
    all[code] = largest > 0 ? 0.95 * largest : largest;
  }
  return all;
}();

struct WeightSaturation {
  static constexpr std::span<const std::string_view> kKinds{};

  struct Config {
    std::optional<double> bound;
    double threshold_percent = 1;
  };
  struct State {
    Bounds share;  // of the latest evaluation
    double bound = 0;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("bound", cfg.bound, config::if_given(config::greater_than(0.0)),
                "magnitude from which a weight counts as saturated; unset = 95 % of the largest "
                "finite value of its type");
    config::Check<double> percent = config::between(0.0, 100.0);
    percent.ok = [](const double& value) { return value >= 0 && value < 100; };
    percent.expected = "0 … < 100";
    in.optional("threshold_percent", cfg.threshold_percent, percent,
                "largest percentage of saturated weights");
    if (in.describing()) return;
    if (!cfg.bound) {
      in.note("bound", "without bound f32 and f64 weights never fire while they are finite");
    }
  }

  static void adjust(const Config& cfg, Program& program) {
    std::vector<std::string> statistics;
    if (cfg.bound) statistics.push_back(fmt::format("at_least({})", *cfg.bound));
    if (program.common.collection_names.empty()) program.needs.push_back({"weights", statistics});
    for (const std::string& name : program.common.collection_names) {
      program.needs.push_back({name, statistics});
    }
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    if (row.count() == 0) return kNotApplicable;
    const double bound =
        cfg.bound ? *cfg.bound : kUsualBounds[static_cast<std::uint8_t>(row.dtype())];
    if (std::isnan(bound)) return kNotApplicable;
    state.bound = bound;
    if (batch.sparse.empty() && row.nan() == 0 && row.min() > -bound && row.max() < bound) {
      state.share = {0, 0};  // as share_outside says, and most often
      return kOk;
    }
    const auto counted = batch.statistic(core::SparseStat::abs_ge_count, row.index(), {bound});
    const double infinite = static_cast<double>(row.posinf() + row.neginf());
    if (counted) {
      state.share.low = state.share.high = *counted / row.n();
    } else if (row.nan() == 0) {
      state.share = share_outside(row, -bound, bound);
    } else {
      state.share = {infinite / row.n(), (row.n() - static_cast<double>(row.nan())) / row.n()};
    }
    if (100 * state.share.low > cfg.threshold_percent) return hit();
    return 100 * state.share.high <= cfg.threshold_percent ? kOk : kInsufficient;
  }

  static double badness(const Config&, const State& state, const Row*) { return state.share.low; }

  static Finding explain(const Config& cfg, const State& state, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned) {
    const double percent = 100 * state.share.low;
    Finding finding = Finding::that("saturated_percent", percent);
    finding.is(">", "threshold_percent", cfg.threshold_percent)
        .titled(subject.name, Verb::is, "saturated")
        .says(sentence(
            "{}{} % of the weights of {} have a magnitude of {} or more at {} (limit {} %).",
            state.share.exact() ? "" : "At least ", percent, subject.name, state.bound,
            subject.place(), cfg.threshold_percent))
        .advises(
            "Weights at the end of their range cannot grow. Lower the learning rate, add weight "
            "decay, widen the clamp, or keep a master copy in a wider type.")
        .with("bound", state.bound)
        .with("abs_max", row->abs_max())
        .with("dtype", core::to_string(subject.dtype).data())
        .with("count", row->count());
    if (!state.share.exact()) finding.with("lower_bound", true);
    return finding;
  }
};

}  // namespace

RuleDescriptor weight_saturation() {
  return {.name = "weight_saturation",
          .original_name = "WeightSaturation",
          .title = "Weights reach the largest value that their type or a clamp allows.",
          .unit = "tensor",
          .needs = "collection weights, with statistic at_least(bound) where a bound is given",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kPyTorch,
          .read = &read_row_rule<WeightSaturation>};
}

}  // namespace tocsin::rules
