// Fires when the reward does not answer: returns that do not rise, and signals of the loop that do not do what they
// are for.
//
// Reads   scalars ledger/reward/… and ledger/target/… (docs/ledger.md); logged scalars by their names
//         (rules/builtin/shared/reward_names.h); ledger/plan/updates.
// Window  returns: the newer half, looked at when 64, 128, 256 … entries have come, beside the first
//         episodes: 20 of them, or a twentieth of all.
// Fires   no_better  H₀ "mean return − mean of the first episodes >= `margin` (0.5) of their deviation" is rejected at
//                    `alpha`, exploration has come to its floor, a straight line does not get there by the end of the plan
//                    (without a plan: by twice the updates), no series of returns was ever shown to be better, and the
//                    first episodes knew nothing: returns fell by the margin, actions were random, or entropy is as it was
//         value      explained variance is below 0 for a whole window, and does not get there
//         flat       what should vary has been the same `transitions` (1000) times. Of what may come late (reward, return,
//                    advantage, entropy): and half of the plan is over (without one: `patience` times), or the run
//         lag        a target network never changes (by half of the plan, or in 20000 updates), stops to (10 of its
//                    intervals), or is the trained one at all of 64 looks
//         fresh      of what is drawn from a memory a tenth of what is expected, or less, is new
//         length     answers have more than three times the length of the first ones, while the reward grew (info)
// Quiet   for constant rewards of episodes whose returns differ; for a memory that nobody fills; without returns.
// Source  our own; docs/rules/reward.md.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rules/builtin/losses/reward_state.h"
#include "rules/builtin/losses/reward_telling.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kRewardKinds[] = {"no_better", "value", "flat",
                                             "lag",       "fresh", "length"};

struct Reward {
  static constexpr std::span<const std::string_view> kKinds = kRewardKinds;
  static constexpr bool kPerWorker = false;
  static constexpr bool kJoinsModes = true;
  static constexpr TensorUse kTensorUse = TensorUse::none;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kNoBetter, kValue, kFlat, kLag, kFresh, kLength };
  static constexpr double kFirstTold = 64;  // updates; from then on whenever they have doubled
  static constexpr std::string_view kRoom = "ledger/reward/";
  static constexpr std::string_view kTargets = "ledger/target/";

  struct Config {
    RewardBounds bounds;
  };
  using State = RewardState;
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;
  using Fields = std::map<std::string_view, double>;

  static Defaults defaults(Preset) {
    return {.modes = static_cast<std::uint8_t>(kTrainModes | mode_bit(core::Mode::eval))};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    RewardBounds& bounds = cfg.bounds;
    in.optional("margin", bounds.margin, config::between(0.01, 10.0),
                "least rise of returns, in deviations of the first returns");
    in.optional("transitions", bounds.transitions, config::at_least(1.0),
                "how often in a row a signal that should vary may be the same");
    in.optional("updates", bounds.updates, config::at_least(1.0),
                "updates before returns are judged, if no plan is known");
    in.optional("patience", bounds.patience, config::at_least(1.0),
                "updates before rewards, advantages and entropies are judged, if no plan is known");
    in.optional("alpha", bounds.alpha, config::between(1e-9, 0.1),
                "chance of a false alarm per series of returns or explained variances");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    program.selection.add_regex("^ledger/(reward|target)/|^ledger/plan/updates$", error);
    program.selection.add_regex(std::string(kRewardNames), error);
  }
  // Some agents act while their model is in its eval state: then the hook counts there. What is logged of an
  // evaluation is another thing.
  static bool takes(const Config&, const WorkerRows& rows, const Scope& scope) {
    if (rows.scalar == nullptr) return false;
    if (rows.mode != core::Mode::eval) return true;
    const Name* name = scope.find(rows.scalar->name);
    return name != nullptr && name->text.starts_with(kRoom);
  }

  template <typename Course>
  static Course* course_of(std::map<std::string, Course>& courses, std::string_view name) {
    const auto [at, fresh] = courses.try_emplace(std::string(name));
    if (!fresh || courses.size() <= State::kMost) return &at->second;
    courses.erase(at);
    return nullptr;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    state.bounds = cfg.bounds;
    state.mode = static_cast<std::uint64_t>(set.mode);
    state.step = set.step;
    state.time = set.time;
    const bool acting = set.mode == core::Mode::eval;
    const std::int64_t trained = acting ? std::max<std::int64_t>(set.after_train, -1) : set.step;
    state.run.updates = static_cast<double>(trained) + 1;
    Fields told;
    std::map<std::string_view, Fields> targets;
    std::map<std::string_view, bool> touched;  // logged series
    for (const StepRow& row : set.rows) {
      if (!row.scalar || !std::isfinite(row.row.sum)) continue;
      const Name* name = report.scope().find(row.name());
      if (name == nullptr) continue;
      const std::string_view text = name->text;
      if (text == "ledger/plan/updates") {
        state.run.planned = row.row.sum;
      } else if (text.starts_with(kRoom)) {
        told[text.substr(kRoom.size())] += row.row.sum;
      } else if (text.starts_with(kTargets)) {
        const std::string_view rest = text.substr(kTargets.size());
        const std::size_t at = rest.rfind('/');
        if (at != std::string_view::npos)
          targets[rest.substr(0, at)][rest.substr(at + 1)] += row.row.sum;
      } else if (log(state, text, row.row.sum)) {
        touched[text] = true;
      }
    }
    take(state, told);
    for (const auto& [name, fields] : targets) take_target(state, name, fields);
    report_all(state, report, false, [&](std::string_view name) {
      return touched.contains(name) || !told.empty() || targets.contains(name);
    });
    if (!state.empty() && state.run.updates >= std::max(kFirstTold, 2 * state.told)) {
      state.told = state.run.updates;
      report.scope().so_far(set.time, card(state));
    }
  }
  static StepSet newest(const State& state) {
    StepSet out;
    out.mode = static_cast<core::Mode>(state.mode);
    out.step = state.step;
    out.time = state.time;
    return out;
  }
  /// The run is over: what may come late will not come.
  static void at_end(const Config& cfg, State& state, SetReport& report) {
    for (auto& [name, course] : state.returns) course.look_at_end(state.run, cfg.bounds);
    report_all(state, report, true, [](std::string_view) { return true; });
  }

  // A logged scalar. False: it says nothing of rewards.
  static bool log(State& state, std::string_view name, double value) {
    switch (reward_signal(name)) {
      case RewardSignal::none:
        return false;
      case RewardSignal::exploration:
        if (state.run.explores_at == 0) state.run.explored = value;
        if (state.run.explores_at == 0 || value < state.run.explores) {
          state.run.explores = value;
          state.run.explores_at = state.run.updates;
        }
        return false;
      case RewardSignal::returns:
        if (ReturnCourse* course = course_of(state.returns, name)) {
          course->add(1, value, value * value, false, state.run, state.bounds);
        }
        return true;
      case RewardSignal::explained:
        if (ExplainedCourse* course = course_of(state.explained, name)) {
          course->add(value, state.run, state.bounds);
        }
        return true;
      case RewardSignal::length:
        if (LengthCourse* course = course_of(state.lengths, name)) {
          course->add(value, state.run, state.bounds);
        }
        return true;
      case RewardSignal::reward:
        if (ReturnCourse* course = course_of(state.rewards, name)) {
          course->add(1, value, value * value, false, state.run, state.bounds);
        }
        [[fallthrough]];
      default:
        if (SignalCourse* course = course_of(state.signals, name)) course->log(value);
        return true;
    }
  }

  static double field(const Fields& fields, std::string_view name) {
    const auto found = fields.find(name);
    return found == fields.end() ? 0 : found->second;
  }
  // What the hook has counted since it last said so.
  static void take(State& state, const Fields& told) {
    state.run.transitions += field(told, "transitions");
    state.ends += field(told, "ends");
    if (told.contains("planned")) state.run.planned_transitions = field(told, "planned");
    if (told.contains("environments")) state.run.environments = field(told, "environments");
    if (const double episodes = field(told, "episodes"); episodes > 0) {
      if (ReturnCourse* course = course_of(state.returns, kEpisodeReturns)) {
        course->add(episodes, field(told, "returns"), field(told, "squares"), true, state.run,
                    state.bounds);
      }
    }
    constexpr std::string_view kSeen = "seen/";
    for (const auto& [name, value] : told) {
      if (!name.starts_with(kSeen)) continue;
      const std::string signal(name.substr(kSeen.size()));
      SignalCourse* course = course_of(state.signals, std::string(kTransition) + signal);
      if (course == nullptr) continue;
      course->seen += value;
      course->changes += field(told, "changes/" + signal);
      course->ones += field(told, "ones/" + signal);
    }
    if (told.contains("drawn")) {
      state.memory.add(field(told, "made"), field(told, "drawn"), field(told, "fresh"));
    } else if (told.contains("made")) {
      state.memory.add(field(told, "made"), 0, 0);
    }
  }
  static void take_target(State& state, std::string_view name, const Fields& fields) {
    if (TargetCourse* course = course_of(state.targets, name)) {
      course->add(field(fields, "updates"), field(fields, "looks"), field(fields, "moves"),
                  field(fields, "changes"), field(fields, "equal"));
    }
  }

  // ------------------------------------------------------------------------- what it comes to

  template <typename Wanted>
  static void report_all(State& state, SetReport& report, bool over, Wanted wanted) {
    for (const auto& [name, course] : state.returns) {
      if (!wanted(name)) continue;
      unsigned kinds = 0;
      if (state.no_better(course, over)) kinds |= 1U << kNoBetter;
      if (state.flat(course, over)) kinds |= 1U << kFlat;
      say(report, name, kinds, course.better != 0,
          [&, &name = name, &course = course](unsigned kind) {
            return kind == kFlat ? flat_finding(name, course)
                                 : no_better_finding(name, course, state);
          });
    }
    report_values_and_lengths(state, report, wanted);
    for (const auto& [name, course] : state.signals) {
      if (!wanted(name)) continue;
      say(report, name, state.flat(name, course, over) ? 1U << kFlat : 0, varies(name, course),
          [&, &name = name, &course = course](unsigned) {
            return flat_finding(name, course, state);
          });
    }
    for (const auto& [name, course] : state.targets) {
      if (!wanted(name)) continue;
      const TargetCourse::Standing standing = course.standing(state.run, over);
      say(report, name, standing != TargetCourse::kOpen ? 1U << kLag : 0, lags(course),
          [&, &name = name, &course = course](unsigned) {
            return lag_finding(name, course, standing);
          });
    }
    if (state.memory.judged != 0 && wanted("memory")) {
      say(report, "memory", state.memory.stale() ? 1U << kFresh : 0, state.memory.knows(),
          [&](unsigned) { return fresh_finding(state.memory); });
    }
  }
  template <typename Wanted>
  static void report_values_and_lengths(const State& state, SetReport& report, Wanted wanted) {
    for (const auto& [name, course] : state.explained) {
      if (!wanted(name)) continue;
      say(report, name, course.told != 0 ? 1U << kValue : 0, course.fine != 0,
          [&, &name = name, &course = course](unsigned) { return value_finding(name, course); });
    }
    for (const auto& [name, course] : state.lengths) {
      if (!wanted(name)) continue;
      say(report, name, state.too_long(course) ? 1U << kLength : 0, has_length(course),
          [&, &name = name, &course = course](unsigned) { return length_finding(name, course); });
    }
  }
  static bool varies(const std::string& name, const SignalCourse& course) {
    return name == kDone ? course.ones > 0 && course.ones < course.seen : course.changes > 0;
  }
  static bool has_length(const LengthCourse& course) {
    return course.known != 0 && course.grown == 0;
  }
  static bool is_ill(const State& state, const ReturnCourse& course) {
    return state.no_better(course, false) || state.flat(course, false);
  }
  static bool lags(const TargetCourse& course) {
    return course.changes > 0 && course.equal < course.looks;
  }
  template <typename Explained>
  static void say(SetReport& report, const std::string& name, unsigned kinds, bool fine,
                  Explained explained) {
    const Verdict verdict = kinds != 0
                                ? Verdict{EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)}
                                : (fine ? kOk : kInsufficient);
    report.evaluated({{"metric", name}}, name, verdict,
                     [&](const Subject&, unsigned kind) { return explained(kind); });
  }

  // ------------------------------------------------------------------------- the card

  static core::ValueMap card(const State& state) {
    std::map<std::string, core::ValueMap> answers;
    const auto put = [&](const std::string& name, unsigned hits, bool fine,
                         core::ValueMap numbers) {
      answers[hits != 0 ? "hit" : fine ? "ok" : "undecided"].emplace_back(name, std::move(numbers));
    };
    for (const auto& [name, course] : state.returns) {
      const bool ill = is_ill(state, course);
      put(name, ill ? 1U : 0U, course.better != 0,
          numbers_of(course, state.run, ill || course.better != 0));
    }
    for (const auto& [name, course] : state.explained) {
      put(name, course.told != 0 ? 1U : 0U, course.fine != 0, numbers_of(course));
    }
    for (const auto& [name, course] : state.lengths) {
      put(name, state.too_long(course) ? 1U : 0U, has_length(course),
          numbers_of(course.course, state.run, course.known != 0));
    }
    // Rewards alone do not say whether episodes are worth more: these may have become longer.
    if (state.returns.empty() && !state.rewards.empty()) {
      put("returns", 0, false, {{"needs_episodes", ReturnCourse::kFirst}});
    }
    for (const auto& [name, course] : state.signals) {
      put(name, state.flat(name, course, false) ? 1U : 0U, varies(name, course),
          numbers_of(course, state.bounds));
    }
    for (const auto& [name, course] : state.targets) {
      put(name, course.standing(state.run, false) != TargetCourse::kOpen ? 1U : 0U, lags(course),
          numbers_of(course));
    }
    if (state.memory.draws > 0) {
      put("memory", state.memory.stale() ? 1U : 0U, state.memory.knows(), numbers_of(state.memory));
    }
    core::ValueMap out;
    for (auto& [answer, subjects] : answers) out.emplace_back(answer, std::move(subjects));
    return out;
  }
  static core::ValueMap summary(const States& states, const Scope&) {
    return states.empty() || states.begin()->second.empty() ? core::ValueMap{}
                                                            : card(states.begin()->second);
  }
};

/// Beside steps it judges the end of the run, where the newest step stands.
class RewardEvaluator final : public StepSetEvaluator<Reward> {
 public:
  RewardEvaluator(const Reward::Config& config, const Common& common)
      : StepSetEvaluator<Reward>(config, common), own_config_(config) {}

  void on_end(Scope& scope) override {
    StepSetEvaluator<Reward>::on_end(scope);
    for (auto& [who, one] : state.states) {
      StepSet set = Reward::newest(one);
      set.worker = who.first;
      const Place place = at_step(set.mode, set.step, set.step, set.time);
      SetReport report(scope, place, set);
      Reward::at_end(own_config_, one, report);
    }
  }

 private:
  const Reward::Config& own_config_;
};

class RewardProgram final : public StepSetProgramOf<Reward> {
 public:
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<RewardEvaluator>(config, common);
  }
};

std::shared_ptr<const Program> read_reward(config::Reader& in, Preset preset) {
  return read_rule<Reward, RewardProgram>(in, preset);
}

}  // namespace

RuleDescriptor reward() {
  return {.name = "reward",
          .original_name = "Reward",
          .title = "The reward does not rise, or a signal of reinforcement learning is wrong.",
          .unit = "metric",
          .needs = "returns or rewards, logged or from tocsin.gymnasium",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_reward};
}

}  // namespace tocsin::rules
