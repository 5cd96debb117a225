// Fires when the first steps show a bad start.
//
// Reads   activation inputs (variance), gradients (p05, p95), losses and, preset tocsin, weights of
//         one worker.
// Window  the first `steps` training steps; judged when the worker has ended one that brought some
//         of these. Afterwards the rule has finished.
// Fires   variance_ratio    largest over smallest variance of the activation inputs > threshold
//         gradient_range    the narrowest p95 − p05 of a gradient < distribution_range
//         loss_flat         no loss has had a new minimum for `patience` of its points
//         all               combine all: these three at one step, in place of each
//         preset tocsin, which leaves the second and third out by default:
//         variance          an activation input with a variance above max_variance, or small_share (a quarter) of
//                           them with one below min_variance; variance_ratio takes the least of those, too
//         constant_weights  a weight matrix (rank >= 2, more than 64 elements) without variance that
//                           is not 0: output layers and adapters are set to zero on purpose; nor does it stand beside
//                           a weight of its shape in its module whose values differ
//         large_weights     all weight matrices, two or more, multiply the variance of their input by more than
//                           max_gain (weight_gain.h)
// Quiet   for tensors of fewer than 2 elements, and after `steps`. A check whose inputs are not all
//         finite is not made; variance and constant_weights leave such tensors out.
// Source  Amazon SageMaker Debugger, PoorWeightInitialization;
//         docs/rules/poor_weight_initialization.md.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "rules/builtin/shared/input_name.h"
#include "rules/builtin/tensors/matrix_shape.h"
#include "rules/builtin/tensors/weight_gain.h"
#include "rules/contract/items.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kPoorStartKinds[] = {
    "variance_ratio", "gradient_range",   "loss_flat",    "all",
    "variance",       "constant_weights", "large_weights"};

struct PoorWeightInitialization {
  static constexpr std::span<const std::string_view> kKinds = kPoorStartKinds;
  static constexpr std::string_view kExtensions[] = {
      "combine", "min_variance", "max_variance", "constant_weights", "small_share", "max_gain"};
  static constexpr bool kPerWorker = true;
  static constexpr Sent kSent[] = {core::SparseStat::p05, core::SparseStat::p95};
  enum Kind : unsigned { kRatio, kRange, kFlat, kAll, kVariance, kConstant, kLarge };
  static constexpr double kLeastVariance = 1e-12;  // what the ratio divides by at least
  static constexpr std::uint64_t kSmallMatrix = 64;

  struct Config {
    std::vector<std::string> activation_inputs_regex = {".*relu_input", ".*ReLU_input"};
    double threshold = 10;
    double distribution_range = 0.001;
    std::uint32_t patience = 5;
    std::int64_t steps = 10;
    std::string combine = "any";
    std::optional<double> min_variance;
    std::optional<double> max_variance;
    bool constant_weights = false;
    double small_share = 0;
    double max_gain = 0;
    Selection inputs;
  };
  struct Loss {
    double best = 0;
    std::uint32_t without = 0;  // points since
  };
  struct State {
    std::map<std::uint64_t, Loss> losses;  // by name
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.losses);
    }
  };
  /// A tensor and the number that speaks for or against it.
  struct Extreme {
    const StepRow* row = nullptr;
    double value = 0;
  };
  struct Seen {
    bool input_unknown = false;  // one came whose variance, or range, is not finite
    bool range_unknown = false;
    std::vector<Extreme> variances;
    Extreme smallest{nullptr, std::numeric_limits<double>::infinity()};
    Extreme largest{nullptr, -1};
    std::size_t inputs = 0;
    Extreme narrowest{nullptr, std::numeric_limits<double>::infinity()};
    const StepRow* constant = nullptr;
    std::size_t matrices = 0;
    WeightGain gain;
    bool loss_points = false;
    bool unusable = false;  // inputs came, but nothing that they can be judged by
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .selects = true}; }
  static void read(config::Reader& in, Config& cfg, Preset preset) {
    const bool given = read_inputs(in, cfg);
    if (preset == Preset::tocsin) {
      // PyTorch's own start divides the variance by about 6 per ReLU layer, down to what the biases give:
      // 1 / (3 · inputs). Healthy networks lie above 1e-4, and as far apart.
      cfg.threshold = 1e4;
      cfg.distribution_range = 0;
      cfg.patience = 0;
      cfg.min_variance = 1e-4;
      cfg.max_variance = 100;
      cfg.constant_weights = true;
      // What a residual branch gives is small by design, and what stands before a normalisation may be.
      cfg.small_share = 0.25;
      // Matrices of 522 healthy runs lie below 50; ten times the usual weights are a gain of 100 and more.
      cfg.max_gain = 100;
    }
    in.optional("threshold", cfg.threshold, config::at_least(1.0),
                "largest ratio of the largest variance of activation inputs to the smallest");
    in.optional("distribution_range", cfg.distribution_range, config::at_least(0.0),
                "smallest p95 − p05 of each gradient; 0 = off");
    in.optional("patience", cfg.patience, "loss points without a new minimum; 0 = off");
    in.optional("steps", cfg.steps, config::at_least(std::int64_t{1}),
                "number of training steps to look at");
    in.optional("combine", cfg.combine, config::one_of({"any", "all"}),
                "any: each check fires alone; all: variance_ratio, gradient_range and loss_flat "
                "must hold at one step");
    in.optional("min_variance", cfg.min_variance, "smallest variance of an activation input");
    in.optional("max_variance", cfg.max_variance, "largest variance of an activation input");
    in.optional("small_share", cfg.small_share, config::between(0.0, 1.0),
                "share of the activation inputs that must be that small; 0 = one is enough");
    in.optional("constant_weights", cfg.constant_weights,
                "whether weight matrices without variance count as a bad start");
    in.optional("max_gain", cfg.max_gain, config::at_least(0.0),
                "weights are too large if each matrix multiplies the variance of its input by more "
                "than this; 0 = off");
    if (!given) cfg.inputs.add_role(core::Role::activation_in);
  }
  // Whether the user has said which tensors are meant.
  static bool read_inputs(config::Reader& in, Config& cfg) {
    const std::vector<std::string> usual = cfg.activation_inputs_regex;
    read_items(in, "activation_inputs_regex", cfg.activation_inputs_regex,
               "activation inputs by name; default: these, and all with role activation_in");
    std::string error;
    for (const std::string& pattern : cfg.activation_inputs_regex) {
      if (!cfg.inputs.add_regex(pattern, error)) in.error("activation_inputs_regex", error);
    }
    return cfg.activation_inputs_regex != usual;
  }
  static std::vector<Need> needs(const Config& cfg) {
    std::vector<Need> out{{"layers", {}, 1, cfg.steps}};  // every step of those that are looked at
    if (cfg.distribution_range > 0) out.push_back({"gradients", {"quantiles"}, 1, cfg.steps});
    if (cfg.patience > 0) out.push_back({"losses"});
    if (cfg.constant_weights || cfg.max_gain > 0) out.push_back({"weights", {}, 1, cfg.steps});
    return out;
  }
  static void adjust(const Config& cfg, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    for (const std::string& pattern : cfg.activation_inputs_regex) {
      program.selection.add_regex(pattern, error);
    }
    program.selection.add_role(core::Role::activation_in);
    if (cfg.distribution_range > 0) program.selection.add_role(core::Role::gradient);
    if (cfg.patience > 0) program.selection.add_role(core::Role::loss);
    if (cfg.constant_weights || cfg.max_gain > 0) program.selection.add_role(core::Role::weight);
  }

  // --------------------------------------------------------------------------- what a step holds

  static bool takes(const Config& cfg, const WorkerRows& rows, const Scope&) {
    return rows.step < cfg.steps;
  }
  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    Seen seen;
    for (const StepRow& row : set.rows) look(cfg, state, set, row, report.scope(), seen);
    find_smallest(cfg, seen);
    const Verdict verdict = compare(cfg, state, seen);
    if (verdict.outcome == EvaluationOutcome::not_applicable) return;  // nothing that it reads
    report.evaluated({}, "start", verdict, [&](const Subject& subject, unsigned kind) {
      return explain(cfg, state, seen, report, subject, kind);
    });
  }

  static void look(const Config& cfg, State& state, const StepSet& set, const StepRow& row,
                   const Scope& scope, Seen& seen) {
    const Name* name = scope.find(row.name());
    seen.gain.add(row, name, cfg.max_gain);
    if (row.role() == core::Role::loss) {
      add_loss(state, row, seen);
    } else if (row.scalar || row.row.count < 2) {
      return;
    } else if (row.role() == core::Role::gradient) {
      add_gradient(row, seen);
    } else if (row.role() == core::Role::weight) {
      add_weight(cfg, set, row, scope, seen);
    } else if (cfg.inputs.matches(row.role(), name) == Match::yes &&
               !(name != nullptr && is_index(name->dtype))) {
      if (!is_beside(cfg, row, name)) add_input(row, seen);
    }
  }

  static void add_weight(const Config& cfg, const StepSet& set, const StepRow& row,
                         const Scope& scope, Seen& seen) {
    const Name* name = scope.find(row.name());
    const bool matrix = name != nullptr && is_matrix(name->shape) && row.row.count > kSmallMatrix;
    if (!cfg.constant_weights || !matrix || !std::isfinite(row.row.m2)) return;
    ++seen.matrices;
    const bool gain = row.row.min == 1 && name->shape.size() == kGainRank;
    const bool constant = row.row.min == row.row.max && row.row.min != 0 && !gain;
    if (constant && seen.constant == nullptr && !differs_beside(*name, set, scope)) {
      seen.constant = &row;
    }
  }

  static void add_input(const StepRow& row, Seen& seen) {
    const double variance = row.row.variance();
    if (!std::isfinite(variance)) {
      seen.input_unknown = seen.unusable = true;
      return;
    }
    ++seen.inputs;
    seen.variances.push_back({&row, variance});
    if (variance > seen.largest.value) seen.largest = {&row, variance};
  }

  // What a layer is given beside its data may be the same for all samples by design.
  static bool is_beside(const Config& cfg, const StepRow& row, const Name* name) {
    return cfg.constant_weights && row.row.min == row.row.max && name != nullptr &&
           is_further_input(name->text);
  }

  // The least such that small_share of them are as small: of few the smallest.
  static void find_smallest(const Config& cfg, Seen& seen) {
    if (seen.variances.empty()) return;
    const auto share = std::ceil(cfg.small_share * static_cast<double>(seen.variances.size()));
    const auto place = seen.variances.begin() +
                       std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(share), 1) - 1;
    std::nth_element(seen.variances.begin(), place, seen.variances.end(),
                     [](const Extreme& a, const Extreme& b) {
                       return a.value != b.value ? a.value < b.value : a.row < b.row;
                     });
    seen.smallest = *place;
  }

  // Indices of an embedding are no activations.
  static bool is_index(core::Dtype dtype) {
    return dtype != core::Dtype::unknown && !core::is_floating(dtype);
  }

  static void add_loss(State& state, const StepRow& row, Seen& seen) {
    const double value = row.row.count == 0 ? std::nan("") : row.row.mean();
    if (!std::isfinite(value)) return;
    seen.loss_points = true;
    const auto [at, fresh] = state.losses.try_emplace(row.name(), Loss{value, 0});
    Loss& loss = at->second;
    if (fresh) return;
    loss.without = value < loss.best ? 0 : loss.without + 1;
    loss.best = std::min(loss.best, value);
  }

  static void add_gradient(const StepRow& row, Seen& seen) {
    const auto low = row.statistic(core::SparseStat::p05);
    const auto high = row.statistic(core::SparseStat::p95);
    double range = low && high ? *high - *low : std::nan("");
    if (!row.has(core::meta::kUnscaled)) range /= row.loss_scale;
    if (!std::isfinite(range)) {
      seen.unusable = true;
      seen.range_unknown = seen.range_unknown || (low && high);
      return;
    }
    if (range < seen.narrowest.value) seen.narrowest = {&row, range};
  }

  // ------------------------------------------------------------------------------ judgement

  static bool flat(const Config& cfg, const State& state) {
    return std::all_of(state.losses.begin(), state.losses.end(),
                       [&](const auto& one) { return one.second.without >= cfg.patience; });
  }
  static double ratio(const Seen& seen) {
    return seen.largest.value / std::max(seen.smallest.value, kLeastVariance);
  }
  static bool outside(const Config& cfg, const Seen& seen) {
    return (cfg.min_variance && seen.smallest.value < *cfg.min_variance) ||
           (cfg.max_variance && seen.largest.value > *cfg.max_variance);
  }

  static Verdict compare(const Config& cfg, const State& state, const Seen& seen) {
    std::uint8_t kinds = 0;
    bool judged = false;
    const auto consider = [&](bool brought, bool holds, Kind kind) {
      judged = judged || brought;
      if (brought && holds) kinds = static_cast<std::uint8_t>(kinds | (1U << kind));
    };
    const bool ranges = seen.narrowest.row != nullptr && !seen.range_unknown;
    consider(seen.inputs >= 2 && !seen.input_unknown, ratio(seen) > cfg.threshold, kRatio);
    consider(cfg.distribution_range > 0 && ranges, seen.narrowest.value < cfg.distribution_range,
             kRange);
    consider(cfg.patience > 0 && seen.loss_points, flat(cfg, state), kFlat);
    if (cfg.combine == "all") {
      constexpr unsigned kThree = 1U << kRatio | 1U << kRange | 1U << kFlat;
      kinds = kinds == kThree ? 1U << kAll : 0;
    } else {
      consider(seen.inputs >= 1 && (cfg.min_variance || cfg.max_variance), outside(cfg, seen),
               kVariance);
      consider(seen.matrices > 0, seen.constant != nullptr, kConstant);
      consider(seen.gain.judged(), seen.gain.holds(), kLarge);
    }
    if (kinds != 0) return {EvaluationOutcome::hit, kinds};
    if (judged) return kOk;
    return seen.unusable ? kInsufficient : kNotApplicable;
  }

  static Finding explain(const Config& cfg, const State& state, const Seen& seen,
                         const SetReport& report, const Subject& subject, unsigned kind) {
    const auto name = [&](const StepRow* row) {
      return row == nullptr ? std::string() : report.scope().text(row->name());
    };
    Finding finding;
    if (kind == kRange) {
      finding = Finding::that("range", seen.narrowest.value);
      finding.is("<", "distribution_range", cfg.distribution_range)
          .titled(name(seen.narrowest.row), Verb::has, "values in a narrow range")
          .says(sentence("The values of {} lie within a range of {} (expected: at least {}) at {}.",
                         name(seen.narrowest.row), seen.narrowest.value, cfg.distribution_range,
                         subject.place()));
    } else if (kind == kFlat) {
      finding = Finding::that("points", static_cast<double>(state.losses.begin()->second.without));
      finding.is(">=", "patience", cfg.patience)
          .titled("losses", Verb::are, "flat")
          .says(sentence("No loss has reached a new minimum for {} points at {}.", cfg.patience,
                         subject.place()));
    } else if (kind == kConstant) {
      finding = Finding::that("variance", 0);
      finding.is("==", "variance", 0)
          .titled(name(seen.constant), Verb::has, "constant weights")
          .says(sentence("All {} elements of {} are {} at {}, so all its units are the same.",
                         seen.constant->row.count, name(seen.constant), seen.constant->row.min,
                         subject.place()));
      finding.tensor = report.tensor(*seen.constant);
    } else if (kind == kLarge) {
      finding = seen.gain.explain(name(seen.gain.least), subject, cfg.max_gain);
      finding.tensor = report.tensor(*seen.gain.least);
    } else if (kind == kVariance) {
      const bool low = cfg.min_variance && seen.smallest.value < *cfg.min_variance;
      const Extreme& worst = low ? seen.smallest : seen.largest;
      const double limit = low ? *cfg.min_variance : *cfg.max_variance;
      finding = Finding::that("variance", worst.value);
      finding.is(low ? "<" : ">", low ? "min_variance" : "max_variance", limit)
          .titled(name(worst.row), Verb::has, low ? "too little variance" : "too much variance")
          .says(sentence("The variance of {} is {} (expected: at {} {}) at {}.", name(worst.row),
                         worst.value, low ? "least" : "most", limit, subject.place()));
      finding.tensor = report.tensor(*worst.row);
    } else {
      finding = Finding::that("ratio", ratio(seen));
      finding.is(">", "threshold", cfg.threshold)
          .titled("variances of layers", Verb::are, "far apart")
          .says(sentence(
              "The variance of {} ({}) is {} times that of {} ({}) at {} (limit {}){}.",
              name(seen.largest.row), seen.largest.value, ratio(seen), name(seen.smallest.row),
              seen.smallest.value, subject.place(), cfg.threshold,
              kind == kAll ? ", gradients lie in a narrow range and losses are flat" : ""));
    }
    finding.advises(
        "Signals should neither vanish nor grow from layer to layer. Initialise by fan-in (He for "
        "ReLU, Glorot for tanh), normalise the input, and give no two units the same weights.");
    return with_evidence(std::move(finding), state, seen, name);
  }

  template <typename NameOf>
  static Finding with_evidence(Finding finding, const State& state, const Seen& seen,
                               const NameOf& name) {
    if (seen.inputs > 0) {
      finding.with("smallest_variance", seen.smallest.value)
          .with("smallest_layer", name(seen.smallest.row))
          .with("largest_variance", seen.largest.value)
          .with("largest_layer", name(seen.largest.row));
    }
    if (seen.narrowest.row != nullptr) {
      finding.with("narrowest_range", seen.narrowest.value)
          .with("narrowest_gradient", name(seen.narrowest.row));
    }
    for (const auto& [hash, loss] : state.losses) {
      finding.with("points_without_minimum", static_cast<std::int64_t>(loss.without));
      break;
    }
    return finding;
  }
};

}  // namespace

RuleDescriptor poor_weight_initialization() {
  return {.name = "poor_weight_initialization",
          .original_name = "PoorWeightInitialization",
          .title = "The first steps show a bad initialisation.",
          .unit = "worker",
          .needs =
              "activation inputs of the first steps (collection layers); preset original also "
              "gradients with statistic quantiles, and losses",
          .presets =
              "tocsin asks for variances of activation inputs within 0.0001 … 100, as usual "
              "initialisations give, and for weights that differ and are not far too large. "
              "original compares layers (factor 10) and looks at gradients and losses, which fires "
              "on 41 % of healthy runs.",
          .severity = core::Severity::warning,
          .version = "6",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<PoorWeightInitialization>};
}

}  // namespace tocsin::rules
