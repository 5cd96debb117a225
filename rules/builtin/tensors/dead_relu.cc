// Fires when too many units of a ReLU layer have gone silent.
//
// Reads   statistic units(threshold_inactivity) of outputs of ReLU layers; without it how many
//         values are positive, which proves most cases (share_bounds.h).
// Window  one step of one tensor, worker and mode; with min_samples as many saved steps in a row as
//         it takes to have so many samples of each unit.
// Fires   100 · units that are positive in less than threshold_inactivity % of their samples / units
//         > threshold_layer.
// Quiet   for single values and empty tensors, and for tensors with NaN.
// Source  Amazon SageMaker Debugger, DeadRelu; docs/rules/dead_relu.md. What a unit is, is our
//         reading: a filter of a convolution shares its weights and dies as a whole.

#include <cmath>

#include "rules/builtin/tensors/layer_units.h"
#include "rules/builtin/tensors/quiet_channels.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct DeadRelu {
  static constexpr std::span<const std::string_view> kKinds{};

  struct Config {
    double threshold_inactivity = 1;
    double threshold_layer = 50;
    std::string unit_axis = "auto";
    std::uint64_t min_samples = 1;
  };
  struct State {
    Bounds dead;  // share of units, of the latest evaluation
    UnitWindow window;
  };

  static Defaults defaults(Preset) { return {.patterns = {".*relu_output", ".*ReLU_output"}}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    if (preset == Preset::tocsin) cfg.threshold_layer = 60;
    in.optional("threshold_inactivity", cfg.threshold_inactivity, config::between(0.0, 100.0),
                "a unit is dead if it is positive in less than this percentage of its samples");
    in.optional("threshold_layer", cfg.threshold_layer, config::between(0.0, 100.0),
                "largest percentage of dead units");
    read_units(in, cfg);
  }

  static void adjust(const Config& cfg, Program& program) {
    const std::string units = fmt::format("units({})", cfg.threshold_inactivity);
    for (const std::string& name : program.common.collection_names) {
      program.needs.push_back({name, {units}});
    }
    if (program.common.collection_names.empty()) program.needs.push_back({"layers", {units}});
    if (!program.common.collection_names.empty() || !program.common.tensor_regex.empty()) return;
    program.selection.add_operator(core::Role::activation_out, "relu");
    program.selection.add_operator(core::Role::activation_out, "relu6");
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const Name* name = batch.about(row);
    if (row.count() == 0 || is_single(row, name)) return kNotApplicable;
    if (row.nan() > 0) return kInsufficient;
    const std::size_t at = row.index();
    const double expected = units_of(cfg.unit_axis, name, row.count());
    double units = batch.statistic(core::SparseStat::unit_count, at).value_or(0);
    auto dead =
        batch.statistic(core::SparseStat::unit_inactive_count, at, {cfg.threshold_inactivity});
    // Units of another kind than those asked for say nothing of these.
    if (cfg.unit_axis != "auto" && expected > 0 && units > 0 && units != expected) units = 0;
    if (!(units > 0)) {
      units = expected;
      dead.reset();
    }
    const double positive = static_cast<double>(row.positive()) / row.n();
    UnitWindow& window = state.window;
    window.add(batch.step, row.n(), units, {positive, positive});
    if (window.samples() < static_cast<double>(cfg.min_samples)) return kInsufficient;
    window.full = true;
    state.dead =
        dead && window.steps == 1
            ? Bounds{*dead / units, *dead / units}
            : share_of_units(window.active(), cfg.threshold_inactivity, units, window.samples());
    if (100 * state.dead.low > cfg.threshold_layer) return hit();
    return 100 * state.dead.high <= cfg.threshold_layer ? kOk : kInsufficient;
  }

  static double badness(const Config&, const State& state, const Row*) { return state.dead.low; }

  static Finding explain(const Config& cfg, const State& state, const Row* row,
                         const RowBatch* batch, const Subject& subject, unsigned) {
    const double percent = 100 * state.dead.low;
    Finding finding = Finding::that("dead_percent", percent);
    finding.is(">", "threshold_layer", cfg.threshold_layer)
        .titled(subject.name, Verb::has, "dead units")
        .says(sentence("{}{} % of the units of {} are dead: positive in less than {} % of their "
                       "samples at {} (limit {} %).",
                       state.dead.exact() ? "" : "At least ", percent, subject.name,
                       cfg.threshold_inactivity, subject.place(), cfg.threshold_layer))
        .advises(
            "Dead units get no gradient and do not recover. Lower the learning rate, check "
            "initialisation and biases, or use a leaky activation.")
        .since(state.window.since, state.window.steps)
        .with("positive_share", static_cast<double>(row->positive()) / row->n())
        .with("count", row->count());
    if (state.window.units > 0) {
      finding.with("units", state.window.units).with("samples", state.window.samples());
    }
    if (!state.dead.exact()) finding.with("lower_bound", true);
    if (batch == nullptr) return finding;
    auto quiet = quiet_channels(*batch, row->index());
    if (!quiet.empty()) finding.with("quietest_channels", std::move(quiet));
    return finding;
  }
};

}  // namespace

RuleDescriptor dead_relu() {
  return {.name = "dead_relu",
          .original_name = "DeadRelu",
          .title = "Too many units of a ReLU layer are dead.",
          .unit = "tensor",
          .needs = "outputs of ReLU layers (collection layers), with statistic units(1)",
          .presets =
              "tocsin accepts 60 % of dead units, original 50 %: on a small batch, half of a wide "
              "healthy layer is silent.",
          .severity = core::Severity::warning,
          .groups = group::kPyTorch,
          .read = &read_row_rule<DeadRelu>};
}

}  // namespace tocsin::rules
