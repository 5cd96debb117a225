// Fires when the model is fed with values far from what networks are made for: pixels 0…255, raw
// features.
//
// Reads   min and max of tensors with role input.
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   max |x| > threshold (30).
// Quiet   for integers (token ids, indices), empty tensors, and tensors with NaN.
// Source  our own; docs/rules/input_range.md.

#include <cmath>

#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct InputRange {
  static constexpr std::span<const std::string_view> kKinds{};

  struct Config {
    double threshold = 30;
  };
  struct State {};

  static Defaults defaults(Preset) { return {.roles = {core::Role::input}}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::greater_than(0.0),
                "magnitude above which an input counts as unscaled");
  }

  static std::vector<Need> needs(const Config&) { return {{"inputs"}}; }

  static Verdict update(const Config& cfg, State&, const Row& row, const RowBatch&) {
    if (row.count() == 0 || !core::is_floating(row.dtype())) return kNotApplicable;
    const double most = row.abs_max();
    if (std::isnan(most)) return kInsufficient;
    return most > cfg.threshold ? hit() : kOk;
  }

  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : row->abs_max();
  }

  static Finding explain(const Config& cfg, const State&, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned) {
    return Finding::that("abs_max", row->abs_max())
        .is(">", "threshold", cfg.threshold)
        .titled(sentence("input {}", subject.name), Verb::is, "not scaled")
        .says(sentence("The model's input {} reaches from {} to {} at {}: it does not look scaled "
                       "(limit {}).",
                       subject.name, row->min(), row->max(), subject.place(), cfg.threshold))
        .advises(
            "Scale inputs to about mean 0 and deviation 1: divide pixels by 255 and normalise "
            "them, standardise features. If such values are meant, raise the threshold.")
        .with("min", row->min())
        .with("max", row->max())
        .with("mean", row->mean())
        .with("std", std::sqrt(row->variance()))
        .with("count", row->count());
  }
};

}  // namespace

RuleDescriptor input_range() {
  return {.name = "input_range",
          .original_name = "InputRange",
          .title = "The model is fed with values that do not look scaled.",
          .unit = "tensor",
          .needs = "collection inputs",
          .presets = "",
          .severity = core::Severity::info,
          .groups = group::kPyTorch,
          .read = &read_row_rule<InputRange>};
}

}  // namespace tocsin::rules
