// Fires when a class is often mistaken.
//
// Reads   the statistic `confusion` (label, prediction and count, as triples) of the labels, or of
//         the predictions, of every worker; the workers' matrices are added.
// Window  one step of one mode; judged when nobody can add to it any more.
// Fires   normalize row, for classes i with n_i = Σ_j C[i][j] >= min_support:
//           diagonal      C[i][i] / n_i < min_diag
//           off_diagonal  C[i][j] / n_i > max_off_diag for some j ≠ i
//         normalize column: the same down the columns, divided by Σ_i C[i][j].
//         Preset tocsin: only classes that stand out, so that the others have been learned: of the
//         samples of all others at least min_diag are right, and of this one's fewer than `contrast`
//         of that share; at in_a_row judged steps of the class, and not 0.1 better by then.
// Quiet   for rows without samples, and samples whose label is in ignore_labels. Classes from
//         category_no on are an error.
// Source  Amazon SageMaker Debugger, Confusion; docs/rules/confusion.md. What stands out and does not
//         get better is ours: every model mistakes classes while it learns them.

#include <algorithm>
#include <map>

#include "core/identity.h"
#include "rules/builtin/data/class_tally.h"
#include "rules/builtin/shared/classes.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kConfusionKinds[] = {"diagonal", "off_diagonal"};

struct Confusion {
  static constexpr std::span<const std::string_view> kKinds = kConfusionKinds;
  static constexpr std::string_view kExtensions[] = {
      "normalize", "min_support", "decision_threshold", "contrast", "in_a_row", "ignore_labels"};
  static constexpr double kBetter =
      0.1;  // share by which a class gets better that is being learned
  static constexpr bool kPerWorker = false;
  static constexpr Sent kSent[] = {core::VectorStat::confusion};
  enum Kind : unsigned { kDiagonal, kOffDiagonal };

  struct Config {
    std::optional<std::uint32_t> category_no;
    std::string labels = "labels";
    std::string predictions = "predictions";
    std::string labels_collection = "labels";
    std::string predictions_collection = "predictions";
    double min_diag = 0.9;
    double max_off_diag = 0.1;
    std::string normalize = "row";
    std::uint32_t min_support = 1;
    double decision_threshold = 0.5;
    double contrast = 0;  // 0: off
    std::uint32_t in_a_row = 1;
    Classes classes;
  };
  using Class = std::uint32_t;
  struct State {
    std::map<Class, std::vector<double>> mistaken;  // shares right at the newest steps in a row

    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.mistaken);
    }
  };

  struct Matrix {
    std::map<std::pair<Class, Class>, double> cells;  // (label, prediction); not 0
    std::map<Class, double> totals;                   // per row or column
    Class classes = 0;                                // 1 + the largest
    double right = 0;
    double all = 0;
  };
  /// The worst cell of a kind.
  struct Cell {
    Class label = 0;
    Class prediction = 0;
    double value = 0;
  };

  static Defaults defaults(Preset preset) {
    return {.start_step = preset == Preset::tocsin ? 10 : 0};
  }
  static void read(config::Reader& in, Config& cfg, Preset preset) {
    if (preset == Preset::tocsin) {
      cfg.min_diag = 0.7;
      cfg.max_off_diag = 0.3;
      cfg.min_support = 10;
      cfg.contrast = 0.7;
      cfg.in_a_row = 3;
    }
    in.optional("category_no", cfg.category_no,
                config::if_given(config::between(2U, std::uint32_t{kMostClasses})),
                "number of classes; null = those that occur");
    in.optional("labels", cfg.labels, config::not_empty(), "name of the labels");
    in.optional("predictions", cfg.predictions, config::not_empty(), "name of the predictions");
    in.optional("labels_collection", cfg.labels_collection, config::not_empty(),
                "collection of the labels if no tensor has that name");
    in.optional("predictions_collection", cfg.predictions_collection, config::not_empty(),
                "collection of the predictions if no tensor has that name");
    in.optional("min_diag", cfg.min_diag, config::between(0.0, 1.0),
                "least share of a class that must be predicted right");
    in.optional("max_off_diag", cfg.max_off_diag, config::between(0.0, 1.0),
                "largest share of a class that may be predicted as one other class");
    in.optional("normalize", cfg.normalize, config::one_of({"row", "column"}),
                "shares of the true classes (row) or of the predicted ones (column)");
    in.optional("min_support", cfg.min_support, config::at_least(1U),
                "least number of samples to judge a class");
    in.optional("decision_threshold", cfg.decision_threshold, config::between(0.0, 1.0),
                "probability from which the hook counts a sample as class 1");
    in.optional("contrast", cfg.contrast, config::between(0.0, 1.0),
                "report a class only if at least min_diag of the samples of the others are right, "
                "and fewer than this times that share of its own; 0 = off");
    in.optional("in_a_row", cfg.in_a_row, config::between(1U, 1000U),
                "steps in a row at which a class must be wrong without improving by 0.1");
    read_ignored(in, cfg.classes);
  }
  static bool usual(const Config& cfg) { return cfg.decision_threshold == 0.5; }
  static std::vector<Need> needs(const Config& cfg) {
    const std::string statistic =
        usual(cfg) ? "classes" : fmt::format("classes({})", cfg.decision_threshold);
    return {{cfg.labels_collection, {statistic}}, {cfg.predictions_collection, {statistic}}};
  }
  static void adjust(const Config& cfg, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    program.selection.add_collection(cfg.labels_collection);
    program.selection.add_collection(cfg.predictions_collection);
    std::string error;
    for (const std::string& name : {cfg.labels, cfg.predictions}) {
      program.selection.add_regex("^\\Q" + name + "\\E$", error);
    }
  }

  // The matrix that was decided as asked for; without one that of a producer who does not say how.
  static const std::vector<double>* matrix_of(const Config& cfg, const StepRow& row) {
    if (usual(cfg)) return row.vector(core::VectorStat::confusion);
    const std::vector<double>* decided =
        row.vector(core::VectorStat::confusion, std::span(&cfg.decision_threshold, 1));
    return decided != nullptr ? decided : row.vector(core::VectorStat::confusion);
  }

  // Of each worker one matrix: by name, else the first by name.
  static std::vector<const StepRow*> chosen(const Config& cfg, const StepSet& set,
                                            const Scope& scope) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, const StepRow*> out;  // (rank, worker)
    const auto place = [&](const StepRow& row) {
      const std::string name = scope.text(row.name());
      return std::make_pair(name == cfg.labels ? 0 : name == cfg.predictions ? 1 : 2, name);
    };
    for (const StepRow& row : set.rows) {
      if (matrix_of(cfg, row) == nullptr) continue;
      const StepRow*& best = out[{row.rank, row.worker}];
      if (best == nullptr || place(row) < place(*best)) best = &row;
    }
    std::vector<const StepRow*> rows;
    rows.reserve(out.size());
    for (const auto& [worker, row] : out) rows.push_back(row);
    return rows;
  }

  /// False: not triples of two classes and a count.
  static bool add(const Config& cfg, Matrix& matrix, const std::vector<double>& triples) {
    if (triples.size() % 3 != 0 || !are_counts(triples)) return false;
    for (std::size_t i = 0; i < triples.size(); i += 3) {
      if (cfg.classes.ignores(static_cast<std::size_t>(triples[i]))) continue;
      const double largest = std::max(triples[i], triples[i + 1]);
      if (largest >= static_cast<double>(kMostClasses)) return false;
      matrix.classes = std::max(matrix.classes, static_cast<Class>(largest) + 1);
      if (triples[i + 2] == 0) continue;
      const auto label = static_cast<Class>(triples[i]);
      const auto prediction = static_cast<Class>(triples[i + 1]);
      matrix.cells[{label, prediction}] += triples[i + 2];
      matrix.all += triples[i + 2];
      if (label == prediction) matrix.right += triples[i + 2];
    }
    return true;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const std::vector<const StepRow*> rows = chosen(cfg, set, report.scope());
    if (rows.empty()) return report.without_unit(EvaluationOutcome::insufficient_data);
    Matrix matrix;
    bool fits = true;
    for (const StepRow* row : rows) {
      fits = add(cfg, matrix, *matrix_of(cfg, *row)) && fits;
    }
    Cell diagonal{0, 0, 1};
    Cell off{0, 0, 0};
    Verdict verdict = kInsufficient;
    if (fits && cfg.category_no && matrix.classes > *cfg.category_no) {
      verdict = {EvaluationOutcome::error, 0};
    } else if (fits && matrix.all > 0) {
      verdict = compare(cfg, state, matrix, diagonal, off);
    }
    const std::string name = report.scope().text(rows.front()->name());
    report.evaluated({{"tensor", name}}, name, verdict, [&](const Subject& subject, unsigned kind) {
      Finding finding = explain(cfg, matrix, kind == kDiagonal ? diagonal : off, subject, kind);
      finding.tensor = report.tensor(*rows.front());
      return finding;
    });
  }

  static Verdict compare(const Config& cfg, State& state, Matrix& matrix, Cell& diagonal,
                         Cell& off) {
    const bool by_row = cfg.normalize == "row";
    std::map<Class, Cell> most_taken;  // of each class, for which other
    for (const auto& [cell, count] : matrix.cells) {
      const Class which = by_row ? cell.first : cell.second;
      matrix.totals[which] += count;
      if (cell.first == cell.second) continue;
      Cell& most = most_taken[which];
      if (count > most.value) most = {cell.first, cell.second, count};
    }
    bool judged = false;
    for (const auto& [which, total] : matrix.totals) {
      if (total < cfg.min_support) continue;
      judged = true;
      const auto same = matrix.cells.find({which, which});
      const double right = same == matrix.cells.end() ? 0 : same->second;
      const Cell taken = most_taken[which];
      const bool mistaken = right / total < cfg.min_diag || taken.value / total > cfg.max_off_diag;
      if (!lasts(cfg, state, which, right / total,
                 mistaken && stands_out(cfg, matrix, right, total))) {
        continue;
      }
      if (right / total < diagonal.value) diagonal = {which, which, right / total};
      if (taken.value / total > off.value) {
        off = {taken.label, taken.prediction, taken.value / total};
      }
    }
    if (!judged) return kInsufficient;
    Verdict verdict = kOk;
    if (diagonal.value < cfg.min_diag) verdict = hit(kDiagonal);
    if (off.value > cfg.max_off_diag) {
      const auto kinds = static_cast<std::uint8_t>(verdict.kinds | (1U << kOffDiagonal));
      verdict = {EvaluationOutcome::hit, kinds};
    }
    return verdict;
  }

  /// The others are learned, and it is not.
  static bool stands_out(const Config& cfg, const Matrix& matrix, double right, double total) {
    if (cfg.contrast == 0) return true;
    const double samples = matrix.all - total;
    if (samples <= 0) return false;
    const double others = (matrix.right - right) / samples;
    return others >= cfg.min_diag && right / total < cfg.contrast * others;
  }
  /// At so many of its steps in a row, and it is not just being learned.
  static bool lasts(const Config& cfg, State& state, Class which, double share, bool mistaken) {
    if (!mistaken) {
      state.mistaken.erase(which);
      return false;
    }
    if (cfg.in_a_row == 1) return true;
    std::vector<double>& shares = state.mistaken[which];
    shares.push_back(share);
    if (shares.size() > cfg.in_a_row) shares.erase(shares.begin());
    return shares.size() == cfg.in_a_row && shares.back() < shares.front() + kBetter;
  }

  static Finding explain(const Config& cfg, const Matrix& matrix, const Cell& worst,
                         const Subject& subject, unsigned kind) {
    const bool by_row = cfg.normalize == "row";
    Finding finding = Finding::that(kind == kDiagonal ? "diagonal" : "off_diagonal", worst.value);
    if (kind == kDiagonal) {
      finding.is("<", "min_diag", cfg.min_diag)
          .titled(sentence("class {}", worst.label), Verb::is, "confused with others")
          .says(
              sentence("{} % of the samples {} class {} are right (expected: at least {} %) at {}.",
                       100 * worst.value, by_row ? "of" : "predicted as", worst.label,
                       100 * cfg.min_diag, subject.place()));
    } else {
      finding.is(">", "max_off_diag", cfg.max_off_diag)
          .titled(sentence("class {}", worst.label), Verb::is,
                  sentence("confused with class {}", worst.prediction))
          .says(by_row ? sentence("{} % of the samples of class {} are predicted as class {} "
                                  "(limit {} %) at {}.",
                                  100 * worst.value, worst.label, worst.prediction,
                                  100 * cfg.max_off_diag, subject.place())
                       : sentence("{} % of the samples predicted as class {} are of class {} "
                                  "(limit {} %) at {}.",
                                  100 * worst.value, worst.prediction, worst.label,
                                  100 * cfg.max_off_diag, subject.place()));
    }
    return finding
        .advises(
            "Look at samples of these classes. Most probable first: wrong labels; too few samples "
            "of one class; two classes that the input cannot distinguish.")
        .with("label", static_cast<std::int64_t>(worst.label))
        .with("prediction", static_cast<std::int64_t>(worst.prediction))
        .with("accuracy", matrix.right / matrix.all)
        .with("classes", static_cast<std::int64_t>(matrix.classes))
        .with(matrix.classes <= 20 ? "matrix" : "worst_cells", cells(matrix));
  }

  // Up to 20 classes the whole matrix, row by row; else the ten largest cells beside the diagonal.
  static core::ValueList cells(const Matrix& matrix) {
    core::ValueList out;
    if (matrix.classes <= 20) {
      for (Class i = 0; i < matrix.classes; ++i) {
        core::ValueList row;
        for (Class j = 0; j < matrix.classes; ++j) {
          const auto cell = matrix.cells.find({i, j});
          row.emplace_back(cell == matrix.cells.end() ? 0.0 : cell->second);
        }
        out.emplace_back(std::move(row));
      }
      return out;
    }
    std::vector<Cell> wrong;
    for (const auto& [cell, count] : matrix.cells) {
      if (cell.first != cell.second) wrong.push_back({cell.first, cell.second, count});
    }
    std::stable_sort(wrong.begin(), wrong.end(),
                     [](const Cell& a, const Cell& b) { return a.value > b.value; });
    for (std::size_t i = 0; i < std::min<std::size_t>(wrong.size(), 10); ++i) {
      out.emplace_back(core::ValueList{static_cast<std::int64_t>(wrong[i].label),
                                       static_cast<std::int64_t>(wrong[i].prediction),
                                       wrong[i].value});
    }
    return out;
  }
};

}  // namespace

RuleDescriptor confusion() {
  return {.name = "confusion",
          .original_name = "Confusion",
          .title = "A class is often predicted wrong.",
          .unit = "step",
          .needs = "collections labels and predictions with statistic classes",
          .presets =
              "tocsin asks for 70 % right and at most 30 % predicted as one other class. It judges "
              "classes with 10 samples from step 10 on, and reports those that stay behind when "
              "the others are learned. original asks for 90 % and 10 % of every class at once, "
              "which fires on 58 % of healthy runs.",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kPyTorch | group::kXGBoost,
          .read = &read_step_set_rule<Confusion>};
}

}  // namespace tocsin::rules
