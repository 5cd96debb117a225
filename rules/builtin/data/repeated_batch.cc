// Fires when training gets one and the same batch again and again.
//
// Reads   count, Σx, Σx², minimum, maximum, zeros and negatives of tensors with role input, all of a worker's
//         together, in training and in evaluation; the training loss.
// Window  per worker `repeats` (3) saved train steps in a row, and the losses between them.
// Fires   when the numbers are those of the saved step before, exactly, and
//           stuck      they had changed from save to save, three times at the same distance at least
//           one_batch  they were so from the start, and an evaluation step, or two that differ, hold more than
//                      twice as many elements: so small a training set is none
// Quiet   for inputs without variance (constant_input) or with values that are not finite; one_batch where the
//         mean and the mean square of every input seen are the same (one-hot rows, permutations: those
//         of other batches are no others), where the losses return with the distance of the saves (the loader
//         goes round, and every save sees the same place of it), or where too few losses tell.
// Source  our own; docs/rules/repeated_batch.md.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kRepeatedKinds[] = {"stuck", "one_batch"};

struct RepeatedBatch {
  static constexpr std::span<const std::string_view> kKinds = kRepeatedKinds;
  static constexpr bool kPerWorker = true;
  static constexpr bool kJoinsModes = true;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kStuck, kOneBatch };
  static constexpr std::uint32_t kMoves = 3;   // changes after which a loader is known to move
  static constexpr double kHeld = 2;           // evaluation by training, in elements
  static constexpr std::size_t kLosses = 256;  // kept
  static constexpr std::uint32_t kLeastPairs = 4;
  static constexpr double kReturns = 0.5;  // correlation of losses a distance apart
  static constexpr double kSmooth = 0.05;  // their own movement, by how far they went meanwhile

  struct Config {
    std::uint32_t repeats = 3;
  };
  struct LossAt {
    std::int64_t step = 0;
    double loss = 0;
    template <typename A>
    friend void io(A& a, LossAt& l) {
      io_all(a, l.step, l.loss);
    }
  };
  /// What the inputs of a step come to.
  struct Batch {
    std::vector<double> numbers;
    double elements = 0;
    double sum = 0;
    double squares = 0;
    bool finite = true;
    bool varies = false;  // within itself
  };
  struct State {
    std::vector<double> batch;  // numbers of the newest; empty: none yet
    double elements = 0;
    std::uint32_t row = 0;  // saved steps in a row with it
    std::int64_t since = 0;
    std::int64_t newest = 0;
    std::int64_t distance = 0;  // of the newest from the one before
    std::uint32_t moves = 0;    // changes at that distance
    std::vector<double> held;   // numbers of the newest evaluation step
    double held_elements = 0;
    double most_held = 0;
    std::uint32_t seen = 0;  // 0: no mean is known
    double mean = 0;         // of the first inputs
    double square = 0;
    std::uint32_t differs = 0;  // 1: others had another
    std::vector<LossAt> losses;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.batch, s.elements, s.row, s.since, s.newest, s.distance, s.moves, s.held,
             s.held_elements, s.most_held, s.seen, s.mean, s.square, s.differs, s.losses);
    }
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes | mode_bit(core::Mode::eval)}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("repeats", cfg.repeats, config::at_least(2U),
                "saved training steps in a row with the same inputs");
  }
  static std::vector<Need> needs(const Config&) { return {{"inputs"}, {"losses"}}; }
  static void adjust(const Config&, Program& program) {
    if (program.selection.empty()) program.selection.add_role(core::Role::input);
    program.selection.add_role(core::Role::loss);
  }

  // --------------------------------------------------------------------------- accumulation

  static Batch batch_of(const StepSet& set) {
    Batch out;
    for (const StepRow& one : set.rows) {
      if (one.scalar || one.row.count == 0 || one.role() == core::Role::loss) continue;
      const core::SummaryRow& row = one.row;
      out.finite = out.finite && row.non_finite() == 0 && std::isfinite(row.sumsq);
      out.varies = out.varies || row.min != row.max;
      for (const double number :
           {row.n(), row.sum, row.sumsq, row.min, row.max, static_cast<double>(row.zero),
            static_cast<double>(row.negative)}) {
        out.numbers.push_back(number);
      }
      out.elements += row.n();
      out.sum += row.sum;
      out.squares += row.sumsq;
    }
    return out;
  }

  static bool apart(double a, double b) {
    return std::fabs(a - b) > 1e-9 * std::max(std::fabs(a), std::fabs(b));
  }
  static void compare(State& state, const Batch& batch) {
    const double mean = batch.sum / batch.elements;
    const double square = batch.squares / batch.elements;
    if (state.seen == 0) {
      state.seen = 1;
      state.mean = mean;
      state.square = square;
    } else if (apart(mean, state.mean) || apart(square, state.square)) {
      state.differs = 1;
    }
  }

  static void hold(State& state, Batch batch) {
    if (batch.numbers == state.batch) return;  // the training batch, evaluated
    const bool other = !state.held.empty() && batch.numbers != state.held;
    const double together = batch.elements + (other ? state.held_elements : 0);
    state.most_held = std::max(state.most_held, together);
    state.held_elements = batch.elements;
    state.held = std::move(batch.numbers);
  }

  static void add_loss(State& state, const StepSet& set, const Scope& scope) {
    double sum = 0;
    double values = 0;
    for (const StepRow& row : set.rows) {
      if (!row.scalar || row.role() != core::Role::loss) continue;
      const Name* name = scope.find(row.name());
      if (name == nullptr) continue;
      const MetricName read = metric_name(name->text);
      if (read.set != 0 && !read.train_word) continue;
      sum += row.row.sum;
      ++values;
    }
    if (values == 0 || !std::isfinite(sum)) return;
    state.losses.push_back({set.step, sum / values});
    if (state.losses.size() > kLosses) state.losses.erase(state.losses.begin());
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const bool trains = set.mode != core::Mode::eval;
    if (trains) add_loss(state, set, report.scope());
    Batch batch = batch_of(set);
    if (batch.numbers.empty()) return;
    if (batch.finite) compare(state, batch);
    if (!trains) {
      if (batch.finite) hold(state, std::move(batch));
      return;
    }
    const bool finite = batch.finite;
    const bool varies = batch.varies;
    const bool same = take(state, std::move(batch), set.step);
    const Verdict verdict = !finite   ? kInsufficient
                            : !varies ? kNotApplicable
                            : !same   ? kOk
                                      : compare(cfg, state);
    report.evaluated({}, "inputs", verdict, [&](const Subject& subject, unsigned kind) {
      return explain(state, subject, kind);
    });
  }

  /// Whether it is the batch before.
  static bool take(State& state, Batch batch, std::int64_t step) {
    const bool known = !state.batch.empty();
    const std::int64_t gone = known ? distance(step, state.newest) : 0;
    const bool same = known && batch.finite && batch.numbers == state.batch;
    if (gone != state.distance) state.moves = 0;
    if (known && !same) ++state.moves;
    if (!same) {
      state.row = 0;
      state.since = step;
    }
    ++state.row;
    state.distance = gone;
    state.newest = step;
    state.elements = batch.elements;
    state.batch = std::move(batch.numbers);
    return same;
  }

  // ------------------------------------------------------------------------------ judgement

  static Verdict compare(const Config& cfg, const State& state) {
    if (state.row < cfg.repeats) return kInsufficient;
    if (state.moves >= kMoves) return hit(kStuck);
    if (state.differs == 0 || state.most_held <= kHeld * state.elements) return kNotApplicable;
    if (state.distance == 1) return hit(kOneBatch);
    const std::optional<bool> round = returns(state);
    return !round ? kInsufficient : *round ? kOk : hit(kOneBatch);
  }

  static std::optional<double> loss_at(const State& state, std::int64_t step) {
    const auto at =
        std::lower_bound(state.losses.begin(), state.losses.end(), step,
                         [](const LossAt& one, std::int64_t wanted) { return one.step < wanted; });
    if (at == state.losses.end() || at->step != step) return std::nullopt;
    return at->loss;
  }
  /// How far a loss lies from the middle of those before and after it.
  static std::optional<double> bend(const State& state, std::int64_t step) {
    const auto before = loss_at(state, step - 1);
    const auto here = loss_at(state, step);
    const auto after = loss_at(state, step + 1);
    if (!before || !here || !after) return std::nullopt;
    return *here - (*before + *after) / 2;
  }

  /// Whether the losses return with the distance of the saves, as those of a loader that goes round
  /// do: each batch has its own level. Those of one batch have a smooth course, or the noise of
  /// dropout, which does not return. nullopt: too few tell.
  static std::optional<bool> returns(const State& state) {
    double pairs = 0;
    double now = 0;
    double before = 0;
    double both = 0;
    double went = 0;
    for (std::int64_t step = state.since + state.distance + 1; step < state.newest; ++step) {
      const auto one = bend(state, step);
      const auto other = bend(state, step - state.distance);
      if (!one || !other) continue;
      const double gone = *loss_at(state, step) - *loss_at(state, step - state.distance);
      ++pairs;
      now += *one * *one;
      before += *other * *other;
      both += *one * *other;
      went += gone * gone;
    }
    if (pairs < kLeastPairs) return std::nullopt;
    return both > kReturns * std::sqrt(now * before) && now > kSmooth * kSmooth * went;
  }

  static Finding explain(const State& state, const Subject& subject, unsigned kind) {
    return Finding::that("saved_steps", state.row)
        .is(">=", "repeats", state.row)
        .titled("training", Verb::is, "fed the same batch")
        .says(kind == kStuck
                  ? sentence("Training repeats one batch: from step {} to {} the model's inputs "
                             "are the same at {} saved steps; before that they changed.",
                             state.since, subject.place(), state.row)
                  : sentence("Training has repeated one batch from the start: the model's inputs "
                             "are the same at {} saved steps up to {}, with less than half of the "
                             "elements of an evaluation.",
                             state.row, subject.place()))
        .advises(
            "Check the data loader. Most probable first: an iterator created anew at each step; a "
            "cache or buffer that is never refilled; a sampler that does not advance.")
        .since(state.since, state.row)
        .with("elements", state.elements)
        .with("evaluated_elements", state.most_held)
        .with("distance", state.distance);
  }
};

}  // namespace

RuleDescriptor repeated_batch() {
  return {.name = "repeated_batch",
          .original_name = "RepeatedBatch",
          .title = "Training repeats one batch.",
          .unit = "worker",
          .needs = "collection inputs; the training loss of each step, and inputs of evaluations",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<RepeatedBatch>};
}

}  // namespace tocsin::rules
