// Fires when the model is fed with values far from what networks are made for: pixels 0…255, raw
// features.
//
// This is the rule to copy: it judges one row of one tensor. In a copy, change what stands behind
// each line "Change:".
//
// Change: this head, and the sentence above.
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

// Change: the name of the struct.
struct InputRange {
  // Change: names of kinds, if the rule finds several things: update() answers hit(number of the kind).
  static constexpr std::span<const std::string_view> kKinds{};

  // Change: one field per parameter of `with:`, with its default.
  struct Config {
    double threshold = 30;
  };

  // Change: what one unit (tensor, worker, mode) remembers between rows. Plain values only: the
  // engine copies them into snapshots, byte by byte.
  struct State {};

  // Change: which tensors the rule judges if the user selects none: roles, collections, modes.
  static Defaults defaults(Preset) { return {.roles = {core::Role::input}}; }

  // Change: name, range and help of each parameter. Where the presets differ, set cfg.x here first.
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::greater_than(0.0),
                "magnitude above which an input counts as unscaled");
  }

  // Change: the collections and statistics that the hook must capture.
  static std::vector<Need> needs(const Config&) { return {{"inputs"}}; }

  // Change: the judgement. It runs for every row: no allocation, no loop over other rows.
  //   kNotApplicable  the rule says nothing about such tensors
  //   kInsufficient   it cannot judge this row, or not yet
  //   hit(), kOk      it can
  static Verdict update(const Config& cfg, State&, const Row& row, const RowBatch&) {
    if (row.count() == 0 || !core::is_floating(row.dtype())) return kNotApplicable;
    const double most = row.abs_max();
    if (std::isnan(most)) return kInsufficient;
    return most > cfg.threshold ? hit() : kOk;
  }

  // Change: how bad a row is. Of several units that hit in a step, the worst is named first. `row`
  // is null only for rules that wait for the end of the step.
  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : row->abs_max();
  }

  // Change: what people read: the title, one sentence with numbers, advice, and further evidence.
  static Finding explain(const Config& cfg, const State&, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned) {
    return Finding::that("abs_max", row->abs_max())
        .is(">", "threshold", cfg.threshold)
        .titled(sentence("input {}", subject.name), Verb::is, "not scaled")
        .says(sentence(
            "The model's input {} ranges from {} to {} at {}: it does not look scaled (limit {}).",
            subject.name, row->min(), row->max(), subject.place(), cfg.threshold))
        .advises(
            "Scale inputs to about mean 0 and deviation 1: divide pixels by 255 and normalise "
            "them, standardise features. If such values are intended, raise the threshold.")
        .with("min", row->min())
        .with("max", row->max())
        .with("mean", row->mean())
        .with("std", std::sqrt(row->variance()))
        .with("count", row->count());
  }
};

}  // namespace

// Change: name and title. `needs` says in words what must be captured. `original_name`, `presets`
// and `aliases` may be left out. `groups` may be left out only if the user must select tensors.
RuleDescriptor input_range() {
  return {.name = "input_range",
          .original_name = "InputRange",
          .title = "The model's inputs do not look scaled.",
          .unit = "tensor",
          .needs = "collection inputs",
          .severity = core::Severity::info,
          .groups = group::kPyTorch,
          .read = &read_row_rule<InputRange>};
}

}  // namespace tocsin::rules
