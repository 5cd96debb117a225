// Fires when a weight matrix holds one value: its units compute the same, get the same gradient, and
// nothing ever breaks the symmetry.
//
// Reads   min, max and n of tensors with role weight and two dimensions or more that are larger than 1.
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   min = max for more than 64 elements (min_elements 65). All zeros, and all ones of three
//         dimensions: at the second saved step without a change, 10 updates after the first. Layers start so
//         on purpose (adapters, residual branches, heads; gains of a normalisation over channels and points): they
//         get their first gradient when what stands behind them has moved, and a warm-up may begin at a rate of 0.
// Quiet   for parameters that are not trained, for tensors with NaN or Inf, for vectors that are
//         written as [n, 1, 1]: scales, biases; and beside a weight of the same shape in the same module whose
//         values differ (means beside spreads, directions beside sizes), where both are in one record.
// Source  our own; docs/rules/identical_parameters.md.

#include <cmath>

#include "rules/builtin/tensors/matrix_shape.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct IdenticalParameters {
  static constexpr std::span<const std::string_view> kKinds{};

  /// Updates after which a zero start is over: two or three branches that begin at zero behind each other.
  static constexpr std::int64_t kStart = 10;

  struct Config {
    std::uint64_t min_elements = 65;
  };
  struct State {
    std::int64_t since = 0;
    std::uint64_t meant = 0;  // saved steps in a row that may be so on purpose
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("min_elements", cfg.min_elements, config::at_least(std::uint64_t{2}),
                "smaller matrices are not judged");
  }

  static std::vector<Need> needs(const Config&) { return {{"weights"}}; }

  static void adjust(const Config&, Program& program) { program.selection.least_rank(2); }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const Name* name = batch.about(row);
    if (row.count() < cfg.min_elements || (row.meta() & core::meta::kNotTrainable) != 0 ||
        (name != nullptr && !is_matrix(name->shape))) {
      return kNotApplicable;
    }
    if (row.non_finite() > 0) return kInsufficient;
    if (row.min() != row.max()) {
      state.meant = 0;
      return kOk;
    }
    if (name != nullptr && is_told_apart(*name, batch)) return kInsufficient;
    const bool gain = row.min() == 1 && name != nullptr && name->shape.size() == kGainRank;
    if (row.zero() != row.count() && !gain) {
      state.meant = 0;
      return hit();
    }
    if (state.meant++ == 0) state.since = batch.step;
    return state.meant >= 2 && distance(batch.step, state.since) >= kStart ? hit() : kInsufficient;
  }

  static bool is_told_apart(const Name& name, const RowBatch& batch) {
    for (std::size_t i = 0; i < batch.rows; ++i) {
      const Row other(batch.columns, batch.rows, i);
      if (other.role() != core::Role::weight || !(other.min() < other.max())) continue;
      const Name* its = batch.about(other);
      if (its != nullptr && stands_beside(name, *its)) return true;
    }
    return false;
  }

  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : row->n();
  }

  static Finding explain(const Config&, const State& state, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned) {
    Finding finding = Finding::that("variance", 0);
    finding.is("<=", "limit", 0)
        .titled(subject.name, Verb::has, "identical weights")
        .says(sentence("All {} weights of {} are {} at {}, so all its units are the same.",
                       row->count(), subject.name, row->mean(), subject.place()))
        .advises(
            "Initialise weights at random (Xavier, Kaiming). Units that start equal get the same "
            "gradient and stay equal.")
        .with("value", row->mean())
        .with("count", row->count());
    if (state.meant >= 2) finding.since(state.since, state.meant);
    return finding;
  }
};

}  // namespace

RuleDescriptor identical_parameters() {
  return {.name = "identical_parameters",
          .original_name = "IdenticalParameters",
          .title = "All values of a weight matrix are equal.",
          .unit = "tensor",
          .needs = "collection weights",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "4",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_row_rule<IdenticalParameters>};
}

}  // namespace tocsin::rules
