// Fires when the course of a loss is not normal for its own noise.
//
// Reads   scalars with role loss in train, global and eval; metrics of a booster's data sets; learning_rate; the ledger's
//         loss calls and planned updates; names that say that a job learns by reward.
// Window  since the start of the attempt, O(1) state per series. Training losses in means of 8 values (loss_levels.h) and by
//         looks at 64, 128, 256 … values (loss_looks.h), evaluations by passes (evaluation_turn.h).
// Fires   stuck   at a look none of the newest three doublings lies below an earlier one, and no loss call of the ledger is better
//                 than a constant by `skill` or gets there by the end (pairing_course.h). Without a ledger: it never fell at
//                 any look, and is surely above 1 − `gain` of where it began, and does not get there
//         rise    it is above where it began: by a tenth more than the trivial loss; without one by all that was gained, by
//                 the first loss (where all are positive) and by eight deviations of single values
//         lost    it has given back `back` (half) of what it had surely gained
//         spike   it has jumped by 8 errors and `jump` (a quarter) of the gain, and stays there
//         spread  single values scatter ten times as much as before, and their mean stays; info
//         turned  an evaluation has given back `turn` (a tenth) of what was gained, in three passes in a row, a quarter of
//                 the passes behind its best, while training is no worse than it was then
//         rise, lost and spike must last for an eighth of what came before, and not be on their way back.
// Quiet   below, since the rate rises or the constant's loss changes by a tenth; of training where a step has several
//         losses, or they take turns; of jobs that learn by reward; stuck while the rate was larger than ever within the
//         newest half, and without a ledger where an evaluation has gained; turned while a growing metric of the same data
//         keeps its gain; of error and merror, which count whole samples.
// Source  our own; docs/rules/course.md.

#include <algorithm>
#include <cmath>
#include <vector>

#include "rules/builtin/losses/course_task.h"
#include "rules/builtin/losses/course_telling.h"
#include "rules/builtin/shared/metric_name.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/answers_so_far.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kCourseKinds[] = {"rise", "lost", "spike", "spread", "stuck", "turned"};

struct NormalCourse {
  static constexpr std::span<const std::string_view> kKinds = kCourseKinds;
  static constexpr std::string_view kExtensions[] = {"train_set"};
  enum Kind : unsigned { kStuck = LossLevels::kKinds, kTurned };
  static constexpr std::uint8_t kJoined = 0xFF;    // keys in the place of a mode
  static constexpr std::uint8_t kTraining = 0xFE;  // values of a booster's training metric
  static constexpr std::uint8_t kHeld = 0xFD;      // a growing metric of evaluated data
  static constexpr double kTurns = 8;              // one in so many values: losses that take turns

  struct Config {
    CourseBounds bounds;
    std::string train_set;
  };
  struct Shared : CourseTask {
    TellingTime telling;
    std::uint64_t name = 0;  // of the newest training loss
    double changes = 0;      // how often it was another one
    double values = 0;
    TrainingLevel training;
    double evaluation_gained = 0;
  };
  struct State {
    LossLevels levels;
    LossLooks looks;
    double told_trivial = 0;
    double told_skill = 0;
    LastAnswer answer;
  };
  struct Evaluated {
    EvaluationTurn turn;
    LastAnswer answer;
    double held = 0;
  };
  /// Of a booster's training metric.
  struct Trained {
    double values = 0;
    TrainingLevel level;
  };

  static Defaults defaults(Preset) {
    return {.modes = static_cast<std::uint8_t>(kTrainModes | mode_bit(core::Mode::eval)),
            .roles = {core::Role::loss, core::Role::metric}};
  }

  static void read(config::Reader& in, Config& cfg, Preset) {
    CourseBounds& bounds = cfg.bounds;
    in.optional(
        "skill", bounds.skill, config::between(0.0, 1.0),
        "a flat loss whose skill (1 - loss / loss of the best constant) is below this is stuck");
    in.optional("gain", bounds.gain, config::between(0.0, 1.0),
                "if that constant is unknown: least gain, as a share of the first loss");
    in.optional("back", bounds.back, config::between(0.1, 10.0),
                "share of its gain from which a loss has lost most of it");
    in.optional("jump", bounds.jump, config::between(0.01, 10.0),
                "rise of a loss that counts as a jump, as a share of its gain");
    in.optional("turn", bounds.turn, config::between(0.01, 10.0),
                "share of its gain that an evaluation must have lost");
    in.optional("alpha", bounds.alpha, config::between(1e-9, 0.1),
                "chance of a false alarm per kind and run");
    read_train_set(in, cfg.train_set);
  }

  static std::vector<Need> needs(const Config&) { return {{"losses"}}; }

  template <typename Own>
  static void adjust(const Config&, Own& program) {
    std::string error;
    program.selection.add_regex("^learning_rate$", error);
    program.selection.add_regex(std::string(CourseTask::kSelected), error);
    program.selection.add_regex(std::string(kRewardJobNames), error);
  }

  // -------------------------------------------------------------------------------- training

  static bool boosts(const ReadSeries& one, const StepPoint& point) {
    return point.mode == core::Mode::global && one.name.set != 0 &&
           one.value->text.find('-') != std::string_view::npos;
  }
  static bool trains(const ReadSeries& one, const StepPoint& point) {
    return one.trains && !one.grows && one.value->role == core::Role::loss &&
           point.mode != core::Mode::eval && !boosts(one, point);
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    std::vector<SeriesValue> rest;
    memory.shared<Shared>().hear(memory, point, rest);
    StepPoint here = point;
    here.values = rest;
    const std::vector<ReadSeries> all = read_series(here, cfg.train_set);
    if (memory.shared<Shared>().run.rewarded != 0) return;
    const ReadSeries* only = nullptr;
    std::size_t losses = 0;
    for (const ReadSeries& one : all) {
      if (!trains(one, here)) continue;
      only = &one;
      ++losses;
    }
    if (losses == 1 && std::isfinite(only->value->value)) train(cfg, memory, *only, here, report);
    compare(cfg, memory, all, here, report);
  }
  static void on_pass(const Config& cfg, SeriesMemory& memory, const StepPoint& pass,
                      SeriesReport& report) {
    on_step(cfg, memory, pass, report);
  }

  static void train(const Config& cfg, SeriesMemory& memory, const ReadSeries& one,
                    const StepPoint& point, SeriesReport& report) {
    Shared& shared = memory.shared<Shared>();
    if (shared.values > 0 && shared.name != one.value->name) ++shared.changes;
    shared.name = one.value->name;
    ++shared.values;
    const SeriesKey key{one.value->name, static_cast<std::uint8_t>(point.mode)};
    State* state = memory.of<State>(key);
    if (state == nullptr) return;
    LossLevels& levels = state->levels;
    const CourseMoment now{point.step, static_cast<double>(point.step) + 1, shared.run.end(),
                           shared.trivial()};
    const bool ends = levels.take(one.value->value);
    state->looks.take(one.value->value, now.updates, target(cfg, levels, now), shared.run.rate_at,
                      now.end, cfg.bounds);
    if (!ends) return;
    const bool other_task =
        levels.trivial_then > 0 && now.trivial > 0 &&
        std::fabs(now.trivial - levels.trivial_then) > CourseTask::kSame * levels.trivial_then;
    if (levels.restarts != shared.rises || other_task) levels.restart(shared.rises);
    const unsigned kinds = levels.judge(now, cfg.bounds);
    if (shared.changes * kTurns > shared.values) return;  // real and made samples take turns
    shared.training = {levels.first, levels.newest};
    tell(memory, *state, one, kinds, point, report);
  }

  // Below one constant answer, where that is known; else below where the loss began.
  static LossLooks::Target target(const Config& cfg, const LossLevels& levels,
                                  const CourseMoment& now) {
    const CourseBounds& bounds = cfg.bounds;
    if (now.trivial > 0)
      return {(1 - bounds.skill) * now.trivial, bounds.skill * now.trivial, true};
    if (levels.chunks == 0 || !(levels.first > 0) || levels.positive == 0) return {};
    return {(1 - bounds.gain) * levels.first, bounds.gain * levels.first, false};
  }

  // Where the constant is not one of the logged loss, the loss calls decide.
  static bool stuck(const LossLooks& looks, const CourseTask::Standing& task,
                    bool evaluation_gained) {
    if (task.knows) return false;
    if (looks.compared != 0) return looks.short_of != 0;
    if (task.compared) return task.nothing && looks.stands != 0;
    return looks.short_of != 0 && !evaluation_gained;
  }

  static void tell(SeriesMemory& memory, State& state, const ReadSeries& one, unsigned kinds,
                   const StepPoint& point, SeriesReport& report) {
    Shared& shared = memory.shared<Shared>();
    const CourseTask::Standing task = CourseTask::standing(memory);
    if (stuck(state.looks, task, shared.evaluation_gained != 0)) kinds |= 1U << kStuck;
    state.told_trivial = std::isfinite(shared.trivial()) ? shared.trivial() : 0;
    state.told_skill = task.skill;
    const bool well =
        state.levels.holds() || state.looks.falls != 0 || (task.knows && state.levels.noise > 0);
    const Verdict verdict = kinds != 0
                                ? Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)}
                            : well ? kOk
                                   : kInsufficient;
    if (state.answer.take(verdict)) ++shared.telling.changed;
    const auto why = [&](const Subject& subject, unsigned kind) {
      const CourseTold told{state.levels, state.looks, state.told_trivial, state.told_skill};
      const std::string loss(subject.name);
      switch (kind) {
        case LossLevels::kRise:
        case LossLevels::kLost:
          return tell_above(told, loss, kind == LossLevels::kLost);
        case LossLevels::kSpike:
          return tell_spike(told, loss);
        case LossLevels::kSpread:
          return tell_spread(told, loss);
        default:
          return tell_stuck(told, loss);
      }
    };
    report.evaluated({one.value->name, static_cast<std::uint8_t>(point.mode)}, one.value->text,
                     verdict, point, why);
  }

  // ------------------------------------------------------------------------------ evaluation

  static bool evaluates(const ReadSeries& one, const StepPoint& point, bool losses) {
    if (one.trains || one.name.train_word || one.name.counts_samples) return false;
    if (one.name.set == 0 && point.mode != core::Mode::eval) return false;
    if (one.value->role == core::Role::loss) return true;
    const bool alone = one.name.set != 0 && one.grows && one.name.grows &&
                       point.mode == core::Mode::train && !losses;
    return point.mode == core::Mode::global || alone;
  }
  static bool held(SeriesMemory& memory, const std::vector<ReadSeries>& all, const ReadSeries& loss,
                   const StepPoint& point) {
    for (const ReadSeries& one : all) {
      if (!is_held_metric(one, point)) continue;
      const bool same = point.mode == core::Mode::eval || one.name.set == loss.name.set;
      const auto* metric = memory.of<HeldMetric>({one.value->name, kHeld});
      if (same && metric != nullptr && metric->holds()) return true;
    }
    return false;
  }
  static bool is_held_metric(const ReadSeries& one, const StepPoint& point) {
    return one.grows && !one.trains && (point.mode == core::Mode::eval || one.name.set != 0) &&
           std::isfinite(one.value->finite);
  }

  static void compare(const Config& cfg, SeriesMemory& memory, const std::vector<ReadSeries>& all,
                      const StepPoint& point, SeriesReport& report) {
    bool losses = false;
    for (const ReadSeries& one : all) {
      losses = losses || one.value->role == core::Role::loss;
      remember(memory, one, point);
    }
    for (const ReadSeries& one : all) {
      if (evaluates(one, point, losses) && std::isfinite(one.value->finite)) {
        judge_evaluation(cfg, memory, all, one, point, report);
      }
    }
  }

  // The metrics that evaluations are compared with.
  static void remember(SeriesMemory& memory, const ReadSeries& one, const StepPoint& point) {
    if (is_held_metric(one, point)) {
      auto* metric = memory.of<HeldMetric>({one.value->name, kHeld});
      if (metric != nullptr) metric->take(one.value->finite);
    }
    if (!one.trains || one.name.set == 0 || !std::isfinite(one.value->finite)) return;
    auto* trained = memory.of<Trained>({one.name.metric, kTraining});
    if (trained == nullptr) return;
    const double value = one.grows ? -one.value->finite : one.value->finite;
    if (trained->values++ == 0) trained->level.first = value;
    trained->level.newest = value;
  }

  // What the evaluation is compared with.
  static TrainingLevel training_beside(SeriesMemory& memory, const ReadSeries& one,
                                       const StepPoint& point) {
    const auto* trained =
        one.name.set == 0 ? nullptr : memory.of<Trained>({one.name.metric, kTraining});
    if (trained != nullptr && trained->values > 0 && (boosts(one, point) || one.grows)) {
      return trained->level;
    }
    return point.mode == core::Mode::global ? TrainingLevel{} : memory.shared<Shared>().training;
  }

  static void judge_evaluation(const Config& cfg, SeriesMemory& memory,
                               const std::vector<ReadSeries>& all, const ReadSeries& one,
                               const StepPoint& point, SeriesReport& report) {
    Shared& shared = memory.shared<Shared>();
    const SeriesKey key{one.value->name, kJoined};
    Evaluated* state = memory.of<Evaluated>(key);
    if (state == nullptr) return;
    EvaluationTurn& turn = state->turn;
    turn.sign = one.grows ? -1 : 1;
    const bool turned = turn.take(point.step, turn.sign * one.value->finite,
                                  training_beside(memory, one, point), cfg.bounds.turn);
    state->held = !one.grows && held(memory, all, one, point) ? 1 : 0;
    if (turn.gained()) shared.evaluation_gained = 1;
    const bool well = turn.well() || state->held != 0;
    const Verdict verdict = turned && state->held == 0                       ? hit(kTurned)
                            : turn.passes < EvaluationTurn::kInARow || !well ? kInsufficient
                                                                             : kOk;
    if (state->answer.take(verdict)) ++shared.telling.changed;
    const auto why = [&](const Subject& subject, unsigned) {
      return tell_turned(turn, cfg.bounds.turn, std::string(subject.name));
    };
    report.evaluated(key, one.value->text, verdict, point, why);
  }

  // --------------------------------------------------------------------------- what is known

  static TellingTime& telling(SeriesMemory& memory) { return memory.shared<Shared>().telling; }

  static core::ValueMap answers(const Config&, SeriesMemory& memory,
                                SeriesProgram::NameOf name_of) {
    AnswerCard card;
    const Shared& shared = memory.shared<Shared>();
    memory.each<State>([&](const SeriesKey& key, const State& state) {
      const Verdict verdict = state.answer.verdict();
      const LossLevels& levels = state.levels;
      core::ValueMap numbers;
      if (const auto kind = kind_of(verdict, kKinds); !kind.empty())
        numbers.emplace_back("kind", std::string(kind));
      const double values = levels.chunks * LossLevels::kChunk;
      if (answer_of(verdict) == "undecided") {
        numbers.emplace_back("values", values);
        numbers.emplace_back("needs_values", state.looks.values.missing());
      }
      numbers.emplace_back("first", levels.first);
      numbers.emplace_back("now", levels.newest);
      numbers.emplace_back("now_low", levels.newest - 1.96 * levels.noise);
      numbers.emplace_back("now_high", levels.newest + 1.96 * levels.noise);
      numbers.emplace_back("best", levels.best);
      if (state.told_trivial > 0) numbers.emplace_back("trivial", state.told_trivial);
      if (answer_of(verdict) == "undecided")
        tell_starving(numbers, shared.run.updates, shared.run.planned);
      const auto mode = core::to_string(static_cast<core::Mode>(key.mode));
      card.add(answer_of(verdict), name_of(key.name) + ' ' + std::string(mode), std::move(numbers));
    });
    memory.each<Evaluated>([&](const SeriesKey& key, const Evaluated& state) {
      const Verdict verdict = state.answer.verdict();
      const EvaluationTurn& turn = state.turn;
      core::ValueMap numbers;
      if (const auto kind = kind_of(verdict, kKinds); !kind.empty())
        numbers.emplace_back("kind", std::string(kind));
      numbers.emplace_back("now", turn.sign * turn.curve.value);
      numbers.emplace_back("best", turn.sign * turn.curve.best);
      numbers.emplace_back("passes", turn.passes);
      card.add(answer_of(verdict), name_of(key.name) + " evaluation", std::move(numbers));
    });
    return card.take();
  }
};

}  // namespace

RuleDescriptor course() {
  return {.name = "course",
          .original_name = "Course",
          .title = "A loss is stuck, rises, jumps or scatters beyond its own noise.",
          .unit = "series",
          .needs = "collection losses",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "1",
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_series_rule<NormalCourse>};
}

}  // namespace tocsin::rules
