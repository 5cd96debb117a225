// Fires when a weight matrix is thrown about: a third of its norm at every step, all of it at once,
// or all of it after it had hardly moved; and when next to nothing of it is left, or it goes that way.
//
// Reads   statistics delta_l2, prev_l2 and delta_from_step of tensors with role weight and two
//         dimensions or more, and their norms.
// Window  two saved values of one (tensor, worker, mode), and how far it moved between those before;
//         its norm at the save before, and
//         the largest so far.
// Fires   from step warmup_steps (2) on, r = |W_s − W_p| / |W_p|:
//           r > threshold (0.3) · (s − p), `updates` (2) times in a row; or
//           r > once (1) · (s − p): both where the elements of W_p are 0.005 on average or more
//           r > replaced (0.9), where r had been below a quarter of that for four saves or longer
//           r / (s − p) > faster (3) times the most of late (each save back 0.85 of it; of four at least), also
//           relative to the learning rate, `updates` times in a row, of 16 elements or more: what moves the
//           weights is not what moved them before
//           |W_s| < withered (0.1) · its largest norm so far, for 16 elements or more: single numbers
//           pass through zero, many do not at once unless something takes them there
//           |W| fell by `shrinks` (0.005) per step or faster, in 4 saves in a row, and by a fifth in these; of 16
//           elements or more: at that pace two thirds are gone in 200 steps, and no step is remembered for longer
// Quiet   for parameters that are not trained, empty tensors, and but for the last two without the
//         statistics; but for `withered` also while the worker's training loss falls surely (loss_course.h) since the
//         moves began: a table that starts at zero, a layer on its way out of a saddle. `while_falling`.
// Source  our own; docs/rules/update_large.md. weight_update_ratio's limit of ten times the norm is
//         passed by training that has long been lost, and a schedule that goes wrong or a checkpoint
//         that was not read shows in the weights before it does in the loss.

#include <algorithm>
#include <cmath>
#include <utility>

#include "rules/contract/loss_course.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

struct UpdateLarge {
  static constexpr TensorUse kTensorUse = TensorUse::several;  // the training loss
  static constexpr std::span<const std::string_view> kKinds{};
  /// Layers that start at nothing, or nearly so, are many times their norm later without any fault.
  static constexpr double kOrdinary = 0.005;
  /// What a move that stands out is compared with: the largest of late, each save before by so much
  /// less.
  static constexpr double kForgets = 0.7;
  static constexpr double kStandsOut = 4;
  static constexpr std::uint32_t kKnown = 4;
  static constexpr std::uint64_t kMany = 16;  // elements whose norm tells something
  static constexpr std::uint32_t kFalls = 4;  // saves in a row that a norm must fall
  static constexpr double kLeft = 0.8;        // of the norm, after these
  static constexpr double kPaceForgets = 0.85;
  static constexpr double kStandsStill = 1e-6;  // a pace: what begins to move was not moved before
  enum class Sign : std::uint8_t { none, again, once, replaced, faster, withered, shrinks };

  struct Config {
    double threshold = 0.3;
    std::uint32_t updates = 2;
    double once = 1;
    double replaced = 0.9;
    double faster = 3;
    double withered = 0.1;
    double shrinks = 0.005;
    std::int64_t warmup_steps = 2;
    bool while_falling = false;
  };
  struct State {
    double ratio = 0;  // per step, of the latest update
    double delta = 0;
    double before = 0;
    std::int64_t from = 0;
    std::int64_t since = 0;
    std::uint64_t row = 0;  // updates in a row above the limit
    double usual = 0;       // share of its norm that it moves by between two saves
    std::uint32_t known = 0;
    Sign sign = Sign::none;
    Gap<3> gap{};
    double norm = 0;
    double largest = 0;  // norm so far
    std::int64_t largest_at = 0;
    double latest = 0;  // norm, of the save before
    std::int64_t latest_at = 0;
    double fell_from = 0;  // norm before it began to fall
    std::int64_t fell_since = 0;
    std::uint64_t falls = 0;  // saves in a row
    double pace = 0;          // most of late: share of its norm per step,
    double rated_pace = 0;    // and at the largest learning rate
    double rate_share =
        0;  // of the learning rate by the largest, at the save before; 0: none is known
    std::int64_t faster_since = 0;
    std::uint64_t faster = 0;  // saves in a row
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("threshold", cfg.threshold, config::greater_than(0.0),
                "largest move of a matrix per step, as a share of its norm");
    in.optional("updates", cfg.updates, config::at_least(std::uint32_t{1}),
                "updates in a row that must be above threshold");
    in.optional("once", cfg.once, config::at_least(0.0), "the same for a single update; 0 = off");
    in.optional("replaced", cfg.replaced, config::at_least(0.0),
                "largest move between two saves of a matrix that hardly moved before, as a share "
                "of its norm; 0 = off");
    in.optional("faster", cfg.faster, config::at_least(0.0),
                "largest pace, as a multiple of the recent pace relative to the learning rate, "
                "`updates` times in a row; 0 = off");
    in.optional("withered", cfg.withered, config::between(0.0, 1.0),
                "a matrix has withered below this share of its largest norm; 0 = off");
    in.optional("shrinks", cfg.shrinks, config::between(0.0, 1.0),
                "largest loss of norm per step, as a share, in four saves in a row; 0 = off");
    in.optional("warmup_steps", cfg.warmup_steps, config::at_least(std::int64_t{0}),
                "number of first steps that are not judged");
    in.optional("while_falling", cfg.while_falling,
                "also report moves while the training loss clearly falls");
  }

  static std::vector<Need> needs(const Config&) { return {{"weights", {"delta"}}}; }

  static void adjust(const Config&, Program& program) { program.selection.least_rank(2); }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    if (row.count() == 0 || (row.meta() & core::meta::kNotTrainable) != 0) return kNotApplicable;
    const Verdict moved = move(cfg, state, row, batch);
    const bool withered = withers(cfg, state, row, batch.step);
    const bool shrinks =
        falls(cfg, state, row, batch.step) && !learning_since(cfg, batch, state.fell_since);
    if (moved.outcome == EvaluationOutcome::hit || !(withered || shrinks)) return moved;
    state.sign = withered ? Sign::withered : Sign::shrinks;
    return hit();
  }

  /// Whether next to nothing is left of it.
  static bool withers(const Config& cfg, State& state, const Row& row, std::int64_t step) {
    state.norm = row.l2();
    if (!std::isfinite(state.norm) || row.count() < kMany) return false;
    if (state.norm > state.largest) {
      state.largest = state.norm;
      state.largest_at = step;
    }
    return state.norm < cfg.withered * state.largest;
  }

  /// Whether its norm falls from save to save at a pace that leaves nothing of it.
  static bool falls(const Config& cfg, State& state, const Row& row, std::int64_t step) {
    if (cfg.shrinks == 0 || !std::isfinite(state.norm) || row.count() < kMany) return false;
    const double before = std::exchange(state.latest, state.norm);
    const std::int64_t since = std::exchange(state.latest_at, step);
    const bool fell =
        state.norm < before &&
        state.norm < before * std::pow(1 - cfg.shrinks, static_cast<double>(distance(step, since)));
    if (fell && state.falls == 0) {
      state.fell_from = before;
      state.fell_since = since;
    }
    state.falls = fell ? state.falls + 1 : 0;
    return state.falls >= kFalls && state.norm < kLeft * state.fell_from;
  }

  static bool is_earlier(double from, std::int64_t step) {
    return from < static_cast<double>(step) && from > -9e15;
  }

  static Verdict move(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const auto delta = batch.statistic(core::SparseStat::delta_l2, row.index());
    const auto before = batch.statistic(core::SparseStat::prev_l2, row.index());
    const auto from = batch.statistic(core::SparseStat::delta_from_step, row.index());
    const bool known = delta && before && from && is_earlier(*from, batch.step) &&
                       !std::isnan(*delta) && !std::isnan(*before);
    if (!known || batch.step < cfg.warmup_steps) return kInsufficient;
    state.delta = *delta;
    state.before = *before;
    state.from = static_cast<std::int64_t>(*from);
    const auto steps = static_cast<double>(distance(batch.step, state.from));
    state.ratio = state.delta / state.before / steps;
    const double rms = state.before / std::sqrt(static_cast<double>(row.count()));
    const bool above = rms >= kOrdinary && state.delta > cfg.threshold * state.before * steps;
    state.row = above ? state.row + 1 : 0;
    if (state.row == 1) state.since = state.from;
    state.sign = Sign::none;
    if (stands_out(cfg, state)) state.sign = Sign::replaced;
    if (cfg.once > 0 && rms >= kOrdinary && state.delta > cfg.once * state.before * steps) {
      state.sign = Sign::once;
    }
    if (speeds(cfg, state, row, batch) && state.sign == Sign::none) state.sign = Sign::faster;
    if (state.row >= cfg.updates) state.sign = Sign::again;
    remember(state);
    if (state.sign == Sign::none) return kOk;
    return learns(cfg, state, batch) ? kInsufficient : hit();
  }

  /// Whether the loss has fallen since the moves began: then they are what learning takes.
  static bool learns(const Config& cfg, const State& state, const RowBatch& batch) {
    const std::int64_t since = state.sign == Sign::again    ? state.since
                               : state.sign == Sign::faster ? state.faster_since
                                                            : state.from;
    return learning_since(cfg, batch, since);
  }

  static bool learning_since(const Config& cfg, const RowBatch& batch, std::int64_t since) {
    return !cfg.while_falling && batch.losses != nullptr && batch.losses->fallen_since(since);
  }

  static bool stands_out(const Config& cfg, const State& state) {
    return cfg.replaced > 0 && state.known >= kKnown && state.delta > cfg.replaced * state.before &&
           kStandsOut * state.usual * state.before < state.delta;
  }

  /// Whether it moves several times as fast as it did of late.
  static bool speeds(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const double now = std::isfinite(batch.learning_share) ? batch.learning_share : 1;
    const double share = std::fmax(now, std::exchange(state.rate_share, now));
    const double rated = state.ratio / share;
    if (cfg.faster == 0 || row.count() < kMany || !std::isfinite(rated)) return false;
    const double rms = state.before / std::sqrt(static_cast<double>(row.count()));
    const bool above = state.known >= kKnown && rms >= kOrdinary && state.pace >= kStandsStill &&
                       state.ratio > cfg.faster * state.pace &&
                       rated > cfg.faster * state.rated_pace;
    if (!above) {
      state.faster = 0;
      state.pace = std::fmax(state.ratio, kPaceForgets * state.pace);
      state.rated_pace = std::fmax(rated, kPaceForgets * state.rated_pace);
      return false;
    }
    if (state.faster++ == 0) state.faster_since = state.from;
    return state.faster >= cfg.updates;
  }

  static void remember(State& state) {
    const double moved = state.delta / state.before;
    if (!std::isfinite(moved)) return;
    state.usual = std::max(moved, kForgets * state.usual);
    ++state.known;
  }

  static double badness(const Config&, const State& state, const Row*) { return state.ratio; }

  static Finding explain(const Config& cfg, const State& state, const Row*, const RowBatch* batch,
                         const Subject& subject, unsigned) {
    if (state.sign == Sign::replaced) return explain_replaced(cfg, state, batch, subject);
    if (state.sign == Sign::faster) return explain_faster(cfg, state, batch, subject);
    if (state.sign == Sign::withered) return explain_withered(cfg, state, subject);
    if (state.sign == Sign::shrinks) return explain_shrinks(state, subject);
    const bool once = state.sign == Sign::once;
    const double limit = once ? cfg.once : cfg.threshold;
    return Finding::that("update_per_step", state.ratio)
        .is(">", once ? "once" : "threshold", limit)
        .titled(subject.name, Verb::is, "changing too fast")
        .says(sentence("{} changes too fast: it moves by {} % of its norm per step between steps "
                       "{} and {}{}{}, {} saved steps in a row (limit {} %).",
                       subject.name, 100 * state.ratio, state.from, batch->step,
                       subject.worker.empty() ? "" : " on ", subject.worker, state.row,
                       100 * limit))
        .advises(
            "Lower the learning rate, warm it up, or clip gradients. At this pace, updates "
            "overwrite what was learned.")
        .since(state.row > 1 ? state.since : state.from, std::max<std::uint64_t>(state.row, 1) + 1)
        .with("delta_l2", state.delta)
        .with("prev_l2", state.before)
        .with("from_step", state.from)
        .with("updates", state.row);
  }

  static Finding explain_replaced(const Config& cfg, const State& state, const RowBatch* batch,
                                  const Subject& subject) {
    // The usual move knows of this one by now.
    return Finding::that("update", state.delta / state.before)
        .is(">", "replaced", cfg.replaced)
        .titled(subject.name, Verb::is, "replaced")
        .says(sentence("{} was replaced: it moved by {} % of its norm between steps {} and {}{}{}, "
                       "but hardly moved before (limit {} %).",
                       subject.name, 100 * state.delta / state.before, state.from, batch->step,
                       subject.worker.empty() ? "" : " on ", subject.worker, 100 * cfg.replaced))
        .advises(
            "Check what happened at that step. Most probable first: weights that were initialised "
            "again; a checkpoint that was not loaded; a learning rate that jumped.")
        .since(state.from, 2)
        .with("delta_l2", state.delta)
        .with("prev_l2", state.before)
        .with("from_step", state.from);
  }

  static Finding explain_faster(const Config& cfg, const State& state, const RowBatch* batch,
                                const Subject& subject) {
    return Finding::that("update_per_step", state.ratio)
        .is(">", "faster_than_of_late", cfg.faster * state.pace)
        .titled(subject.name, Verb::is, "changing far faster than before")
        .says(sentence(
            "{} moves far faster than before: by {} % of its norm per step between steps {} and "
            "{}{}{}, recently by at most {} %, and the loss does not fall (limit: {} times that).",
            subject.name, 100 * state.ratio, state.from, batch->step,
            subject.worker.empty() ? "" : " on ", subject.worker, 100 * state.pace, cfg.faster))
        .advises(
            "Check what changed at that step. Most probable first: the data, their scale or order; "
            "the loss; other code that writes the weights; faulty memory.")
        .since(state.faster_since, state.faster + 1)
        .with("delta_l2", state.delta)
        .with("prev_l2", state.before)
        .with("from_step", state.from)
        .with("pace_of_late", state.pace);
  }

  static Finding explain_withered(const Config& cfg, const State& state, const Subject& subject) {
    return Finding::that("share_of_norm", state.norm / state.largest)
        .is("<", "withered", cfg.withered)
        .titled(subject.name, Verb::has, "withered")
        .says(sentence("{} has withered: its norm is {} at {}, {} % of the {} that it had at step "
                       "{} (limit {} %).",
                       subject.name, state.norm, subject.place(), 100 * state.norm / state.largest,
                       state.largest, state.largest_at, 100 * cfg.withered))
        .advises(
            "Lower the weight decay or other penalties on weights. After a resume, check that "
            "weights were loaded with the type and scale in which they were stored.")
        .since(state.largest_at, 2)
        .with("norm", state.norm)
        .with("largest_norm", state.largest);
  }

  static Finding explain_shrinks(const State& state, const Subject& subject) {
    return Finding::that("share_of_norm", state.norm / state.fell_from)
        .is("<", "left", kLeft)
        .titled(subject.name, Verb::is, "shrinking away")
        .says(sentence("{} keeps shrinking: its norm is {} at {}, {} % of the {} that it had at "
                       "step {}, and fell in each of {} saves.",
                       subject.name, state.norm, subject.place(),
                       100 * state.norm / state.fell_from, state.fell_from, state.fell_since,
                       state.falls))
        .advises(
            "Lower the weight decay or the learning rate: each step removes the learning rate "
            "times the decay. Find what else pulls all weights towards zero.")
        .since(state.fell_since, state.falls + 1)
        .with("norm", state.norm)
        .with("norm_before", state.fell_from);
  }
};

}  // namespace

RuleDescriptor update_large() {
  return {.name = "update_large",
          .original_name = "UpdateLarge",
          .title = "A weight matrix changes too fast, is suddenly replaced, or shrinks to nothing.",
          .unit = "tensor",
          .needs = "collection weights with statistic delta",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "8",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_row_rule<UpdateLarge>};
}

}  // namespace tocsin::rules
