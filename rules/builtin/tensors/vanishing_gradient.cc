// Fires when gradients become too small to train with.
//
// Reads   Σ|x| and n of tensors with role gradient.
// Window  one step of one worker: its tensors are judged together when it has ended the step, or
//         each on arrival when min_fraction is 0.
// Fires   mean|g| < threshold for at least min_fraction of the worker's gradient tensors; then each
//         of those is a hit.
// Quiet   for tensors with NaN or Inf (exploding_tensor reports those) and empty ones. Preset tocsin:
//           for biases, whose gradient is zero by construction in front of a normalisation;
//           for gradients that are 0 throughout, until they were so at 4 steps as far from each other, and in
//           the first 5 steps: they have not become small. An expert that no sample took, a block that was
//           left out, samples that all keep their margin, a layer behind one that starts at zero;
//           for gradients that have faded, as those of a loss that comes to zero do: once seen
//           between the limit and 100 times that.
// Source  Amazon SageMaker Debugger, VanishingGradient; docs/rules/vanishing_gradient.md. The
//         fraction of the default preset is our own: a bias in front of a normalisation layer has
//         zero gradient by construction.

#include <bit>
#include <cmath>
#include <cstdint>

#include "rules/contract/exact_double.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/contract/together.h"

namespace tocsin::rules {
namespace {

// The tensor is the gradient of something: `gradient/0.weight` of `0.weight`.
std::string_view parameter_of(std::string_view gradient) {
  constexpr std::string_view kPrefix = "gradient/";
  return gradient.starts_with(kPrefix) ? gradient.substr(kPrefix.size()) : gradient;
}

struct VanishingGradient {
  static constexpr TensorUse kTensorUse = TensorUse::several;  // shares, and the scalar loss_scale
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr std::int64_t kWarmUp = 5;  // first steps: a warm-up may begin with a rate of 0
  static constexpr std::uint64_t kZeros = 4;  // steps at which a gradient of 0 is no accident
  static constexpr double kFades =
      100;  // times the limit: what comes by there has not vanished at once

  struct Config {
    double threshold = 1e-7;
    double min_fraction = 0;
    bool ours = false;
  };
  struct State {
    double abs_mean = 0;  // after unscaling
    double abs_max = 0;
    double zero_share = 0;
    double loss_scale = 1;
    std::uint64_t count = 0;
    std::uint64_t sparse = 0;  // 1: of stored rows
    std::uint64_t faded = 0;   // 1: it was seen on its way down
    std::uint64_t zeros = 0;   // steps with nothing but 0, each as far from the one before as that
    std::int64_t zero_step = 0;  // the newest of these
    std::int64_t zero_distance = 0;
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes, .roles = {core::Role::gradient}};
  }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    if (preset == Preset::tocsin) cfg.min_fraction = 0.25;
    cfg.ours = preset == Preset::tocsin;
    in.optional("threshold", cfg.threshold, config::greater_than(0.0),
                "a gradient has vanished below this mean magnitude");
    in.optional("min_fraction", cfg.min_fraction, config::between(0.0, 1.0),
                "least share of a worker's gradient tensors that must be below it at a step");
  }

  static std::vector<Need> needs(const Config&) { return {{"gradients"}}; }

  template <typename Own>
  static void adjust(const Config& cfg, Own& program) {
    const Common& chosen = program.common;
    if (!cfg.ours || !chosen.collection_names.empty() || !chosen.tensor_regex.empty()) return;
    program.selection.without("bias");
  }

  // What is above needs no look.
  static double limit_of(const Config& cfg) { return cfg.threshold * (cfg.ours ? kFades : 1.0); }

  static Verdict update(const Config& cfg, State& state, const Row& row, const RowBatch& batch) {
    const std::uint64_t count = row.count();
    if (count == 0) return kNotApplicable;
    const double scale = (row.meta() & core::meta::kUnscaled) != 0 ? 1.0 : batch.loss_scale;
    if (far_above(limit_of(cfg), scale, row.abs_sum(), static_cast<double>(count))) return kOk;
    const double abs_mean = row.abs_sum() / static_cast<double>(count) / scale;
    if (!std::isfinite(abs_mean)) return kInsufficient;
    if (!(abs_mean < cfg.threshold)) {
      if (cfg.ours && abs_mean < kFades * cfg.threshold) state.faded = 1;
      return kOk;
    }
    if (cfg.ours && state.faded != 0) return kInsufficient;
    if (cfg.ours && row.zero() == count && !stays_zero(state, batch.step)) return kInsufficient;
    state.abs_mean = abs_mean;
    state.abs_max = row.abs_max() / scale;
    state.zero_share = static_cast<double>(row.zero()) / static_cast<double>(count);
    state.loss_scale = scale;
    state.count = count;
    state.sparse = (row.meta() & core::meta::kSparse) != 0 ? 1 : 0;
    return hit();
  }

  // What is far above the limit between two of them is not looked at, so their distance tells.
  static bool stays_zero(State& state, std::int64_t step) {
    const std::int64_t gone = distance(step, state.zero_step);
    const bool goes_on = state.zeros == 1 || gone == state.zero_distance;
    state.zeros = state.zeros == 0 ? 1 : goes_on ? state.zeros + 1 : 2;
    state.zero_distance = gone;
    state.zero_step = step;
    return state.zeros >= kZeros && step >= kWarmUp;
  }

  // Twice the threshold, so that no rounding matters, and nothing on the way over- or underflows:
  // as nearly all gradients are, and no division is needed to see it.
  static bool far_above(double threshold, double scale, double abs_sum, double count) {
    const double least = threshold * scale;
    return scale >= 1 && least > 1e-290 && abs_sum < 1e290 && abs_sum > 2 * least * count;
  }

  // Where all is far above the limit, as update() would find it. Without branches, so that several rows
  // are looked at in one instruction.
  TOCSIN_TOGETHER static bool quiet(const Config& cfg, const RowBatch& batch, std::size_t from,
                                    std::size_t count) {
    const double least = limit_of(cfg) * batch.loss_scale;
    if (!(batch.loss_scale >= 1 && cfg.threshold > 1e-290)) return false;
    constexpr auto kLargest = std::bit_cast<std::uint64_t>(1e290);
    const auto counts = batch.column<std::uint64_t>(core::summary_column::count, from);
    const auto sums = batch.column<double>(core::summary_column::abs_sum, from);
    std::uint64_t below = 0;  // its sign: one of them is not
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t n = counts[i];
      const auto sum = std::bit_cast<std::uint64_t>(sums[i]);
      below |= (n - 1) | (kExactDouble - 1 - n);  // none, or too many
      below |= sum | (kLargest - sum);            // negative, too large, or no finite number
      below |= std::bit_cast<std::uint64_t>(sums[i] - 2 * least * exact_double(n));
    }
    return below >> 63 == 0;
  }

  static double badness(const Config&, const State& state, const Row*) { return -state.abs_mean; }

  static Finding explain(const Config& cfg, const State& state, const Row*, const RowBatch*,
                         const Subject& subject, unsigned) {
    Finding out = Finding::that("abs_mean", state.abs_mean);
    out.is("<", "threshold", cfg.threshold)
        .titled(sentence("gradient of {}", parameter_of(subject.name)), Verb::is, "vanishing")
        .says(sentence("The gradient of {} has nearly vanished: mean magnitude {} (limit {}) at "
                       "{}, where {} of {} gradients are that small.",
                       parameter_of(subject.name), state.abs_mean, cfg.threshold, subject.place(),
                       subject.hit, subject.evaluated))
        .advises(
            "Layers with such gradients do not learn. Try ReLU-like activations, normalisation "
            "layers, residual connections or another initialisation. With mixed precision, check "
            "the loss scale.")
        .with("abs_max", state.abs_max)
        .with("zero_share", state.zero_share)
        .with("count", state.count)
        .with("loss_scale", state.loss_scale)
        .with("dtype", core::to_string(subject.dtype).data())
        .with("position", static_cast<std::uint64_t>(subject.position))
        .with("share_of_tensors",
              static_cast<double>(subject.hit) / static_cast<double>(subject.evaluated));
    if (state.sparse != 0) out.with("sparse", true);
    return out;
  }
};

}  // namespace

RuleDescriptor vanishing_gradient() {
  return {
      .name = "vanishing_gradient",
      .original_name = "VanishingGradient",
      .title = "Gradients are too small to train with.",
      .unit = "tensor",
      .needs = "collection gradients",
      .presets =
          "tocsin needs a quarter of a worker's gradient tensors below the threshold (min_fraction "
          "0.25), original a single one. tocsin leaves out biases: before a normalisation layer, "
          "their gradient is zero in every healthy run. It judges gradients that are 0 throughout "
          "only from the fourth step in a row on, and ignores those that were once between the "
          "threshold and 100 times that: they fade with the loss.",
      .severity = core::Severity::warning,
      .version = "4",
      .groups = group::kDefault | group::kPyTorch,
      .read = &read_row_rule<VanishingGradient>};
}

}  // namespace tocsin::rules
