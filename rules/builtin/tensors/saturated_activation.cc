// Fires when the inputs of tanh or sigmoid layers sit where the function is flat.
//
// Reads   preset tocsin: statistic at_least(3) of inputs of such layers, original: statistic
//         saturation(lo, hi, threshold_inactivity); without them min, max and the sums, which prove
//         many cases (share_bounds.h).
// Window  one step of one tensor, worker and mode; with min_samples as many saved steps in a row as
//         it takes to have so many samples of each unit.
// Fires   share_of elements (tocsin): 100 · elements not inside (lo, hi) / n > threshold_layer.
//         share_of units (original): 100 · units with less than threshold_inactivity % of their
//         samples inside (lo, hi) / units > threshold_layer. The bounds are of the layer's kind.
// Quiet   for tensors of neither kind, single values, empty tensors, and tensors with NaN.
// Source  Amazon SageMaker Debugger, SaturatedActivation; docs/rules/saturated_activation.md. The
//         original's bounds are reached by hardly any network that has long stopped learning.

#include <cmath>
#include <optional>

#include "rules/builtin/shared/metric_name.h"
#include "rules/builtin/tensors/layer_units.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLayerKinds[] = {"tanh", "sigmoid"};
struct SaturatedActivation {
  enum Kind : unsigned { kTanh, kSigmoid, kNeither };

  static constexpr std::span<const std::string_view> kKinds = kLayerKinds;

  struct Interval {
    double lo = 0;
    double hi = 0;
  };
  struct Config {
    Interval tanh{-9.4999, 9.4999};
    Interval sigmoid{-23, 16.99999};
    double threshold_inactivity = 1;
    double threshold_layer = 50;
    std::optional<double> gradient_threshold;
    std::string unit_axis = "auto";
    std::uint64_t min_samples = 1;
    std::string share_of = "units";
  };
  struct State {
    Bounds saturated;  // share of elements or units, of the latest evaluation
    UnitWindow window;
    std::uint32_t kind = kNeither;
    std::uint32_t known = 0;  // 1: the dictionary has said which
  };

  static Defaults defaults(Preset) { return {.patterns = {".*tanh_input|.*sigmoid_input"}}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    if (preset == Preset::tocsin) {
      cfg.tanh = cfg.sigmoid = {-3, 3};
      cfg.share_of = "elements";
    }
    in.optional("threshold_tanh_min", cfg.tanh.lo, "inputs of tanh up to here are saturated");
    in.optional("threshold_tanh_max", cfg.tanh.hi, "inputs of tanh from here on are saturated");
    in.optional("threshold_sigmoid_min", cfg.sigmoid.lo, "as above, for sigmoid");
    in.optional("threshold_sigmoid_max", cfg.sigmoid.hi, "as above, for sigmoid");
    in.optional("threshold_inactivity", cfg.threshold_inactivity, config::between(0.0, 100.0),
                "with share_of units: a unit is saturated if less than this percentage of its "
                "samples are between the bounds");
    in.optional("threshold_layer", cfg.threshold_layer, config::between(0.0, 100.0),
                "largest percentage of saturated units or elements");
    config::Check<double> slope = config::above(0, 0.25);
    slope.ok = [](const double& value) { return value > 0 && value < 0.25; };
    slope.expected = "> 0 … < 0.25";
    in.optional(
        "gradient_threshold", cfg.gradient_threshold, config::if_given(slope),
        "instead of the four bounds: saturated where the derivative of the function is this small");
    read_units(in, cfg);
    in.optional("share_of", cfg.share_of, config::one_of({"units", "elements"}), "what is counted");
    check(in, cfg);
  }

  static void check(config::Reader& in, Config& cfg) {
    if (in.describing()) return;
    if (!(cfg.tanh.lo < cfg.tanh.hi)) {
      in.error("threshold_tanh_min", "threshold_tanh_min must be less than threshold_tanh_max");
    }
    if (!(cfg.sigmoid.lo < cfg.sigmoid.hi)) {
      in.error("threshold_sigmoid_min",
               "threshold_sigmoid_min must be less than threshold_sigmoid_max");
    }
    if (!cfg.gradient_threshold) return;
    const double g = *cfg.gradient_threshold;
    // 1 − tanh²x = g, and σ(1 − σ) = g with σ = 1 / (1 + exp −x).
    const double tanh = std::atanh(std::sqrt(1 - g));
    const double sigma = (1 + std::sqrt(1 - 4 * g)) / 2;
    const double sigmoid = std::log(sigma / (1 - sigma));
    cfg.tanh = {-tanh, tanh};
    cfg.sigmoid = {-sigmoid, sigmoid};
  }

  static std::string statistic(const Config& cfg, const Interval& of) {
    if (cfg.share_of == "elements" && of.lo == -of.hi) return fmt::format("at_least({})", of.hi);
    return fmt::format("saturation({}, {}, {})", of.lo, of.hi, cfg.threshold_inactivity);
  }

  static void adjust(const Config& cfg, Program& program) {
    std::vector<std::string> wanted{statistic(cfg, cfg.tanh)};
    if (const std::string other = statistic(cfg, cfg.sigmoid); other != wanted[0]) {
      wanted.push_back(other);
    }
    for (const std::string& name : program.common.collection_names) {
      program.needs.push_back({name, wanted});
    }
    if (program.common.collection_names.empty()) program.needs.push_back({"layers", wanted});
    if (!program.common.collection_names.empty() || !program.common.tensor_regex.empty()) return;
    program.selection.add_operator(core::Role::activation_in, "tanh");
    program.selection.add_operator(core::Role::activation_in, "sigmoid");
  }

  // By the operator, else by the last of the two words in the name.
  static Kind kind_of(const Name& name) {
    const words::Words op_type(name.op_type);
    if (op_type.count > 0) {
      const std::string_view word = op_type.word[0];
      return word == "tanh" ? kTanh : word == "sigmoid" ? kSigmoid : kNeither;
    }
    const words::Words lower(name.text);
    const std::string_view all(lower.text.data(), std::min(name.text.size(), lower.text.size()));
    const std::size_t tanh = all.rfind("tanh");
    const std::size_t sigmoid = all.rfind("sigmoid");
    if (tanh == std::string_view::npos && sigmoid == std::string_view::npos) return kNeither;
    if (tanh == std::string_view::npos) return kSigmoid;
    return sigmoid == std::string_view::npos || tanh > sigmoid ? kTanh : kSigmoid;
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const Name* name = batch.about(row);
    if (row.count() == 0 || is_single(row, name)) return kNotApplicable;
    if (state.known == 0) {
      if (name == nullptr) return kInsufficient;
      state.kind = kind_of(*name);
      state.known = 1;
    }
    if (state.kind == kNeither) return kNotApplicable;
    if (row.nan() > 0) return kInsufficient;
    const Interval& bounds = state.kind == kTanh ? cfg.tanh : cfg.sigmoid;
    const Bounds outside = elements_outside(row, batch, bounds);
    if (cfg.share_of == "elements") {
      state.window.full = true;
      state.window.add(batch.step, row.n(), 0, outside);
      state.saturated = outside;
    } else {
      judge_units(cfg, state, row, batch, bounds, outside);
      if (state.window.samples() < static_cast<double>(cfg.min_samples)) return kInsufficient;
      state.window.full = true;
    }
    if (100 * state.saturated.low > cfg.threshold_layer) return hit(state.kind);
    return 100 * state.saturated.high <= cfg.threshold_layer ? kOk : kInsufficient;
  }

  static Bounds elements_outside(const Row& row, const RowBatch& batch, const Interval& bounds) {
    double counted = -1;
    if (bounds.lo == -bounds.hi) {
      counted =
          batch.statistic(core::SparseStat::abs_ge_count, row.index(), {bounds.hi}).value_or(-1);
    }
    return share_outside(row, bounds.lo, bounds.hi, counted);
  }

  static void judge_units(const Config& cfg, State& state, const Row& row, const RowBatch& batch,
                          const Interval& bounds, const Bounds& outside) {
    const std::size_t at = row.index();
    const double expected = units_of(cfg.unit_axis, batch.about(row), row.count());
    double units = batch.statistic(core::SparseStat::unit_count, at).value_or(0);
    auto saturated = batch.statistic(core::SparseStat::unit_saturated_count, at,
                                     {bounds.lo, bounds.hi, cfg.threshold_inactivity});
    // Units of another kind than those asked for say nothing of these.
    if (cfg.unit_axis != "auto" && expected > 0 && units > 0 && units != expected) units = 0;
    if (!(units > 0)) {
      units = expected;
      saturated.reset();
    }
    UnitWindow& window = state.window;
    window.add(batch.step, row.n(), units, {1 - outside.high, 1 - outside.low});
    state.saturated =
        saturated && window.steps == 1
            ? Bounds{*saturated / units, *saturated / units}
            : share_of_units(window.active(), cfg.threshold_inactivity, units, window.samples());
  }

  static double badness(const Config&, const State& state, const Row*) {
    return state.saturated.low;
  }

  static Finding explain(const Config& cfg, const State& state, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned kind) {
    const Interval& bounds = kind == kTanh ? cfg.tanh : cfg.sigmoid;
    const bool elements = cfg.share_of == "elements";
    const double percent = 100 * state.saturated.low;
    Finding finding = Finding::that("saturated_percent", percent);
    finding.is(">", "threshold_layer", cfg.threshold_layer)
        .titled(subject.name, Verb::is, "saturated")
        .says(sentence(
            "{}{} % of the {} of {} are outside {} to {}, where {} is flat, at {} (limit {} %).",
            state.saturated.exact() ? "" : "At least ", percent, elements ? "values" : "units",
            subject.name, bounds.lo, bounds.hi, kLayerKinds[kind], subject.place(),
            cfg.threshold_layer))
        .advises(
            "No gradient passes a saturated unit. Use a smaller initialisation, normalise before "
            "the layer, lower the learning rate, or change the activation.")
        .since(state.window.since, state.window.steps)
        .with("lo", bounds.lo)
        .with("hi", bounds.hi)
        .with("min", row->min())
        .with("max", row->max())
        .with("count", row->count());
    if (state.window.units > 0) {
      finding.with("units", state.window.units).with("samples", state.window.samples());
    }
    // On which side, as far as signs and extremes tell.
    const auto side = [&](bool reached, bool sign, std::uint64_t count) {
      const double most = sign ? static_cast<double>(count) / row->n() : 1;
      return reached ? 100 * std::min(most, elements ? state.saturated.high : 1) : 0;
    };
    finding
        .with("low_side_percent_at_most",
              side(row->min() <= bounds.lo, bounds.lo < 0, row->negative()))
        .with("high_side_percent_at_most",
              side(row->max() >= bounds.hi, bounds.hi > 0, row->positive()));
    if (!state.saturated.exact()) finding.with("lower_bound", true);
    return finding;
  }
};

}  // namespace

RuleDescriptor saturated_activation() {
  return {.name = "saturated_activation",
          .original_name = "SaturatedActivation",
          .title = "Inputs of tanh or sigmoid layers are where the function is flat.",
          .unit = "tensor",
          .needs =
              "inputs of tanh and sigmoid layers (collection layers), with statistic at_least(3); "
              "original: saturation",
          .presets =
              "tocsin counts elements beyond ±3, where a derivative is below 0.01 (tanh) and 0.05 "
              "(sigmoid). original counts units that are almost always where the gradient is below "
              "1e-7, which hardly any network reaches.",
          .severity = core::Severity::warning,
          .groups = group::kPyTorch,
          .read = &read_row_rule<SaturatedActivation>};
}

}  // namespace tocsin::rules
