// Fires when a chosen tensor has had the same values for several saved steps.
//
// Reads   statistic digest of the tensors that the user selects; the statistics delta and the base
//         columns, which prove other cases. A single value is compared as it is.
// Window  the latest num_steps (3) saved values of one (tensor, worker, mode).
// Fires   every earlier value y of the window and the newest x agree: |y_i − x_i| <= atol + rtol·|x_i|
//         for all i, infinities exactly, integers exactly.
// Quiet   until the window is full, for empty tensors, for NaN (unless equal_nan), and where neither
//         equality nor change is proven.
// Source  Amazon SageMaker Debugger, UnchangedTensor; docs/rules/unchanged_tensor.md.

#include <cmath>
#include <optional>

#include "rules/contract/sentence.h"
#include "rules/contract/windowed_row.h"

namespace tocsin::rules {
namespace {

struct UnchangedTensor {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::uint32_t kMost = 256;

  struct Config {
    std::uint32_t num_steps = 3;
    double rtol = 1e-5;
    double atol = 1e-8;
    bool equal_nan = false;
  };
  /// What is known of one saved value.
  struct Item {
    std::int64_t step = 0;
    std::uint64_t digest = 0;
    std::uint64_t count = 0;
    std::uint64_t nan = 0;
    std::uint64_t posinf = 0;
    std::uint64_t neginf = 0;
    double min = 0;
    double max = 0;
    double mean = 0;
    double abs_mean = 0;
    double moved = HUGE_VAL;   // at least max |x − y| to the save before; +Inf: not known
    double excess = HUGE_VAL;  // max (|x − y| − rtol·|x|) to it
    std::uint64_t has_digest = 0;
    std::uint64_t shape = 0;  // 0: not known
  };
  struct State {
    Latest window;
    std::int64_t since = 0;         // of the latest hit
    double largest = 0;             // difference that the proof leaves room for
    std::uint64_t approximate = 0;  // by a chain of neighbours
  };
  enum class Relation : std::uint8_t { same, roughly, changed, unknown };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .needs_selector = true}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("num_steps", cfg.num_steps, config::between(std::uint32_t{2}, kMost),
                "number of saved values in a row that must be equal");
    in.optional("rtol", cfg.rtol, config::at_least(0.0), "tolerance relative to the newest value");
    in.optional("atol", cfg.atol, config::at_least(0.0), "tolerance in units of the tensor");
    in.optional("equal_nan", cfg.equal_nan, "whether NaN equals NaN");
  }

  static void adjust(const Config&, Program& program) {
    for (const std::string& name : program.common.collection_names) {
      program.needs.push_back({name, {"digest"}});
    }
  }

  static std::size_t window(const Config& cfg) { return cfg.num_steps; }

  static Item item_of(const Config& cfg, const Row& row, const RowBatch& batch,
                      const Item* before) {
    Item item{batch.step,   0,         row.count(), row.nan(),  row.posinf(),
              row.neginf(), row.min(), row.max(),   row.mean(), row.abs_mean()};
    item.shape = batch.shape_of(row);
    if (batch.sparse.empty()) return item;
    if (const auto digest = batch.digest(row.index())) {
      item.digest = *digest;
      item.has_digest = 1;
    }
    const auto from = batch.statistic(core::SparseStat::delta_from_step, row.index());
    if (before == nullptr || !from || *from != static_cast<double>(before->step)) return item;
    // No element differs by more than the norm of all differences.
    const auto most = batch.statistic(core::SparseStat::delta_max_abs, row.index());
    const auto norm = batch.statistic(core::SparseStat::delta_l2, row.index());
    if (most && std::isfinite(*most)) {
      item.moved = *most;
    } else if (norm && std::isfinite(*norm)) {
      item.moved = *norm * (1 + 1e-6);
    }
    item.excess =
        batch.statistic(core::SparseStat::delta_excess, row.index(), {cfg.rtol}).value_or(HUGE_VAL);
    return item;
  }

  static bool is_whole(core::Dtype dtype) {
    return !core::is_floating(dtype) && dtype != core::Dtype::unknown &&
           dtype != core::Dtype::c64 && dtype != core::Dtype::c128;
  }

  static bool agree(double y, double x, double allowed) {
    if (!(std::fabs(y - x) <= allowed)) return x == y;  // which infinities may be
    return (!std::isinf(x) && !std::isinf(y)) || x == y;
  }

  // By shape, or by how many elements are no finite numbers.
  static bool differs_in_counts(const Config& cfg, const Item& y, const Item& x) {
    return y.count != x.count || y.shape != x.shape || y.nan != x.nan ||
           (x.nan > 0 && !cfg.equal_nan) || y.posinf != x.posinf || y.neginf != x.neginf;
  }

  // Whether the older value y is the newest one x. `moved`: at least how far anything went between.
  static Relation relate(const Config& cfg, const Item& y, const Item& x, core::Dtype dtype,
                         double moved) {
    const bool whole = is_whole(dtype);
    const double rtol = whole ? 0 : cfg.rtol;
    const double atol = whole ? 0 : cfg.atol;
    if (differs_in_counts(cfg, y, x)) return Relation::changed;
    const bool digests = y.has_digest != 0 && x.has_digest != 0;
    if (digests && y.digest == x.digest) return Relation::same;
    if (x.count == 1 && dtype != core::Dtype::c64 && dtype != core::Dtype::c128) {
      const bool same = x.nan > 0 || agree(y.min, x.min, atol + rtol * std::fabs(x.min));
      return same ? Relation::same : Relation::changed;
    }
    if (digests && rtol == 0 && atol == 0) return Relation::changed;
    if (moved <= atol) return Relation::same;
    if (proves_change(y, x, atol, rtol)) return Relation::changed;
    return Relation::unknown;
  }

  // If every element agrees within atol + rtol·|x_i|, so do extremes and means within what that is
  // at most, and on average.
  static bool proves_change(const Item& y, const Item& x, double atol, double rtol) {
    if (x.nan + x.posinf + x.neginf > 0) return false;
    const double least = std::fabs(x.min);
    const double largest = std::fabs(x.max);
    // The larger one, or the one that is a number.
    const double most = atol + rtol * (least > largest || std::isnan(largest) ? least : largest);
    const double average = (atol + rtol * x.abs_mean) * (1 + 1e-6);
    const double rounding = 2e-5 * x.abs_mean;  // of the sums
    return !agree(y.min, x.min, most) || !agree(y.max, x.max, most) ||
           !agree(y.mean, x.mean, average + rounding) ||
           !agree(y.abs_mean, x.abs_mean, average + rounding);
  }

  static Verdict update(const Config& cfg, State& state, std::span<Item> items, const Row& row,
                        const RowBatch& batch) {
    if (row.count() == 0 || row.dtype() == core::Dtype::text) return kNotApplicable;
    if (state.window.size > 0 && state.window.at(items, 0).step >= batch.step) {
      state.window.clear();  // the run went back to an earlier step
    }
    const Item* before = state.window.size == 0 ? nullptr : &state.window.at(items, 0);
    state.window.push(items, item_of(cfg, row, batch, before));
    if (state.window.size < items.size()) return kInsufficient;
    return compare(cfg, state, items, row.dtype());
  }

  static Verdict compare(const Config& cfg, State& state, std::span<Item> items,
                         core::Dtype dtype) {
    const Item& newest = state.window.at(items, 0);
    bool known = true;
    bool chained = !is_whole(dtype);  // each is within tolerance of its neighbour
    double moved = 0;
    state.approximate = 0;
    for (std::uint32_t back = 1; back < state.window.size; ++back) {
      const Item& next = state.window.at(items, back - 1);
      moved += next.moved;
      const bool apart = chained && next.excess > cfg.atol && next.excess < HUGE_VAL;
      chained = chained && next.excess <= cfg.atol;
      Relation relation = relate(cfg, state.window.at(items, back), newest, dtype, moved);
      if (relation == Relation::unknown && chained) {
        relation = back == 1 ? Relation::same : Relation::roughly;
      } else if (relation == Relation::unknown && apart) {
        relation = Relation::changed;
      }
      if (relation == Relation::changed) return kOk;
      if (relation == Relation::roughly) state.approximate = 1;
      known = known && relation != Relation::unknown;
    }
    if (!known) return kInsufficient;
    state.since = state.window.at(items, state.window.size - 1).step;
    state.largest = std::isfinite(moved) ? moved : 0;
    return hit();
  }

  static double badness(const Config&, const State&, const Row* row) {
    return row == nullptr ? 0 : row->n();
  }

  static Finding explain(const Config& cfg, const State& state, const Row* row, const RowBatch*,
                         const Subject& subject, unsigned) {
    Finding finding = Finding::that("saved_values", cfg.num_steps);
    finding.is(">=", "num_steps", cfg.num_steps)
        .titled(subject.name, Verb::is, "unchanged")
        .says(sentence("{} has not changed over {} saved steps, from {} to {}{}{}.", subject.name,
                       cfg.num_steps, state.since, subject.step,
                       subject.worker.empty() ? "" : " on ", subject.worker))
        .advises(
            "If you train it, check that it gets a gradient, that it is in the optimizer, and that "
            "the learning rate is not 0. If you froze it on purpose, leave it out of the "
            "selection.")
        .since(state.since, cfg.num_steps)
        .with("largest_difference", state.largest)
        .with("count", row->count());
    if (state.approximate != 0) finding.with("approximate", true);
    return finding;
  }
};

}  // namespace

RuleDescriptor unchanged_tensor() {
  return {.name = "unchanged_tensor",
          .original_name = "UnchangedTensor",
          .title = "A chosen tensor has the same values for several saved steps.",
          .unit = "tensor",
          .needs = "the tensors named by collection_names or tensor_regex, with statistic digest",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .read = &read_windowed_row_rule<UnchangedTensor>};
}

}  // namespace tocsin::rules
