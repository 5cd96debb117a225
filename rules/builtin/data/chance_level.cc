// Fires when outputs do not know their targets, and the training cannot get there any more.
//
// Reads   the ledger of each loss call (docs/ledger.md), added up over workers; learning_rate.
// Window  training: the newest 32 blocks of steps behind the largest rate, looked at when 64, 128, 256 …
//         steps of the call have come, when the updates have doubled, and at the end; evaluation: one pass.
// Fires   nothing     fewer than `share` (0.55; in evaluation 0.6) of pairs of samples fit their own targets
//                     better than each other's, and skill, 1 − loss / trivial loss, is below `skill` (0.02),
//                     both at `alpha`: skill is what is measured, or at most what pairs save with their own
//                     targets; a straight line through the window does not reach it by the end of the plan
//                     (without a plan: by twice the updates; of a run that has ended: now)
//         forgot      the same of a call that had known its targets, at any step
//         worse       skill is below −`worse` (0.1) for a whole window, and does not get there
//         memorised   skill in training is 0.5 at least, and in evaluation fewer than 0.6 of pairs fit
//         of a metric of a booster, which has no pairs, skill alone decides: it is not told while another
//         metric of the same data is better than a constant by `worse`; memorised: skill below `skill`
//         at `alpha`, and the same metric of other data has 0.5
//         no_targets  no target counts in 3 steps in a row, or in a fifth of 20 steps or more
// Quiet   while the rate was larger than ever within the window; of a call beside one that knows its
//         targets; of steps in which a call has one target for all beside other calls (adversarial
//         pairs); without two different targets in a batch; of jobs that learn by reward, as their logs
//         say: their targets move with what they do (`reward` judges them).
// Source  our own; docs/rules/chance_level.md.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rules/builtin/data/pairing_telling.h"
#include "rules/builtin/shared/booster_rounds.h"
#include "rules/builtin/shared/pairing_course.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kPairingKinds[] = {"nothing", "forgot", "worse", "memorised",
                                              "no_targets"};

struct ChanceLevel {
  static constexpr std::span<const std::string_view> kKinds = kPairingKinds;
  static constexpr bool kPerWorker = false;
  static constexpr bool kJoinsModes = true;
  static constexpr std::span<const Sent> kSent{};
  static constexpr std::size_t kMostCalls = 64;  // of a run and mode
  static constexpr double kFirstTold = 64;       // updates; from then on whenever they have doubled

  struct Config {
    PairingBounds bounds;
  };
  using Courses = std::map<std::string, PairingCourse>;
  struct State {
    PairingBounds bounds;  // for what is told at the end
    PairingRun run;
    Courses train;
    Courses eval;
    double told = 0;                           // updates when the newest sum was told
    std::array<std::int64_t, 2> step{-1, -1};  // the newest of training and of evaluation
    std::array<std::int64_t, 2> time{};        // when it was
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.bounds, s.run, s.train, s.eval, s.told, s.step, s.time);
    }
  };
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;

  static Defaults defaults(Preset) {
    return {.modes = static_cast<std::uint8_t>(mode_bit(core::Mode::train) |
                                               mode_bit(core::Mode::eval))};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    PairingBounds& bounds = cfg.bounds;
    in.optional("skill", bounds.skill, config::between(0.0, 1.0),
                "least skill of a model (1 - loss / loss of the best constant)");
    in.optional("share", bounds.share, config::between(0.51, 0.9),
                "least share of pairs whose outputs fit their own targets better than each other's "
                "(chance: 0.5)");
    in.optional("worse", bounds.worse, config::at_least(0.0),
                "a skill below minus this is worse than one constant answer");
    in.optional("alpha", bounds.alpha, config::between(1e-9, 0.1),
                "chance of a false alarm per kind and run");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    program.selection.add_role(core::Role::ledger);
    program.selection.add_regex("^learning_rate$", error);
    program.selection.add_regex(std::string(kRewardJobNames), error);
  }

  static PairingCourse* course_of(Courses& courses, std::string_view name) {
    const auto [at, fresh] = courses.try_emplace(std::string(name));
    if (!fresh || courses.size() <= kMostCalls) return &at->second;
    courses.erase(at);
    return nullptr;
  }

  static void note_run(const Config& cfg, State& state, const StepSet& set,
                       const LedgerStep& step) {
    const bool train = set.mode == core::Mode::train;
    state.bounds = cfg.bounds;
    if (train) state.run.updates = static_cast<double>(set.step) + 1;
    state.step[train ? 0 : 1] = set.step;
    state.time[train ? 0 : 1] = set.time;
    if (step.rewarded) state.run.rewarded = 1;
    if (step.planned_updates) state.run.planned = *step.planned_updates;
    if (train && step.rate && *step.rate > state.run.rate) {
      state.run.rate = *step.rate;
      state.run.rate_at = state.run.updates;
    }
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const LedgerStep step(set, report.scope());
    const bool train = set.mode == core::Mode::train;
    note_run(cfg, state, set, step);
    PairingRun run = state.run;
    if (!train) run.updates = static_cast<double>(std::max<std::int64_t>(set.after_train, -1) + 1);
    Courses& courses = train ? state.train : state.eval;
    for (const LedgerCall& call : step.calls) {
      PairingCourse* course = course_of(courses, call.name);
      if (course == nullptr) continue;
      course->count(call);
      if (is_adversarial(call)) continue;
      if (train) {
        course->train(call, run, cfg.bounds);
      } else {
        const auto other = state.train.find(std::string(call.name));
        course->evaluate(call, run, other == state.train.end() ? nullptr : &other->second,
                         cfg.bounds);
      }
    }
    for (const LedgerCall& call : step.calls) {
      const auto course = courses.find(std::string(call.name));
      if (course == courses.end()) continue;
      if (train && BoosterRound::is(call)) {
        course->second.settle(beside(call.name, courses, cfg.bounds), run);
      }
      const Verdict verdict = verdict_of(step, call, course->second, courses, run.rewarded != 0);
      report.evaluated({{"metric", course->first}}, course->first, verdict,
                       [&](const Subject& subject, unsigned kind) {
                         return pairing_finding(kPairingKinds[kind], subject, call, course->second,
                                                run, cfg.bounds);
                       });
    }
    if (train) tell_so_far(state, set, report.scope());
  }

  /// The run has ended: nothing arrives any more. `eval`: of its evaluations.
  static void at_end(const Config& cfg, State& state, bool eval, SetReport& report) {
    if (state.run.rewarded != 0) return;
    PairingRun run = state.run;
    run.over = 1;
    Courses& courses = eval ? state.eval : state.train;
    // Where one call of training knows its targets, another may be of no kind that has to.
    const auto knows = [](const auto& one) { return one.second.knows != 0; };
    if (!eval && std::any_of(courses.begin(), courses.end(), knows)) return;
    for (auto& [key, known] : courses) {
      const std::string& name = key;
      PairingCourse& course = known;
      if (!course.end(run, cfg.bounds)) continue;
      LedgerCall call;
      call.name = name;
      if (course.classes != 0) call.add(LedgerCall::labels, 0);
      report.evaluated({{"metric", name}}, name, hit(static_cast<unsigned>(course.standing) - 1),
                       [&](const Subject& subject, unsigned kind) {
                         return pairing_finding(kPairingKinds[kind], subject, call, course, run,
                                                cfg.bounds);
                       });
    }
  }

  /// Of a step with a call all of whose targets are alike beside other calls: real and made samples.
  static bool is_adversarial(const LedgerCall& call) {
    return call[LedgerCall::one_target] > 0 && call[LedgerCall::calls] > 1;
  }

  static Verdict verdict_of(const LedgerStep& step, const LedgerCall& call,
                            const PairingCourse& course, const Courses& courses, bool rewarded) {
    bool others_know = false;
    bool others_have_targets = false;
    for (const LedgerCall& other : step.calls) {
      if (other.name == call.name) continue;
      others_have_targets = others_have_targets || other[LedgerCall::samples] > 0;
      const auto at = courses.find(std::string(other.name));
      others_know = others_know ||
                    (at != courses.end() && at->second.knows != 0 && other[LedgerCall::pairs] > 0);
    }
    if (course.bare_now() && !others_have_targets) return hit(kNoTargets);
    if (rewarded || is_adversarial(call)) return kNotApplicable;
    if (course.standing != PairingCourse::kOpen && !others_know) {
      return hit(static_cast<unsigned>(course.standing) - 1);
    }
    return course.knows != 0 ? kOk : kInsufficient;
  }
  static constexpr unsigned kNoTargets = 4;
  static_assert(PairingCourse::kNothing == 1 && PairingCourse::kForgot == 2 &&
                PairingCourse::kWorse == 3 && PairingCourse::kMemorised == 4);

  // ------------------------------------------------------------------------- what is known

  static core::ValueMap told(const State& state) {
    core::ValueMap out;
    if (state.run.rewarded != 0) return out;
    for (const std::string_view answer : {"ok", "hit", "undecided"}) {
      core::ValueMap calls;
      for (const auto& [mode, courses] :
           {std::pair{"train", &state.train}, std::pair{"eval", &state.eval}}) {
        for (const auto& [name, course] : *courses) {
          if (pairing_answer(course) != answer) continue;
          calls.emplace_back(name + " " + mode, pairing_numbers(course, state.run, state.bounds));
        }
      }
      if (!calls.empty()) out.emplace_back(answer, std::move(calls));
    }
    return out;
  }

  // So far: what has been decided, and what is missing. Early, so that nobody waits for the end to hear that a question starves.
  static void tell_so_far(State& state, const StepSet& set, Scope& scope) {
    if (state.train.empty() || state.run.updates < std::max(kFirstTold, 2 * state.told)) return;
    state.told = state.run.updates;
    scope.so_far(set.time, told(state));
  }

  static core::ValueMap summary(const States& states, const Scope&) {
    return states.empty() ? core::ValueMap{} : told(states.begin()->second);
  }
};

/// Beside steps it judges the end of the run, where the newest step stands.
class ChanceLevelEvaluator final : public StepSetEvaluator<ChanceLevel> {
 public:
  ChanceLevelEvaluator(const ChanceLevel::Config& config, const Common& common)
      : StepSetEvaluator<ChanceLevel>(config, common), own_config_(config) {}

  void on_end(Scope& scope) override {
    judge_rest(scope);
    for (auto& [who, one] : state.states) {
      for (const bool eval : {false, true}) {
        const std::size_t at = eval ? 1 : 0;
        if (one.step[at] < 0) continue;
        StepSet set;
        set.mode = eval ? core::Mode::eval : core::Mode::train;
        set.step = one.step[at];
        set.time = one.time[at];
        set.worker = who.first;
        const Place place = at_step(set.mode, set.step, set.step, set.time);
        SetReport report(scope, place, set);
        ChanceLevel::at_end(own_config_, one, eval, report);
      }
    }
    StepSetEvaluator<ChanceLevel>::on_end(scope);
  }

 private:
  const ChanceLevel::Config& own_config_;
};

class ChanceLevelProgram final : public StepSetProgramOf<ChanceLevel> {
 public:
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<ChanceLevelEvaluator>(config, common);
  }
};

}  // namespace

RuleDescriptor chance_level() {
  return {.name = "chance_level",
          .original_name = "ChanceLevel",
          .title = "The model predicts no better than chance or than one constant answer.",
          .unit = "metric",
          .needs = "the ledger",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "7",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_rule<ChanceLevel, ChanceLevelProgram>};
}

}  // namespace tocsin::rules
