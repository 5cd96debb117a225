// Fires when a loss stops falling, jumps up, or loses what it had gained.
//
// Reads   scalars with role loss (and what the user selects), averaged over workers; where a script
//         sets no mode (XGBoost) also metrics of a data set that should fall (metric_name.h). Preset
//         tocsin: where a step has none that should, what those that should grow, and to 1 at most
//         (auc, ndcg, accuracy, …), lack to 1.
// Window  since the start of the attempt, O(1) state per series.
// Fires   preset tocsin, on points (each the mean of the losses since the last) whose distance
//         grows to num_steps with the values that the job has brought, v = median of the last 5,
//         first = first v, best = least v so far:
//           stuck  no improvement of 1 % of |best| over 4 points, best > 0.9 · first, and the line
//                  through all points has surely gained next to nothing
//           early  a point > 2 · |first point|; while points are single losses two in a row; between
//                  points the mean of the newest five. Of whole data sets two values in a row among the
//                  first 16 (whole_start.h)
//           rise   v > best + 0.5 · max(|best|, 0.5 · |first|) for 3 points
//           lost   once first − best > 0.05 · |first|, and more than noise makes: median of 3 >
//                  best + 0.5 · (first − best) for 2 points
//           jump   each of the newest 5 values lies above all of the 20 before, by jump_margin (a quarter) of
//                  the range of those, and by a twenty-fifth of what was gained (loss_jump.h)
//         noise_factor: early, rise and lost ask besides that the change is more than the scatter of
//         single losses explains (loss_noise.h); stuck is also said of a series that is one number from
//         the start on, for five points, where the step has an evaluation set's value too or the number is no
//         rounded one
//         preset original, every num_steps steps against the value at least that many steps before:
//           plateau   fall of 0 … diff_percent
//           increase  rise of more than increase_threshold_percent
//           stuck     with flat_evaluations = k: none of the last k brought diff_percent
//         loss_by_curve.h reads a step as preset tocsin does, loss_by_intervals.h as preset original does.
// Quiet   until the medians are full; for values that are not finite; for what should grow, but for
//         what is said above. Preset tocsin also
//           for other sets than the training set, when a step has several losses (adversarial training) and none
//           of an evaluation set, and for `error` and `merror`, which count whole samples;
//           while a metric that says how well the task is done (is_success: `reward`, `accuracy`, …) surely grows:
//           stuck by its line, the others since the loss was at its best;
//           stuck: while an evaluation's loss falls, by half a percent and more (falling_evaluation.h);
//           of an objective that begins at zero, until it stands out from its scatter by far;
//           stuck: while the learning rate rises (16 · num_steps at most) and 2 · num_steps steps beyond; while each
//           of three points lies further below the one before than that did; while it comes down from where it
//           had risen to;
//           rise and lost: of an objective (further below zero than it began above), which comes back to zero the
//           better it is met, until it is worse than at first.
// Source  Amazon SageMaker Debugger, LossNotDecreasing; docs/rules/loss_not_decreasing.md.

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/builtin/losses/falling_evaluation.h"
#include "rules/builtin/losses/loss_by_curve.h"
#include "rules/builtin/losses/loss_by_intervals.h"
#include "rules/builtin/losses/loss_curve.h"
#include "rules/builtin/losses/loss_interval.h"
#include "rules/builtin/losses/loss_jump.h"
#include "rules/builtin/losses/loss_telling.h"
#include "rules/builtin/losses/success_course.h"
#include "rules/builtin/losses/whole_start.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/answers_so_far.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLossKinds[] = {"plateau", "increase", "stuck", "early",
                                           "rise",    "lost",     "jump"};

struct LossNotDecreasing {
  static constexpr std::span<const std::string_view> kKinds = kLossKinds;
  static constexpr std::string_view kExtensions[] = {"flat_evaluations", "noise_factor",
                                                     "jump_margin", "train_set"};
  static constexpr std::size_t kTail = 20;

  struct Config : LossLimits {
    bool original = false;
    bool use_losses_collection = true;
    std::optional<std::string> mode;
    double noise_factor = 1;
    double jump_margin = 0.25;
    std::string train_set;
    bool chosen = false;             // the user says which series
    bool hears_evaluations = false;  // and judges none: no mode was chosen
  };
  using Saved = LossPoint;
  /// Which modes have been evaluated: without `mode`, only the first of eval, train, global may
  /// hit.
  struct Shared {
    std::uint8_t evaluated = 0;
    bool rated = false;     // a learning rate was logged
    bool trained = false;   // a value of a training set was
    bool rewarded = false;  // rewards were: their losses have moving targets
    Gap<4> gap{};
    double largest_rate = 0;   // so far
    std::int64_t rose_at = 0;  // step of that
    SuccessCourse success;
    FallingEvaluation evaluation;
    TellingTime telling;
  };
  struct State : LossCurve, LossInterval {
    LossJump jump;
    WholeStart start_of_sets;
    // evidence
    std::array<Saved, kTail> tail{};
    std::uint32_t tail_size = 0;
    Gap<4> gap{};
    LastAnswer answer;
  };

  static Defaults defaults(Preset) { return {}; }

  static void read(config::Reader& in, Config& cfg, Preset preset) {
    cfg.original = preset == Preset::original;
    in.optional("use_losses_collection", cfg.use_losses_collection, "add the collection losses");
    in.optional("num_steps", cfg.num_steps, config::at_least(std::int64_t{1}),
                "steps between two evaluations");
    in.optional("diff_percent", cfg.diff_percent, config::between(0.0, 99.999999),
                "original: smallest fall, in percent");
    in.optional("increase_threshold_percent", cfg.increase_threshold_percent,
                config::greater_than(0.0), "original: largest rise, in percent");
    in.optional("mode", cfg.mode,
                "original: EVAL, TRAIN or GLOBAL; unset: the first that has data");
    in.choices("mode",
               {"EVAL", "TRAIN", "GLOBAL", "Eval", "Train", "Global", "eval", "train", "global"});
    in.optional("flat_evaluations", cfg.flat_evaluations,
                config::between(std::uint32_t{0}, LossInterval::kRow),
                "original: evaluations without a fall of diff_percent; 0 = off");
    in.optional("noise_factor", cfg.noise_factor, config::at_least(0.0),
                "tocsin: weight of the scatter of the losses; 0 = judged as if they had none");
    in.optional("jump_margin", cfg.jump_margin, config::at_least(0.0),
                "tocsin: a jump is when the newest 5 losses lie above the 20 before by this share "
                "of their range; 0 = off");
    read_train_set(in, cfg.train_set);
    if (!cfg.mode) return;
    std::string lower = *cfg.mode;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    if (lower != "eval" && lower != "train" && lower != "global") {
      in.error("mode", "mode must be EVAL, TRAIN or GLOBAL");
    }
    cfg.mode = lower;
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  template <typename Own>
  static void adjust(const Config& cfg, Own& program) {
    const bool chosen = !program.selection.empty();
    program.config.chosen = chosen;
    if (!chosen) program.selection.add_role(core::Role::metric);  // see LossByCurve
    if (cfg.use_losses_collection || !chosen) program.selection.add_collection("losses");
    std::string error;
    if (!cfg.original) program.selection.add_regex("^learning_rate$", error);  // see LossByCurve
    if (!program.common.modes.empty()) return;
    if (!cfg.original) {
      program.config.hears_evaluations = true;
      program.common.mode_mask = kTrainModes | mode_bit(core::Mode::eval);
    } else if (cfg.mode) {
      program.common.mode_mask = mode_bit(core::mode_from(*cfg.mode).value_or(core::Mode::train));
    } else {
      program.common.mode_mask = kTrainModes | mode_bit(core::Mode::eval);
    }
  }

  // ---------------------------------------------------------------------------------- engine

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    const std::vector<ReadSeries> all = read_series(point, cfg.train_set);
    if (cfg.original) {
      LossByIntervals<LossNotDecreasing>::judge(cfg, memory, all, point, report);
    } else {
      LossByCurve<LossNotDecreasing>::judge(cfg, memory, all, point, report);
    }
  }

  static void on_pass(const Config& cfg, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    on_step(cfg, memory, pass, report);
  }

  // The memory of a series, which has kept the loss; nullptr: there is no room for it.
  static State* remember(SeriesMemory& memory, const SeriesKey& key, std::int64_t step,
                         double loss) {
    auto* state = memory.of<State>(key);
    if (state == nullptr) return nullptr;
    std::rotate(state->tail.begin(), state->tail.begin() + 1, state->tail.end());
    state->tail.back() = {step, loss};
    if (state->tail_size < kTail) ++state->tail_size;
    return state;
  }

  // ------------------------------------------------------------------------- what is told

  static void tell(const Config& cfg, SeriesMemory& memory, State& state, const SeriesKey& key,
                   const SeriesValue& value, bool lack, Verdict verdict, const StepPoint& point,
                   SeriesReport& report) {
    if (state.answer.take(verdict)) ++memory.shared<Shared>().telling.changed;
    const auto why = [&](const Subject& subject, unsigned kind) {
      return explain(cfg, state, subject, kind, lack);
    };
    report.evaluated(key, value.text, verdict, point, why);
  }

  static TellingTime& telling(SeriesMemory& memory) { return memory.shared<Shared>().telling; }
  static core::ValueMap answers(const Config& cfg, SeriesMemory& memory,
                                SeriesProgram::NameOf name_of) {
    AnswerCard card;
    if (cfg.original) return {};  // two values that it compares are no course
    memory.each<State>([&](const SeriesKey& key, const State& state) {
      const Verdict verdict = state.answer.verdict();
      card.add(
          answer_of(verdict),
          name_of(key.name) + ' ' + std::string(core::to_string(static_cast<core::Mode>(key.mode))),
          curve_numbers(state, kind_of(verdict, kKinds)));
    });
    return card.take();
  }

  static Finding explain(const Config& cfg, const State& state, const Subject& subject,
                         unsigned kind, bool lack) {
    const std::string loss =
        sentence("{}{} ({})", lack ? "1 minus " : "", subject.name, core::to_string(subject.mode));
    Finding finding = cfg.original
                          ? tell_interval(cfg, state, loss, kind)
                          : tell_curve(state, state.jump, state.tail.back().step, loss, kind);
    finding.advises(kind == kPlateau || kind == kStuck
                        ? "Most probable first: a learning rate far too high or too low; gradients "
                          "that do not reach the layers; labels that do not belong to their inputs."
                        : "Lower the learning rate or clip gradients. Check what changed at that "
                          "step: schedule, data, or a resumed checkpoint.");
    core::ValueList tail;
    for (std::size_t i = kTail - state.tail_size; i < kTail; ++i) {
      tail.emplace_back(core::ValueList{state.tail[i].step, state.tail[i].loss});
    }
    return finding.with("tail", std::move(tail));
  }
};

}  // namespace

RuleDescriptor loss_not_decreasing() {
  return {.name = "loss_not_decreasing",
          .original_name = "LossNotDecreasing",
          .title = "A loss stops falling, jumps up, or loses its gain.",
          .unit = "series",
          .needs = "collection losses",
          .presets =
              "tocsin smooths the training loss and asks for clear signs: stuck from the start, "
              "doubled, far above its best, half of the gain lost, a jump. original compares two "
              "single values num_steps apart, which fires on 78 % of healthy runs.",
          .severity = core::Severity::warning,
          .version = "14",
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_series_rule<LossNotDecreasing>};
}

}  // namespace tocsin::rules
