// Fires when the gradients of a model are nothing but noise: independent normal numbers.
//
// Reads   count, sum, sum of sizes and of squares, min and max of tensors with role gradient of 128 elements
//         or more.
// Window  the latest saved steps of one worker, three at least, that hold 20 000 elements; of the first `steps`
//         training steps. Judged when the worker has ended one of them.
// Fires   all tensors, two at least in each step, look like independent normal numbers around 0, one by one
//         and together: noise_moments.h
// Quiet   where in more than half of the steps all tensors have the same deviation, by same_deviation: noise that is added on purpose
//         (differential privacy, Langevin dynamics) or that stands for a direction (evolution strategies,
//         gradients from two forward passes) is drawn alike for all parameters.
// Source  our own; docs/rules/gradient_noise.md.

#include <algorithm>
#include <cmath>
#include <vector>

#include "rules/builtin/tensors/noise_moments.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

struct GradientNoise {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = true;
  static constexpr std::span<const Sent> kSent{};
  static constexpr std::uint64_t kLeast =
      128;  // elements: of fewer the deviations are no normal ones
  static constexpr std::size_t kTensors = 2;
  static constexpr std::size_t kSaves = 3;
  static constexpr std::size_t kMostSaves = 64;

  struct Config {
    std::int64_t steps = 1000;
    double elements = 20000;
    double same_deviation = 1.2;
  };
  struct Saved {
    std::int64_t step = 0;
    std::uint64_t alike = 0;  // 1: all tensors have one deviation
    NoiseMoments moments;
    template <typename A>
    friend void io(A& a, Saved& s) {
      io_all(a, s.step, s.alike, s.moments);
    }
  };
  struct State {
    std::vector<Saved> normal;  // saved steps in a row whose tensors all look so, oldest first
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.normal);
    }
  };
  /// The saved steps that are judged together.
  struct Window {
    std::size_t saves = 0;
    std::size_t alike = 0;
    NoiseMoments moments;
    [[nodiscard]] bool meant() const { return 2 * alike > saves; }
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes, .roles = {core::Role::gradient}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("steps", cfg.steps, config::at_least(std::int64_t{1}),
                "number of training steps to look at");
    in.optional("elements", cfg.elements, config::at_least(1.0),
                "gradient elements that are judged together, from at least three saved steps");
    in.optional("same_deviation", cfg.same_deviation, config::at_least(1.0),
                "noise counts as intended if the deviations of the tensors of a step differ by "
                "less than this factor");
  }
  static std::vector<Need> needs(const Config&) { return {{"gradients"}}; }

  static bool takes(const Config& cfg, const WorkerRows& rows, const Scope&) {
    return rows.step < cfg.steps && rows.scalar == nullptr;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    Saved saved{set.step, 0, {}};
    double least = HUGE_VAL;
    double most = 0;
    bool normal = true;
    for (const StepRow& row : set.rows) {
      if (row.row.count < kLeast) continue;
      const NoiseTensor one(row.row);
      saved.moments.add(one);
      normal = normal && one.normal;
      least = std::min(least, one.rms);
      most = std::max(most, one.rms);
    }
    if (saved.moments.tensors < kTensors)
      return report.without_unit(EvaluationOutcome::not_applicable);
    if (!normal) {
      state.normal.clear();
      return report.evaluated({}, "gradients", kOk,
                              [](const Subject&, unsigned) { return Finding(); });
    }
    saved.alike = most <= cfg.same_deviation * least ? 1 : 0;
    state.normal.push_back(saved);
    if (state.normal.size() > kMostSaves) state.normal.erase(state.normal.begin());
    const Window window = newest(cfg, state);
    const bool enough = window.saves >= kSaves && window.moments.n >= cfg.elements;
    const bool noise = window.moments.normal() && !window.meant();
    const Verdict verdict = !enough ? kInsufficient : noise ? hit() : kOk;
    report.evaluated({}, "gradients", verdict, [&](const Subject& subject, unsigned) {
      return explain(state, window, subject);
    });
  }

  static Window newest(const Config& cfg, const State& state) {
    Window out;
    for (auto one = state.normal.rbegin(); one != state.normal.rend(); ++one) {
      if (out.saves >= kSaves && out.moments.n >= cfg.elements) break;
      out.moments.merge(one->moments);
      out.alike += one->alike;
      ++out.saves;
    }
    return out;
  }

  static Finding explain(const State& state, const Window& window, const Subject& subject) {
    const NoiseMoments& all = window.moments;
    Finding finding = Finding::that("mean_size_by_rms", all.size());
    finding.is("==", "normal", std::sqrt(2 * std::numbers::inv_pi))
        .titled("gradients", Verb::are, "pure noise")
        .says(sentence("The gradients are only noise: {} elements of {} saved steps up to {} look "
                       "like independent normal numbers.",
                       static_cast<std::uint64_t>(all.n), window.saves, subject.place()))
        .advises(
            "Check what happens between backward() and step(): gradient hooks, compression, a "
            "reduction over workers, memory that is read before it is written. If the noise is "
            "intended, silence the rule for this job.")
        .since(state.normal[state.normal.size() - window.saves].step, window.saves)
        .with("tensors", all.tensors)
        .with("elements", all.n);
    return finding;
  }
};

}  // namespace

RuleDescriptor gradient_noise() {
  return {.name = "gradient_noise",
          .original_name = "GradientNoise",
          .title = "Gradients are only noise.",
          .unit = "worker",
          .needs = "collection gradients",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "1",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<GradientNoise>};
}

}  // namespace tocsin::rules
