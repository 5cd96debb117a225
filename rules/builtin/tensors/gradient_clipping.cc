// Fires when most updates are clipped, or when the norm of the gradients jumps.
//
// Reads   the scalars grad_norm, clip_norm and clipped of a worker; where it logs no grad_norm, the
//         sums of squares of all its gradients.
// Window  the last `window` saved steps with a finite norm, one worker and mode; O(window) numbers.
// Fires   too_often  in a full window the share of steps with g > max_norm (none: the step's own
//                    clip_norm; none: clipped is not 0) exceeds max_clipped_fraction, and (preset
//                    tocsin) the median of g / max_norm over the window exceeds min_cut
//         spike      g > spike_factor · median of the up to `window` norms before it, 20 at least
// Quiet   for norms that are not finite, for updates that mixed precision left out, and at steps
//         that lack a gradient which the worker has sent before.
// Source  ours; docs/rules/gradient_clipping.md. Transformers and fine-tunes clip at 1 by recipe and
//         are beyond it nearly always, by up to 8 times in our recordings; what scales its updates
//         by a constant does no harm. Beyond ten times the limit is in fact the learning rate.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/identity.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kClippingKinds[] = {"too_often", "spike"};

struct GradientClipping {
  static constexpr std::span<const std::string_view> kKinds = kClippingKinds;
  static constexpr bool kPerWorker = true;
  static constexpr std::span<const Sent> kSent{};
  static constexpr std::string_view kExtensions[] = {"min_cut"};
  static constexpr std::size_t kLeastForMedian = 20;
  enum Kind : unsigned { kTooOften, kSpike };
  enum Scalar : std::size_t { kNorm, kLimit, kFlag };

  struct Config {
    std::uint32_t window = 100;
    double max_clipped_fraction = 0.5;
    std::optional<double> max_norm;
    double spike_factor = 10;
    double min_cut = 0;  // 0: off
  };
  struct Step {
    std::int64_t step = 0;
    double norm = 0;
    double limit = 0;         // NaN: nobody says
    std::int8_t clipped = 0;  // −1: nobody says

    [[nodiscard]] double cut() const {
      if (limit > 0) return norm / limit;
      return norm > 0 ? HUGE_VAL : 0;
    }
  };
  struct State {
    std::vector<Step> steps;           // the last window + 1, oldest first
    std::vector<std::uint64_t> names;  // of the gradients that the worker has sent, ascending
    double median = 0;                 // of the norms before the newest
    double share = 0;
    double cut = 0;  // median over the window of norm / limit; NaN: nobody says the limit

    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.steps, s.names, s.median, s.share, s.cut);
    }
  };

  static Defaults defaults(Preset) {
    return {.modes = kTrainModes, .roles = {core::Role::gradient}};
  }
  static void read(config::Reader& in, Config& cfg, Preset preset) {
    if (preset == Preset::tocsin) {
      cfg.window = 30;
      cfg.min_cut = 10;
    }
    in.optional("window", cfg.window, config::between(10U, 10000U),
                "number of saved steps in the window");
    in.optional("max_clipped_fraction", cfg.max_clipped_fraction, config::between(0.0, 1.0),
                "largest share of clipped steps in a full window");
    in.optional("max_norm", cfg.max_norm, config::if_given(config::greater_than(0.0)),
                "norm above which a step counts as clipped; null = what the job logs as clip_norm, "
                "else as clipped");
    in.optional("spike_factor", cfg.spike_factor, config::greater_than(1.0),
                "a norm of this many medians is a spike");
    in.optional("min_cut", cfg.min_cut, config::at_least(0.0),
                "clipping is too frequent only if the median norm of the window is this multiple "
                "of the clipping norm; not judged if that norm is unknown; 0 = off");
  }
  static std::vector<Need> needs(const Config&) { return {{"gradients"}}; }
  static void adjust(const Config&, Program& program) {
    std::string error;
    program.selection.add_regex("^(grad_norm|clip_norm|clipped)$", error);
  }

  // ------------------------------------------------------------------------------ one step

  struct Logged {
    std::optional<double> values[3];
    std::vector<const StepRow*> gradients;
  };
  static Logged sort(const StepSet& set) {
    static const std::uint64_t kHashes[] = {
        core::name_hash("grad_norm"), core::name_hash("clip_norm"), core::name_hash("clipped")};
    Logged out;
    out.gradients.reserve(set.rows.size());
    for (const StepRow& row : set.rows) {
      if (!row.scalar) out.gradients.push_back(&row);
      for (std::size_t i = 0; row.scalar && i < std::size(kHashes); ++i) {
        if (row.name() == kHashes[i]) out.values[i] = row.row.sum;
      }
    }
    return out;
  }

  // The norm over all gradients; NaN where one of them is missing, partial or not finite.
  static double norm_of(State& state, const std::vector<const StepRow*>& gradients) {
    double squares = 0;
    for (const StepRow* one : gradients) {
      const double scale = one->has(core::meta::kUnscaled) ? 1 : one->loss_scale;
      squares += one->has(core::meta::kPartial) ? std::nan("") : one->row.sumsq / (scale * scale);
    }
    const auto same = [](const StepRow* one, std::uint64_t name) { return one->name() == name; };
    if (std::equal(gradients.begin(), gradients.end(), state.names.begin(), state.names.end(),
                   same)) {
      return std::sqrt(squares);  // as every step
    }
    std::vector<std::uint64_t> names;
    names.reserve(gradients.size());
    for (const StepRow* one : gradients) names.push_back(one->name());
    if (!std::is_sorted(names.begin(), names.end())) std::sort(names.begin(), names.end());
    if (names == state.names) return std::sqrt(squares);
    const bool whole =
        std::includes(names.begin(), names.end(), state.names.begin(), state.names.end());
    std::vector<std::uint64_t> all;
    std::set_union(names.begin(), names.end(), state.names.begin(), state.names.end(),
                   std::back_inserter(all));
    state.names = std::move(all);
    return whole ? std::sqrt(squares) : std::nan("");
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const Logged logged = sort(set);
    if (!logged.values[kNorm] && logged.gradients.empty()) return;
    const auto left_out = [](const StepRow* row) {
      return row->has(core::meta::kOptimizerSkipped);
    };
    if (set.skipped || std::any_of(logged.gradients.begin(), logged.gradients.end(), left_out)) {
      return;  // no update, so nothing was clipped
    }
    Step now{set.step, 0, logged.values[kLimit].value_or(std::nan("")),
             static_cast<std::int8_t>(logged.values[kFlag] ? *logged.values[kFlag] > 0 : -1)};
    now.norm = logged.values[kNorm] ? *logged.values[kNorm] : norm_of(state, logged.gradients);
    if (cfg.max_norm) now.limit = *cfg.max_norm;
    if (!std::isnan(now.limit)) now.clipped = now.norm > now.limit ? 1 : 0;
    const Verdict verdict = std::isfinite(now.norm) ? add(cfg, state, now) : kInsufficient;
    report.evaluated(
        {{"metric", "grad_norm"}}, "grad_norm", verdict,
        [&](const Subject& subject, unsigned kind) { return explain(cfg, state, subject, kind); });
  }

  static Verdict add(const Config& cfg, State& state, const Step& now) {
    state.steps.push_back(now);
    if (state.steps.size() > cfg.window + 1U) state.steps.erase(state.steps.begin());
    Verdict verdict = kInsufficient;
    const auto consider = [&](bool holds, Kind kind) {
      if (verdict.outcome == EvaluationOutcome::insufficient_data) verdict = kOk;
      if (!holds) return;
      verdict.outcome = EvaluationOutcome::hit;
      verdict.kinds = static_cast<std::uint8_t>(verdict.kinds | (1U << kind));
    };
    const std::span<const Step> steps = state.steps;
    if (steps.size() >= cfg.window) {
      const auto last = steps.last(cfg.window);
      const auto known = [](const Step& one) { return one.clipped >= 0; };
      state.cut = cut_of(last);
      if (std::all_of(last.begin(), last.end(), known) &&
          (cfg.min_cut == 0 || !std::isnan(state.cut))) {
        const auto clipped = std::count_if(last.begin(), last.end(),
                                           [](const Step& one) { return one.clipped > 0; });
        state.share = static_cast<double>(clipped) / cfg.window;
        const bool deep = cfg.min_cut == 0 || state.cut > cfg.min_cut;
        consider(state.share > cfg.max_clipped_fraction && deep, kTooOften);
      }
    }
    if (steps.size() > kLeastForMedian) {
      state.median = median_norm(steps.first(steps.size() - 1));
      consider(now.norm > cfg.spike_factor * state.median, kSpike);
    }
    return verdict;
  }

  static double median_of(std::vector<double> numbers) {
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    std::nth_element(numbers.begin(), middle, numbers.end());
    if (numbers.size() % 2 == 1) return *middle;
    return std::midpoint(*std::max_element(numbers.begin(), middle), *middle);
  }
  static double median_norm(std::span<const Step> steps) {
    std::vector<double> norms;
    norms.reserve(steps.size());
    for (const Step& one : steps) norms.push_back(one.norm);
    return median_of(std::move(norms));
  }
  static double cut_of(std::span<const Step> steps) {
    std::vector<double> cuts;
    cuts.reserve(steps.size());
    for (const Step& one : steps) {
      if (std::isnan(one.limit)) return std::nan("");
      cuts.push_back(one.cut());
    }
    return median_of(std::move(cuts));
  }

  // ------------------------------------------------------------------------------- evidence

  static Finding explain(const Config& cfg, const State& state, const Subject& subject,
                         unsigned kind) {
    const Step& now = state.steps.back();
    Finding finding;
    if (kind == kTooOften) {
      const std::span<const Step> last = std::span(state.steps).last(cfg.window);
      finding = Finding::that("clipped_fraction", state.share);
      finding.is(">", "max_clipped_fraction", cfg.max_clipped_fraction)
          .titled("nearly all updates", Verb::are, "clipped")
          .says(sentence("{} % of the last {} updates were clipped (limit {} %) at {}.",
                         100 * state.share, cfg.window, 100 * cfg.max_clipped_fraction,
                         subject.place()))
          .advises(
              "Nearly every update then has the same length, whatever the gradient is. Lower the "
              "learning rate, warm it up for longer, or raise the clipping norm.")
          .since(last.front().step, cfg.window);
      if (!std::isnan(state.cut)) finding.with("median_cut", state.cut);
    } else {
      const std::size_t before = state.steps.size() - 1;
      finding = Finding::that("grad_norm", now.norm);
      finding.is(">", "limit", cfg.spike_factor * state.median)
          .titled("gradient norm", Verb::is, "far above its median")
          .says(sentence("The gradient norm is {} at {}, {} times the median of the {} saved steps "
                         "before ({}).",
                         now.norm, subject.place(), now.norm / state.median, before, state.median))
          .advises(
              "Check the batch of this step and the learning rate. Clip gradients by norm if it "
              "happens again.")
          .with("median", state.median)
          .since(state.steps.front().step, state.steps.size());
    }
    finding.with("grad_norm", now.norm);
    if (!std::isnan(now.limit)) finding.with("max_norm", now.limit);
    return finding.with("clipped_fraction", state.share);
  }
};

}  // namespace

RuleDescriptor gradient_clipping() {
  return {.name = "gradient_clipping",
          .original_name = "GradientClipping",
          .title = "Most updates are clipped, or the norm of the gradients jumps.",
          .unit = "worker",
          .needs = "scalar grad_norm (with clip_norm or clipped), else collection gradients",
          .presets =
              "tocsin looks at 30 saved steps, original at 100, which few jobs save. In tocsin, "
              "the median norm must be 10 times the clipping norm: most transformers train at less "
              "than that.",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kPyTorch,
          .read = &read_step_set_rule<GradientClipping>};
}

}  // namespace tocsin::rules
