// Fires when a weight matrix is thrown about: an update of a third of its norm at every step.
//
// Reads   statistics delta_l2, prev_l2 and delta_from_step of tensors with role weight and two
//         dimensions or more.
// Window  two saved values of one (tensor, worker, mode), twice in a row (min_hits 2).
// Fires   |W_s − W_p| > threshold (0.3) · |W_p| · (s − p), from step warmup_steps (2) on.
// Quiet   for parameters that are not trained, empty tensors, and without the statistics.
// Source  our own; docs/rules/update_large.md. weight_update_ratio's limit of ten times the norm is
//         passed by training that has long been lost.

#include <cmath>

#include "rules/rule.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

struct UpdateLarge {
  static constexpr std::span<const std::string_view> kKinds{};

  struct Config {
    double threshold = 0.3;
    std::int64_t warmup_steps = 2;
  };
  struct State {
    double ratio = 0;  // per step, of the latest update
    double delta = 0;
    double before = 0;
    std::int64_t from = 0;
    std::int64_t since = 0;
    std::uint64_t row = 0;  // updates in a row above the limit
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes, .roles = {core::Role::weight}, .min_hits = 2};
  }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::greater_than(0.0),
                "share of its norm by which a matrix may move per step");
    in.optional("warmup_steps", cfg.warmup_steps, config::at_least(std::int64_t{0}),
                "first steps, which are not judged");
  }

  static std::vector<Need> needs(const Config&) { return {{"weights", {"delta"}}}; }

  static void adjust(const Config&, Program& program) { program.selection.least_rank(2); }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    if (row.count() == 0 || (row.meta() & core::meta::kNotTrainable) != 0) return kNotApplicable;
    const auto delta = batch.statistic(core::SparseStat::delta_l2, row.index());
    const auto before = batch.statistic(core::SparseStat::prev_l2, row.index());
    const auto from = batch.statistic(core::SparseStat::delta_from_step, row.index());
    const bool known = delta && before && from && *from < static_cast<double>(batch.step) &&
                       *from > -9e15 && !std::isnan(*delta) && !std::isnan(*before);
    if (!known || batch.step < cfg.warmup_steps) return kInsufficient;
    state.delta = *delta;
    state.before = *before;
    state.from = static_cast<std::int64_t>(*from);
    const auto steps = static_cast<double>(distance(batch.step, state.from));
    state.ratio = state.delta / state.before / steps;
    if (!(state.delta > cfg.threshold * state.before * steps)) {
      state.row = 0;
      return kOk;
    }
    if (state.row++ == 0) state.since = state.from;
    return hit();
  }

  static double badness(const Config&, const State& state, const Row*) { return state.ratio; }

  static Finding explain(const Config& cfg, const State& state, const Row*, const RowBatch* batch,
                         const Subject& subject, unsigned) {
    return Finding::that("update_per_step", state.ratio)
        .is(">", "threshold", cfg.threshold)
        .says(sentence("{} is thrown about: it moves by {} % of its norm per step between steps {} "
                       "and {}{}{}, {} saved steps in a row (limit {} %).",
                       subject.name, 100 * state.ratio, state.from, batch->step,
                       subject.worker.empty() ? "" : " on ", subject.worker, state.row,
                       100 * cfg.threshold))
        .advises(
            "Lower the learning rate, warm it up, or clip gradients; what was learnt before is "
            "overwritten at this pace.")
        .since(state.since, state.row + 1)
        .with("delta_l2", state.delta)
        .with("prev_l2", state.before)
        .with("from_step", state.from)
        .with("updates", state.row);
  }
};

}  // namespace

RuleDescriptor update_large() {
  return {.name = "update_large",
          .original_name = "UpdateLarge",
          .title = "A weight matrix moves by a third of its norm per step, again and again.",
          .unit = "tensor",
          .needs = "collection weights with statistic delta",
          .presets = "",
          .severity = core::Severity::warning,
          .read = &read_row_rule<UpdateLarge>};
}

}  // namespace tocsin::rules
