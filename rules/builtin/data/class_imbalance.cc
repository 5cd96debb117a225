// Fires when classes are far from equally frequent, or rare classes are mostly predicted wrong.
//
// Reads   the statistics class_counts and class_correct of labels, of all workers.
// Window  counts since the start of the attempt, per mode; of predictions the fewest latest steps
//         that together hold `samples` labels. Judged when nobody can add to the step any more.
// Fires   once `samples` labels were seen, N_c of class c:
//           imbalance      max N / min N > threshold_imbalance over the classes seen (num_classes:
//                          over all), once max N >= threshold_imbalance · min_class_samples
//           misprediction  a class with N_c <= max N / 2 (scope all: any), of which the window holds
//                          min_class_samples, is wrong in more than threshold_misprediction of them
//         preset tocsin also
//           single_class   80 labels of three steps and one class only; not the label 1 that was read from a
//                          gradient, as every loss of pairs has it (kRead), nor while more than a twentieth of the newest
//                          predictions is wrong: one answer is learned in a few steps, the one true pair
//                          among many is not (InfoNCE: its right answer is always the first)
//           sorted         of the latest steps (20) of a training three and at least half have labels of
//                          one class only, which steps drawn from all labels would all have once in a
//                          million jobs; steps of whom every twentieth would are left out
//         and for `imbalance` that the smallest class has fewer than the limit allows by three
//         deviations (`deviations`), which can be told from 100 labels on; no misprediction
// Quiet   at steps without labels; counts that are no counts are insufficient. Classes from
//         num_classes on are an error. Preset tocsin: labels that are more than the model's inputs
//         have samples, or than their own first dimension (`dense` 0): words of a text, points of an image
//         are unequal by nature.
// Source  Amazon SageMaker Debugger, ClassImbalance; docs/rules/class_imbalance.md.

#include <algorithm>
#include <cmath>
#include <limits>

#include "rules/builtin/data/class_order.h"
#include "rules/builtin/data/class_tally.h"
#include "rules/builtin/shared/classes.h"
#include "rules/contract/items.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kImbalanceKinds[] = {"imbalance", "misprediction", "single_class",
                                                "sorted"};

struct ClassImbalance {
  static constexpr std::span<const std::string_view> kKinds = kImbalanceKinds;
  static constexpr std::string_view kExtensions[] = {
      "num_classes",  "misprediction_scope", "ignore_labels", "min_class_samples",
      "single_class", "deviations",          "dense",         "sorted"};
  static constexpr bool kPerWorker = false;
  static constexpr Sent kSent[] = {core::VectorStat::class_counts, core::VectorStat::class_correct};
  enum Kind : unsigned { kImbalance, kMisprediction, kSingleClass, kSorted };
  static constexpr std::size_t kSortedSteps = 20;
  static constexpr std::uint64_t kSingleSteps = 3;
  static constexpr double kTold = 60;  // labels of which is told how many are predicted right,
  static constexpr double kWrong =
      0.05;  // and how many may not be, where one class is all there is
  // Labels that the hook has read from the gradient of an output. That of softplus(−x) is the same as that
  // of a cross-entropy with the label 1, and is what losses of pairs and of generators are made of.
  static constexpr std::string_view kRead = "binary_cross_entropy_with_logits_input_1";

  struct Config {
    double threshold_imbalance = 10;
    double threshold_misprediction = 0.7;
    bool argmax = false;
    std::string labels_regex = ".*labels";
    std::string predictions_regex = ".*predictions";
    std::string misprediction_scope = "underrepresented";
    Classes classes;
    std::uint32_t min_class_samples = 10;
    std::uint32_t single_class = 0;
    double deviations = 0;
    bool dense = true;
    bool sorted = false;
    Selection labels;
  };
  using State = ClassTally;
  /// What a judgement came to.
  struct Seen {
    double total = 0;
    double most = 0;
    double least = 0;  // of the classes that count; 0: one of num_classes was never seen
    std::size_t largest = 0;
    std::size_t smallest = 0;
    std::size_t classes = 0;
    ClassCount worst;     // most often wrong among the classes in scope
    ClassOrder order;     // of the latest steps
    bool pairs = false;   // labels as a loss of pairs has them: all 1, read from its gradient
    bool learned = true;  // the newest predictions are nearly all right, as far as there are any
  };

  static Defaults defaults(Preset) { return {}; }
  static void read(config::Reader& in, Config& cfg, Preset preset) {
    if (preset == Preset::tocsin) {
      cfg.single_class = 80;
      cfg.classes.samples = 100;
      cfg.deviations = 3;
      cfg.threshold_misprediction = 1;
      cfg.dense = false;
      cfg.sorted = true;
    }
    in.optional("threshold_imbalance", cfg.threshold_imbalance, config::at_least(1.0),
                "largest ratio of the largest class to the smallest");
    in.optional("threshold_misprediction", cfg.threshold_misprediction, config::between(0.0, 1.0),
                "largest share of wrong predictions of a class");
    in.optional("samples", cfg.classes.samples, config::at_least(1U),
                "labels before the first judgement");
    in.optional("argmax", cfg.argmax,
                "accepted for old configurations; the hook takes the largest entry itself");
    if (cfg.argmax) {
      in.warning(
          "argmax",
          "has no effect: the hook compares predictions, and takes the largest entry itself");
    }
    in.optional("labels_regex", cfg.labels_regex, config::not_empty(),
                "labels are tensors with role label, or with a name that matches this pattern");
    in.optional("predictions_regex", cfg.predictions_regex, config::not_empty(),
                "accepted for old configurations; the hook counts predictions beside the labels");
    if (cfg.predictions_regex != Config().predictions_regex) {
      in.warning("predictions_regex",
                 "has no effect: the hook counts predictions beside the labels");
    }
    in.optional("num_classes", cfg.classes.num_classes,
                config::if_given(config::between(2U, std::uint32_t{kMostClasses})),
                "number of classes; with it, a class that never occurs counts too");
    in.optional("misprediction_scope", cfg.misprediction_scope,
                config::one_of({"underrepresented", "all"}),
                "classes whose predictions are judged: those at most half as frequent as the "
                "largest, or all");
    read_ignored(in, cfg.classes);
    in.optional("min_class_samples", cfg.min_class_samples, config::at_least(1U),
                "samples below which a class is not judged");
    in.optional("single_class", cfg.single_class,
                "report a single class after this many labels from three steps or more; 0 = off");
    in.optional("deviations", cfg.deviations, config::at_least(0.0),
                "by how many standard deviations the smallest class must be below what "
                "threshold_imbalance allows");
    in.optional("dense", cfg.dense,
                "also judge steps with more labels than samples: words, points");
    in.optional("sorted", cfg.sorted,
                "report training steps that each have labels of one class only");
    std::string error;
    cfg.labels.add_role(core::Role::label);
    if (!cfg.labels.add_regex(cfg.labels_regex, error)) in.error("labels_regex", error);
    Selection unused;
    if (!unused.add_regex(cfg.predictions_regex, error)) in.error("predictions_regex", error);
  }
  static std::vector<Need> needs(const Config&) {
    return {{"labels", {"classes"}}, {"predictions", {"classes"}}};
  }
  // Shapes of inputs are used where they come; nothing is asked for.
  static void adjust(const Config& cfg, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    program.selection.add_role(core::Role::label);
    program.selection.add_regex(cfg.labels_regex, error);
    if (!cfg.dense) program.selection.add_role(core::Role::input);
  }

  // How many samples a step's inputs have: their first dimension, or the second where sequences come
  // first. 0: nothing is known.
  static std::int64_t samples_of(const StepSet& set, const Scope& scope) {
    std::int64_t samples = 0;
    for (const StepRow& row : set.rows) {
      const Name* name = row.role() == core::Role::input ? scope.find(row.name()) : nullptr;
      if (name == nullptr || name->shape.empty()) continue;
      samples = std::max(samples, name->shape[0]);
      if (name->shape.size() == 3) samples = std::max(samples, name->shape[1]);
    }
    return samples;
  }
  // A label at each place of a sample, as its own shape says: one-hot labels have one per row.
  static bool at_places(const StepRow& row, const Scope& scope) {
    const Name* name = scope.find(row.name());
    return name != nullptr && name->shape.size() > 1 &&
           sum_of(row) > static_cast<double>(name->shape[0]);
  }
  static bool left_out(const Config& cfg, const StepRow& row, const Scope& scope,
                       std::int64_t samples) {
    return !cfg.dense &&
           ((samples > 0 && sum_of(row) > static_cast<double>(samples)) || at_places(row, scope));
  }
  static double sum_of(const StepRow& row) {
    const std::vector<double>* counts = row.vector(core::VectorStat::class_counts);
    double sum = 0;
    if (counts != nullptr) {
      for (const double count : *counts) sum += count;
    }
    return sum;
  }

  // What the labels of a step come to.
  struct StepLabels {
    std::vector<ClassCount> counts;
    const StepRow* row = nullptr;  // the first of them
    bool added = false;
    bool read = true;
    EvaluationOutcome problem = EvaluationOutcome::ok;

    void add(ClassTally::Added what) {
      added = added || what == ClassTally::Added::labels;
      if (what == ClassTally::Added::broken && problem == EvaluationOutcome::ok)
        problem = EvaluationOutcome::insufficient_data;
      if (what == ClassTally::Added::beyond) problem = EvaluationOutcome::error;
    }
  };

  static StepLabels labels_of(const Config& cfg, State& state, const StepSet& set, Scope& scope,
                              std::int64_t samples) {
    StepLabels out;
    for (const StepRow& row : set.rows) {
      if (cfg.labels.matches(row.role(), scope.find(row.name())) != Match::yes) continue;
      if (left_out(cfg, row, scope, samples)) continue;
      if (out.row == nullptr) out.row = &row;
      out.read = out.read && scope.text(row.name()).ends_with(kRead);
      out.add(state.add(cfg.classes, row, out.counts));
    }
    return out;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const std::int64_t samples = cfg.dense ? 0 : samples_of(set, report.scope());
    StepLabels step = labels_of(cfg, state, set, report.scope(), samples);
    const StepRow* labels = step.row;
    const bool added = step.added;
    const EvaluationOutcome problem = step.problem;
    if (labels == nullptr) return;
    state.slide(cfg.classes, std::move(step.counts));
    if (!added && problem == EvaluationOutcome::ok) return;
    state.steps += added ? 1 : 0;
    const bool trains = set.mode == core::Mode::train || set.mode == core::Mode::global;
    if (cfg.sorted && added && trains) remember_size(cfg, state, set, report.scope(), samples);
    Seen seen = look(cfg, state);
    seen.pairs = step.read && seen.largest == 1;
    Verdict verdict = added ? compare(cfg, state, seen) : Verdict{problem, 0};
    if (problem == EvaluationOutcome::error) verdict = {problem, 0};
    const std::string name = report.scope().text(labels->name());
    report.evaluated({{"tensor", name}}, name, verdict, [&](const Subject& subject, unsigned kind) {
      Finding finding = explain(cfg, state, seen, subject, kind);
      finding.tensor = report.tensor(*labels);
      return finding;
    });
  }

  // How many labels the step has, and whether they are of one class.
  static void remember_size(const Config& cfg, State& state, const StepSet& set, Scope& scope,
                            std::int64_t samples) {
    double size = 0;
    std::optional<std::size_t> only;
    bool several = false;
    for (const StepRow& row : set.rows) {
      const std::vector<double>* counts = row.vector(core::VectorStat::class_counts);
      if (counts == nullptr ||
          cfg.labels.matches(row.role(), scope.find(row.name())) != Match::yes ||
          left_out(cfg, row, scope, samples)) {
        continue;
      }
      for (std::size_t i = 0; i < counts->size(); ++i) {
        if (!((*counts)[i] > 0) || cfg.classes.ignores(i)) continue;
        size += (*counts)[i];
        several = several || (only && *only != i);
        only = i;
      }
    }
    if (size == 0) return;
    if (state.sizes.size() >= kSortedSteps) state.sizes.erase(state.sizes.begin());
    state.sizes.push_back(several ? size : -size);
  }

  static Seen look(const Config& cfg, const State& state) {
    Seen out;
    out.least = std::numeric_limits<double>::infinity();
    const auto take = [&](std::size_t which, double labels) {
      out.total += labels;
      if (labels > out.most) {
        out.most = labels;
        out.largest = which;
      }
      if (labels < out.least) {
        out.least = labels;
        out.smallest = which;
      }
      out.classes += labels > 0 ? 1 : 0;
    };
    const std::size_t all =
        std::max<std::size_t>(state.labels.size(), cfg.classes.num_classes.value_or(0));
    for (std::size_t i = 0; i < all; ++i) {
      const double labels = i < state.labels.size() ? state.labels[i] : 0;
      const bool counts = labels > 0 || (cfg.classes.num_classes && i < *cfg.classes.num_classes);
      if (counts && !cfg.classes.ignores(i)) take(i, labels);
    }
    if (cfg.sorted && out.classes > 1) out.order = order_of(state.sizes, state.labels, out.total);
    out.learned = state.wrong_share(kTold) <= kWrong;
    return out;
  }

  static Verdict compare(const Config& cfg, const State& state, Seen& seen) {
    Verdict verdict = kInsufficient;
    const auto consider = [&](bool holds, Kind kind) {
      if (verdict.outcome == EvaluationOutcome::insufficient_data) verdict = kOk;
      if (!holds) return;
      verdict.outcome = EvaluationOutcome::hit;
      verdict.kinds = static_cast<std::uint8_t>(verdict.kinds | (1U << kind));
    };
    if (cfg.single_class > 0 && seen.total >= cfg.single_class && seen.classes == 1 &&
        !seen.pairs) {
      consider(state.steps >= kSingleSteps && seen.learned, kSingleClass);
    }
    if (seen.order.sorted) consider(true, kSorted);
    if (seen.total < cfg.classes.samples) return verdict;
    // With the ratio at the limit the smallest class would have so many, give or take their root.
    const double allowed = seen.most / cfg.threshold_imbalance;
    consider(seen.most >= cfg.threshold_imbalance * cfg.min_class_samples &&
                 seen.most / seen.least > cfg.threshold_imbalance &&
                 allowed - seen.least >= cfg.deviations * std::sqrt(allowed),
             kImbalance);
    seen.worst = worst(cfg, state, seen);
    consider(
        seen.worst.labels > 0 && seen.worst.wrong / seen.worst.labels > cfg.threshold_misprediction,
        kMisprediction);
    return verdict;
  }

  static ClassCount worst(const Config& cfg, const State& state, const Seen& seen) {
    std::vector<ClassCount> recent(state.labels.size());
    for (const std::vector<ClassCount>& step : state.recent) {
      for (const ClassCount& one : step) {
        recent[one.which].which = one.which;
        recent[one.which].labels += one.labels;
        recent[one.which].wrong += one.wrong;
      }
    }
    ClassCount out;
    const bool all = cfg.misprediction_scope == "all";
    for (std::size_t i = 0; i < recent.size(); ++i) {
      if (recent[i].labels < cfg.min_class_samples) continue;
      if (!all && state.labels[i] > seen.most / 2) continue;
      const bool worse =
          out.labels == 0 || recent[i].wrong * out.labels > out.wrong * recent[i].labels;
      if (worse) out = recent[i];
    }
    return out;
  }

  static Finding explain(const Config& cfg, const State& state, const Seen& seen,
                         const Subject& subject, unsigned kind) {
    Finding finding;
    if (kind == kSingleClass) {
      finding = Finding::that("classes", 1);
      finding.is("<", "classes", 2)
          .titled("labels", Verb::are, "of one class only")
          .says(sentence("All {} labels of {} are of class {} at {}.", seen.total, subject.name,
                         seen.largest, subject.place()))
          .advises(
              "The model can only learn that class. Shuffle the data, or check how labels are "
              "read.");
    } else if (kind == kSorted) {
      finding = Finding::that("steps_of_one_class", seen.order.pure);
      finding.is(">=", "half_of_steps", seen.order.told / 2.0)
          .titled("labels", Verb::are, "sorted by class")
          .says(sentence("{1} of the latest {0} steps have labels of one class only in {2} at {3}, "
                         "although {4} classes occur.",
                         seen.order.told, seen.order.pure, subject.name, subject.place(),
                         seen.classes))
          .advises(
              "Shuffle the data. A model that sees one class after the other forgets the one "
              "before.");
    } else if (kind == kImbalance) {
      finding = Finding::that("ratio", seen.most / seen.least);
      finding.is(">", "threshold_imbalance", cfg.threshold_imbalance)
          .titled("classes", Verb::are, "imbalanced")
          .says(
              sentence("Class {} has {} labels in {}, class {} {}: {} times as many (limit {}) at "
                       "{}.",
                       seen.largest, seen.most, subject.name, seen.smallest, seen.least,
                       seen.most / seen.least, cfg.threshold_imbalance, subject.place()))
          .advises(
              "Weight the loss by class, or sample rare classes more often. Judge by recall per "
              "class, not by accuracy.");
    } else {
      const double rate = seen.worst.wrong / seen.worst.labels;
      finding = Finding::that("misprediction", rate);
      finding.is(">", "threshold_misprediction", cfg.threshold_misprediction)
          .titled(sentence("class {}", seen.worst.which), Verb::is, "mostly predicted wrong")
          .says(sentence("{} % of the last {} samples of class {} in {} are predicted wrong (limit "
                         "{} %) at {}.",
                         100 * rate, seen.worst.labels, seen.worst.which, subject.name,
                         100 * cfg.threshold_misprediction, subject.place()))
          .advises(
              "A model gives up rare classes first. Weight the loss by class, or sample them more "
              "often.")
          .with("class", static_cast<std::int64_t>(seen.worst.which));
    }
    core::ValueList counts;
    for (const double one :
         std::span(state.labels).first(std::min<std::size_t>(state.labels.size(), 100)))
      counts.emplace_back(one);
    return finding.with("total", seen.total)
        .with("largest_class", static_cast<std::int64_t>(seen.largest))
        .with("smallest_class", static_cast<std::int64_t>(seen.smallest))
        .with("classes", static_cast<std::int64_t>(seen.classes))
        .with("counts", std::move(counts));
  }
};

}  // namespace

RuleDescriptor class_imbalance() {
  return {
      .name = "class_imbalance",
      .original_name = "ClassImbalance",
      .title = "Some classes are far rarer than others, or rare ones are predicted wrong.",
      .unit = "accumulator",
      .needs = "collections labels and predictions with statistic classes",
      .presets =
          "tocsin also fires when 80 labels are all of one class, or each step has one class. It "
          "judges from 100 labels on, and asks for more imbalance than chance makes. It leaves out "
          "what is uneven by nature (more labels than samples: words, points). It also leaves out "
          "wrong predictions of rare classes, which healthy models make at first.",
      .severity = core::Severity::warning,
      .version = "6",
      .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
      .read = &read_step_set_rule<ClassImbalance>};
}

}  // namespace tocsin::rules
