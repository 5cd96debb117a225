// Fires when the model is fed with the same value over and over: a broken reader, a mask that wipes
// everything out.
//
// Reads   Σ(x − mean)² and n of tensors with role input, and of squared_error_input_1: the one target
//         that the hook found for all samples of a step.
// Window  one step of one tensor, worker and mode, three sampled ones in a row (min_hits 3).
// Fires   variance < threshold (1e-10).
// Quiet   for fewer than two elements, for tensors with NaN or Inf, for masks and segments (bool, and
//         integers that are all 0 or all 1), and for a further input (<model>_input_1, …) that has
//         never varied: the first state of a recurrent cell, a mask of floats, a step size.
// Source  our own; docs/rules/constant_input.md.

#include <cmath>

#include "rules/builtin/shared/input_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct ConstantInput {
  static constexpr std::span<const std::string_view> kKinds{};

  static constexpr std::string_view kTarget = "squared_error_input_1";

  struct Config {
    double threshold = 1e-10;
  };
  struct State {
    std::uint64_t row = 0;  // sampled steps in a row
    std::int64_t since = 0;
    std::uint64_t varied = 0;  // 1: a step was not constant
  };

  static Defaults defaults(Preset) {
    return {.roles = {core::Role::input},
            .patterns = {R"((^|\.)squared_error_input_1$)"},
            .min_hits = 3};
  }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::greater_than(0.0),
                "variance below which an input counts as constant");
  }

  static std::vector<Need> needs(const Config&) { return {{"inputs"}, {"labels"}}; }

  // An attention mask that lets everything through, the one segment of a text: constant in every
  // healthy job.
  static bool is_mask(const Row& row) {
    const core::Dtype dtype = row.dtype();
    if (dtype == core::Dtype::boolean) return true;
    if (core::is_floating(dtype) || dtype == core::Dtype::unknown) return false;
    return row.zero() == row.count() || (row.min() == 1 && row.max() == 1);
  }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    if (row.count() < 2 || is_mask(row)) return kNotApplicable;
    const double v = row.variance();
    if (!std::isfinite(v)) return kInsufficient;
    if (!(v < cfg.threshold)) {
      state.row = 0;
      state.varied = 1;
      return kOk;
    }
    const Name* name = batch.about(row);
    const bool beside =
        name != nullptr && is_further_input(name->text) && !name->text.ends_with(kTarget);
    if (state.varied == 0 && beside) return kNotApplicable;
    if (state.row++ == 0) state.since = batch.step;
    return hit();
  }

  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : -row->variance();
  }

  static Finding explain(const Config& cfg, const State& state, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned) {
    const bool target = subject.name.ends_with(kTarget);
    return Finding::that("variance", row->variance())
        .is("<", "threshold", cfg.threshold)
        .titled(target ? "target" : subject.name, Verb::is, "constant")
        .says(target ? sentence("All samples of a step have the same target (newest: {}), in {} "
                                "sampled steps in a row up to {}.",
                                row->mean(), state.row, subject.place())
                     : sentence("The model's input {} is constant: {} everywhere, in {} sampled "
                                "steps in a row up to {}.",
                                subject.name, row->mean(), state.row, subject.place()))
        .advises(target ? "Check the shapes in the loss: [n] beside [n, 1] compares every output "
                          "with every target, and the model learns their mean."
                        : "Check what the data loader returns. Most probable first: an empty or "
                          "unreadable source; a division by zero in normalisation; a mask or "
                          "augmentation that erases everything.")
        .since(state.since, state.row)
        .with("mean", row->mean())
        .with("count", row->count());
  }
};

}  // namespace

RuleDescriptor constant_input() {
  return {.name = "constant_input",
          .original_name = "ConstantInput",
          .title = "The model's inputs or targets are all the same.",
          .unit = "tensor",
          .needs = "collection inputs",
          .presets = "",
          .severity = core::Severity::error,
          .version = "3",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_row_rule<ConstantInput>};
}

}  // namespace tocsin::rules
