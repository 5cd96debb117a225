// Fires when a model tells no more of its targets than one answer for all of them would, and does not
// get better.
//
// Reads   statistic confusion of labels (labels by predictions); of a squared error (MSELoss) the
//         mean and variance of the targets; the training loss; the learning rate. Of all workers.
// Window  per mode the fewest latest steps with labels, at least `steps` (10; of a squared error
//         `quantity_steps`, 12), that hold `labels` (250) of them, since the learning rate was larger than ever; where that tells nothing one with twice
//         as many labels, and so on. Judged when nobody can add to the step.
// Fires   when the loss does not fall: half of the window against the other, by 1.5 errors and
//         0.3 % of it, and
//           classes   of n labels fewer are right, by two deviations, than chance and `share` (0.1) of
//                     what chance leaves (Cohen's kappa)
//           quantity  the loss is more, by two errors, than 1 − share of the targets' variance
//           entropy   of labels at each place (words of a text, points of an image): the loss is, by two
//                     errors, 0.95 of the labels' entropy at least and 1.1 of it at most, and no more labels are
//                     right than chance makes, by 1.5 of its deviations: what guessing
//                     by frequency costs, however unequal the frequencies are
//         How far the number of right labels strays by chance is known; the variance of a loss is itself
//         only estimated, so that asks for more steps.
// Quiet   until the window is full; but for `entropy` where the classes are far from equally frequent (the
//         entropy of the labels is less than nine tenths of the most possible): there one answer is a good one;
//         without a training loss or with several; where a squared error is more than three variances:
//         that is no mean over the samples.
// Source  our own; docs/rules/chance_level.md.

#include <cmath>
#include <map>
#include <utility>

#include "rules/builtin/class_tally.h"
#include "rules/builtin/classes.h"
#include "rules/builtin/loss_noise.h"
#include "rules/builtin/metric_name.h"
#include "rules/evaluate/step_set.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kChanceKinds[] = {"classes", "quantity", "entropy"};

struct ChanceLevel {
  static constexpr std::span<const std::string_view> kKinds = kChanceKinds;
  static constexpr bool kPerWorker = false;
  static constexpr Sent kSent[] = {core::VectorStat::confusion};
  static constexpr std::string_view kExtensions[] = {"ignore_labels"};
  enum Kind : unsigned { kClasses, kQuantity, kEntropy };
  static constexpr std::string_view kSquared = "MSELoss_input_1";  // the end of its target's name
  static constexpr std::string_view kRate = "learning_rate";
  static constexpr std::size_t kMostSteps = 64;
  static constexpr double kEven = 0.9;  // of the most possible entropy
  static constexpr double kDeviations = 2;
  static constexpr double kTells =
      1.5;  // deviations by which right labels are more than chance makes
  static constexpr double kFall = 1.5;  // errors by which a loss has likely fallen
  static constexpr double kLeastFall = 0.003;
  static constexpr double kMostVariances = 3;
  static constexpr double kLeastEntropy = 0.95;  // of the labels: a loss below tells of them,
  static constexpr double kMostEntropy = 1.1;    // one above is another, or worse than a guess

  struct Config {
    // Slow starts look like random labels until they end. To be sure costs nothing that is told in time:
    // with half of it nothing was, either.
    std::uint32_t steps = 10;
    std::uint32_t quantity_steps = 12;
    std::uint32_t labels = 250;
    double share = 0.1;
    Classes classes;
  };
  struct Cell {
    std::uint32_t label = 0;
    std::uint32_t prediction = 0;
    double count = 0;
  };
  /// A step with labels, and the losses since the one before.
  struct Sample {
    std::int64_t step = 0;
    double labels = 0;
    LossBlock losses;
    std::vector<Cell> cells;  // empty: quantities
    template <typename A>
    friend void io(A& a, Sample& s) {
      io_all(a, s.step, s.labels, s.losses, s.cells);
    }
  };
  struct State {
    std::vector<Sample> recent;  // oldest first
    LossBlock losses;            // since the newest of them
    LossBlock targets;           // quantities since the start
    bool rated = false;
    double largest_rate = 0;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.recent, s.losses, s.targets, s.rated, s.largest_rate);
    }
  };
  /// What a window comes to.
  struct Seen {
    std::size_t from = 0;
    double labels = 0;
    double right = 0;
    double by_chance = 0;
    double classes = 0;
    double entropy = 0;
    LossBlock earlier;
    LossBlock later;
    LossBlock all;
    double variance = 0;
    bool dense = false;  // a label at each place of a sample
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("steps", cfg.steps,
                config::between(std::uint32_t{2}, static_cast<std::uint32_t>(kMostSteps)),
                "saved steps with labels that are judged together");
    in.optional("quantity_steps", cfg.quantity_steps,
                config::between(std::uint32_t{2}, static_cast<std::uint32_t>(kMostSteps)),
                "the same of a squared error");
    in.optional("labels", cfg.labels, config::at_least(1U), "labels that they hold at least");
    in.optional("share", cfg.share, config::between(0.0, 1.0),
                "of what one answer for all gets wrong, the part that must be told right");
    read_ignored(in, cfg.classes);
  }
  static std::vector<Need> needs(const Config&) {
    return {{"labels", {"classes"}}, {"predictions", {"classes"}}, {"losses"}};
  }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    program.selection.add_role(core::Role::label);
    program.selection.add_role(core::Role::loss);
    program.selection.add_regex("^learning_rate$", error);
  }

  // --------------------------------------------------------------------------- accumulation

  static bool add(const Classes& classes, Sample& sample, const StepRow& row) {
    const std::vector<double>* triples = row.vector(core::VectorStat::confusion);
    if (triples == nullptr || triples->size() % 3 != 0 || !are_counts(*triples)) return false;
    for (std::size_t i = 0; i < triples->size(); i += 3) {
      if ((*triples)[i] >= kMostClasses || (*triples)[i + 1] >= kMostClasses) return false;
    }
    for (std::size_t i = 0; i < triples->size(); i += 3) {
      if ((*triples)[i + 2] == 0) continue;
      if (classes.ignores(static_cast<std::size_t>((*triples)[i]))) continue;
      sample.cells.push_back({static_cast<std::uint32_t>((*triples)[i]),
                              static_cast<std::uint32_t>((*triples)[i + 1]), (*triples)[i + 2]});
      sample.labels += (*triples)[i + 2];
    }
    return true;
  }

  static void add_targets(State& state, Sample& sample, const StepRow& row) {
    if (row.row.n() < 1 || row.row.non_finite() > 0 || !std::isfinite(row.row.m2)) return;
    state.targets.merge({row.row.n(), row.row.mean(), row.row.m2});
    sample.labels += row.row.n();
  }

  /// A larger learning rate than ever: what came before it was a warm-up.
  static void rate(State& state, double value) {
    if (!std::isfinite(value) || (state.rated && value <= state.largest_rate)) return;
    state.rated = true;
    state.largest_rate = value;
    state.recent.clear();
    state.losses = {};
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    Sample sample;
    sample.step = set.step;
    const StepRow* labels = nullptr;
    double loss = 0;
    double workers = 0;
    std::uint64_t name_of_loss = 0;
    bool several = false;
    bool dense = false;
    for (const StepRow& row : set.rows) {
      const Name* name = report.scope().find(row.name());
      if (name == nullptr) continue;
      if (row.scalar && name->text == kRate) {
        rate(state, row.row.sum);
      } else if (row.scalar && row.role() == core::Role::loss) {
        const MetricName read = metric_name(name->text);
        if (read.set != 0 && !read.train_word) continue;
        several = several || (workers > 0 && name_of_loss != row.name());
        name_of_loss = row.name();
        loss += row.row.sum;
        ++workers;
      } else if (!row.scalar && row.role() == core::Role::label) {
        const bool squared = name->text.ends_with(kSquared);
        if (labels != nullptr && labels->name() != row.name()) continue;
        if (squared ? row.row.n() > 0 : add(cfg.classes, sample, row)) {
          labels = &row;
          dense = !squared && name->shape.size() > 1;
        }
        if (squared) add_targets(state, sample, row);
      }
    }
    if (workers > 0 && !several && std::isfinite(loss)) {
      state.losses.add(loss / workers);
    }
    if (labels == nullptr || sample.labels == 0) return;
    sample.losses = std::exchange(state.losses, {});
    state.recent.push_back(std::move(sample));
    if (state.recent.size() > kMostSteps) state.recent.erase(state.recent.begin());
    Seen seen = look(cfg, state, cfg.labels);
    seen.dense = dense;
    Verdict verdict = compare(cfg, state, seen, cfg.labels);
    for (double most = 2.0 * cfg.labels; verdict.outcome != EvaluationOutcome::hit && seen.from > 0;
         most *= 2) {
      Seen wider = look(cfg, state, most);
      wider.dense = dense;
      const Verdict other = compare(cfg, state, wider, most);
      if (other.outcome == EvaluationOutcome::hit) verdict = other;
      if (other.outcome == EvaluationOutcome::hit || wider.from == 0) seen = wider;
    }
    const std::string name = report.scope().text(labels->name());
    report.evaluated({{"tensor", name}}, name, verdict, [&](const Subject& subject, unsigned kind) {
      Finding finding = explain(cfg, state, seen, subject, kind);
      finding.tensor = report.tensor(*labels);
      return finding;
    });
  }

  // ------------------------------------------------------------------------------ judgement

  static std::size_t steps_of(const Config& cfg, const State& state) {
    return state.recent.back().cells.empty() ? cfg.quantity_steps : cfg.steps;
  }
  static Seen look(const Config& cfg, const State& state, double most) {
    const std::size_t steps = steps_of(cfg, state);
    Seen out;
    out.from = state.recent.size();
    while (out.from > 0 && (state.recent.size() - out.from < steps || out.labels < most)) {
      out.labels += state.recent[--out.from].labels;
    }
    const std::size_t middle = out.from + (state.recent.size() - out.from) / 2;
    std::map<std::uint32_t, double> labels;
    std::map<std::uint32_t, double> predictions;
    for (std::size_t i = out.from; i < state.recent.size(); ++i) {
      const Sample& one = state.recent[i];
      (i < middle ? out.earlier : out.later).merge(one.losses);
      for (const Cell& cell : one.cells) {
        labels[cell.label] += cell.count;
        predictions[cell.prediction] += cell.count;
        if (cell.label == cell.prediction) out.right += cell.count;
      }
    }
    out.all = out.earlier;
    out.all.merge(out.later);
    for (const auto& [label, count] : labels) {
      const auto said = predictions.find(label);
      if (said != predictions.end()) out.by_chance += count * said->second / out.labels;
      out.entropy -= count / out.labels * std::log(count / out.labels);
    }
    out.classes = static_cast<double>(labels.size());
    out.variance = state.targets.n > 0 ? state.targets.m2 / state.targets.n : 0;
    return out;
  }

  static double error_of(const LossBlock& block) { return std::sqrt(block.variance() / block.n); }

  static bool falls(const Seen& seen) {
    const double fall = seen.earlier.mean - seen.later.mean;
    const double error = std::hypot(error_of(seen.earlier), error_of(seen.later));
    return fall > kFall * error && fall > kLeastFall * std::fabs(seen.earlier.mean);
  }

  static Verdict compare(const Config& cfg, const State& state, const Seen& seen, double most) {
    const bool full =
        state.recent.size() - seen.from >= steps_of(cfg, state) && seen.labels >= most;
    if (!full || seen.earlier.n < 2 || seen.later.n < 2) return kInsufficient;
    const bool classes = seen.classes > 0;
    const bool even = seen.classes > 1 && seen.entropy >= kEven * std::log(seen.classes);
    if (classes && !even && (!seen.dense || seen.classes < 2)) return kNotApplicable;
    if (!classes && seen.all.mean > kMostVariances * seen.variance) return kNotApplicable;
    if (falls(seen)) return kOk;
    if (!classes) {
      // How well the variance is known, of numbers that are about normal.
      const double largest = seen.variance * (1 + std::sqrt(2 / state.targets.n));
      const double least = seen.all.mean - kDeviations * error_of(seen.all);
      return least >= (1 - cfg.share) * largest ? hit(kQuantity) : kOk;
    }
    const double left = seen.labels - seen.by_chance;
    const double deviation = std::sqrt(seen.by_chance * left / seen.labels);
    const double enough = seen.by_chance + cfg.share * left;
    if (even && seen.right + kDeviations * deviation < enough) return hit(kClasses);
    const bool tells = seen.right > seen.by_chance + kTells * deviation;
    return seen.dense && !tells && costs_a_guess(seen) ? hit(kEntropy) : kOk;
  }

  /// Guessing each label by how frequent it is costs the entropy of the labels, and no model that knows
  /// them by nothing else comes below.
  static bool costs_a_guess(const Seen& seen) {
    return seen.all.mean - kDeviations * error_of(seen.all) >= kLeastEntropy * seen.entropy &&
           seen.all.mean <= kMostEntropy * seen.entropy;
  }

  static Finding explain(const Config& cfg, const State& state, const Seen& seen,
                         const Subject& subject, unsigned kind) {
    Finding finding;
    if (kind == kClasses) {
      finding = Finding::that("right", seen.right);
      finding.is("<", "limit", seen.by_chance + cfg.share * (seen.labels - seen.by_chance))
          .titled("model", Verb::is, "no better than chance")
          .says(
              sentence("The model tells nothing of {}: of {} labels up to {} {} were right, and {} "
                       "would be by chance; the loss does not fall.",
                       subject.name, seen.labels, subject.place(), seen.right, seen.by_chance))
          .with("by_chance", seen.by_chance)
          .with("classes", static_cast<std::int64_t>(seen.classes));
    } else if (kind == kEntropy) {
      finding = Finding::that("loss", seen.all.mean);
      finding.is(">=", "limit", kLeastEntropy * seen.entropy)
          .titled("model", Verb::is, "no better than chance")
          .says(sentence(
              "The model tells nothing of {}: its loss is {} up to {}, and guessing each of "
              "{} classes by its frequency costs {}; the loss does not fall.",
              subject.name, seen.all.mean, subject.place(), seen.classes, seen.entropy))
          .with("entropy", seen.entropy)
          .with("classes", static_cast<std::int64_t>(seen.classes));
    } else {
      finding = Finding::that("loss", seen.all.mean);
      finding.is(">=", "limit", (1 - cfg.share) * seen.variance)
          .titled("model", Verb::is, "no better than chance")
          .says(
              sentence("The model tells nothing of {}: its squared error is {} up to {}, and that "
                       "of one answer for all would be {}; the loss does not fall.",
                       subject.name, seen.all.mean, subject.place(), seen.variance))
          .with("variance", seen.variance);
    }
    return finding
        .advises(
            "Check that inputs and targets belong together (shuffled apart, broadcast against each "
            "other), that the inputs carry something, and that gradients reach all layers.")
        .since(state.recent[seen.from].step, state.recent.size() - seen.from)
        .with("labels", seen.labels)
        .with("earlier_loss", seen.earlier.mean)
        .with("later_loss", seen.later.mean);
  }
};

}  // namespace

RuleDescriptor chance_level() {
  return {.name = "chance_level",
          .original_name = "ChanceLevel",
          .title = "The model tells no more of its targets than one answer for all would.",
          .unit = "tensor",
          .needs = "collections labels and predictions with statistic classes, and losses",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "5",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<ChanceLevel>};
}

}  // namespace tocsin::rules
