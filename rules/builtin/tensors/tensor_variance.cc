// Fires when the variance of a chosen tensor leaves the limits that the user gives.
//
// Reads   Σ(x − mean)² and n of the tensors that the user selects.
// Window  one step of one tensor, worker and mode; judged on arrival.
// Fires   v > max_threshold (`high`) or v < min_threshold (`low`), v = variance of the population.
//         Preset tocsin looks at tensors of two dimensions or more.
// Quiet   for fewer than two elements, which have no variance, and for tensors with NaN or Inf.
// Source  Amazon SageMaker Debugger, TensorVariance; docs/rules/tensor_variance.md. Parameters of
//         normalisation layers start as constants: hence the dimensions of our preset.

#include <cmath>
#include <optional>

#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kVarianceKinds[] = {"high", "low"};
struct TensorVariance {
  enum Kind : unsigned { kHigh, kLow };

  static constexpr std::span<const std::string_view> kKinds = kVarianceKinds;

  struct Config {
    std::optional<double> max_threshold;
    std::optional<double> min_threshold;
    bool matrices = false;
  };
  struct State {};

  static Defaults defaults(Preset) { return {.needs_selector = true}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.matrices = preset == Preset::tocsin;
    in.optional("max_threshold", cfg.max_threshold, "largest variance");
    in.optional("min_threshold", cfg.min_threshold, config::if_given(config::at_least(0.0)),
                "smallest variance");
    if (in.describing()) return;
    if (!cfg.max_threshold && !cfg.min_threshold) {
      in.error("max_threshold", "this rule needs max_threshold, min_threshold or both");
    }
    if (cfg.max_threshold && !(*cfg.max_threshold > cfg.min_threshold.value_or(-HUGE_VAL))) {
      in.error("max_threshold", "max_threshold must be greater than min_threshold");
    }
  }

  static void adjust(const Config& cfg, Program& program) {
    for (const std::string& name : program.common.collection_names) program.needs.push_back({name});
    if (cfg.matrices) program.selection.least_rank(2);
  }

  static double variance(const Row& row, const RowBatch& batch) {
    const double scale = batch.scale_of(row);
    return row.variance() / (scale * scale);
  }

  static Verdict update(const Config& cfg, State&, const Row& row, const RowBatch& batch) {
    if (row.count() < 2) return kNotApplicable;
    const double v = variance(row, batch);
    if (!std::isfinite(v)) return kInsufficient;
    if (cfg.max_threshold && v > *cfg.max_threshold) return hit(kHigh);
    return cfg.min_threshold && v < *cfg.min_threshold ? hit(kLow) : kOk;
  }

  static double badness(const Config& cfg, const State&, const Row* row) {
    if (row == nullptr) return 0;
    const double v = row->variance();
    return cfg.min_threshold && v < *cfg.min_threshold ? -v : v;
  }

  static Finding explain(const Config& cfg, const State&, const Row* row, const RowBatch* batch,
                         const Subject& subject, unsigned kind) {
    const double v = variance(*row, *batch);
    const double limit = kind == kHigh ? *cfg.max_threshold : *cfg.min_threshold;
    return Finding::that("variance", v)
        .is(kind == kHigh ? ">" : "<", kind == kHigh ? "max_threshold" : "min_threshold", limit)
        .titled(subject.name, Verb::has,
                kind == kHigh ? "too much variance" : "too little variance")
        .says(sentence("The variance of {} is {} ({} {}) at {}.", subject.name, v,
                       kind == kHigh ? "limit" : "at least", limit, subject.place()))
        .advises(kind == kHigh ? "Values that spread ever wider saturate activations and overflow. "
                                 "Check initialisation, normalisation and learning rate."
                               : "Values that are all equal carry no signal. Check the "
                                 "initialisation, and that the tensor gets a gradient.")
        .with("mean", row->mean() / batch->scale_of(*row))
        .with("count", row->count());
  }
};

}  // namespace

RuleDescriptor tensor_variance() {
  return {.name = "tensor_variance",
          .original_name = "TensorVariance",
          .title = "The variance of a chosen tensor is too large or too small.",
          .unit = "tensor",
          .needs = "the tensors named by collection_names or tensor_regex",
          .presets =
              "tocsin looks at tensors of two dimensions or more. original also fires on "
              "parameters of normalisation layers, which start as constants.",
          .severity = core::Severity::warning,
          .read = &read_row_rule<TensorVariance>};
}

}  // namespace tocsin::rules
