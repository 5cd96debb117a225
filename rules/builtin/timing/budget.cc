// Fires when the learning rate's schedule and the length of the training do not fit, or when boosting cannot get far.
//
// Reads   scalars named learning_rate (the hook sends them when they change, and while they are low) and ledger/plan/<field>
//         (docs/ledger.md), in train and global.
// Window  since the start of the attempt, O(1) state per series.
// Fires   ends_early   the rate is below `share` of its largest, and has been for as many updates as it was above. Or at
//                      once: the schedule ends so low before `early` of the planned updates. Or the rate decays so
//                      fast that all updates, those to come among them, are worth fewer than `worth` at the largest
//                      rate (as learning_rate_decay)
//         unfinished   the schedule is longer than `late` times the planned updates
//         per_epoch    one of these, because the schedule steps once per epoch and its length is in updates, or the reverse
//         per_batch    one of these, by the factor of the accumulation
//         warmup_only  the rate is at its largest in the last planned updates, and has risen until there
//         too_small    boosting: 1 − (1 − shrinkage)^rounds is below `reach`
// Quiet   when the rate rises again, when it falls below `share` in one update (another stage, not the end of a schedule; a
//         rate of 0 counts), for schedules that follow a metric; boosting with early stopping or more than 10^4 rounds.
// Source  arithmetic; docs/rules/budget.md.

#include <algorithm>
#include <cmath>

#include "rules/builtin/shared/rate_decay.h"
#include "rules/builtin/timing/training_plan.h"
#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/answers_so_far.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kBudgetKinds[] = {"ends_early", "unfinished",  "per_epoch",
                                             "per_batch",  "warmup_only", "too_small"};
struct Budget {
  struct Plan : TrainingPlan {
    TellingTime telling;
    LastAnswer boosting;
  };
  using enum TrainingPlan::Field;
  using enum TrainingPlan::Misfit;

  static constexpr std::span<const std::string_view> kKinds = kBudgetKinds;
  static constexpr double kRounding = 1e-9;  // of a product of factors: 0.1 · 0.1 is not below 0.01
  static constexpr double kDecayed = 0.0625;  // of the largest rate, where a decay is judged
  static constexpr double kMostRounds = 1e4;  // more are "as many as it takes"
  enum Kind : unsigned { kWarmupOnly = TrainingPlan::kMisfits, kTooSmall };
  struct Config : TrainingPlan::Limits {
    double reach = 0.5;
    double worth = 50;
  };
  /// One optimizer's rate.
  struct State {
    double largest = 0;
    double current = 0;
    double lowest_start = 0;  // the first rate of this stage
    double worth = 0;         // updates until now, in those at the largest rate
    double worth_before = 0;  // the same until it was low
    std::int64_t step = 0;    // of the current value
    std::int64_t start = 0;   // since when the rate is at its largest
    std::int64_t low = 0;     // since when it is below the share, while it is
    std::int64_t above = 0;   // updates
    std::int64_t below = 0;   // updates
    std::uint64_t values = 0;
    RateDecay decay;
    LastAnswer answer;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }

  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("share", cfg.share, config::between(1e-6, 0.5),
                "share of the largest rate below which a schedule counts as ended");
    in.optional("early", cfg.early, config::between(0.01, 1.0),
                "a schedule shorter than this share of the planned updates ends early");
    in.optional("late", cfg.late, config::at_least(1.0),
                "a schedule longer than this multiple of the planned updates stays unfinished");
    in.optional("per_epoch", cfg.per_epoch, config::greater_than(1.0),
                "a schedule that steps once per epoch and is longer than this multiple of the "
                "planned epochs counts updates");
    in.optional("reach", cfg.reach, config::between(0.0, 1.0),
                "least share of the way from a constant to the best fit that the planned boosting "
                "rounds can cover");
    in.optional("worth", cfg.worth, config::greater_than(0.0),
                "least worth of a training with geometric decay, in updates at the largest rate");
  }

  template <typename Own>
  static void adjust(const Config&, Own& program) {
    std::string error;
    if (program.selection.empty()) {
      program.selection.add_regex("(^|\\.)learning_rate$", error);
    }
    program.selection.add_regex("^ledger/plan/", error);
  }

  static void on_step(const Config& cfg, SeriesMemory& memory, const StepPoint& point,
                      SeriesReport& report) {
    Plan& plan = memory.shared<Plan>();
    std::string_view first;
    for (const SeriesValue& one : point.values) {
      if (TrainingPlan::has(one.text)) {
        plan.note(one.text, one.value);
      } else if (plan.first == 0 && is_rate(one.value) && (first.empty() || one.text < first)) {
        first = one.text;
      }
    }
    for (const SeriesValue& one : point.values) {
      if (one.text == first) plan.first = one.name;
    }
    for (const SeriesValue& one : point.values) {
      const SeriesKey key{one.name, static_cast<std::uint8_t>(point.mode)};
      if (TrainingPlan::has(one.text)) {
        if (one.text != TrainingPlan::kRoundsName) continue;
        const auto why = [&](const Subject&, unsigned) { return explain_rounds(cfg, plan); };
        const Verdict verdict = judge_rounds(cfg, plan);
        if (plan.boosting.take(verdict)) ++plan.telling.changed;
        report.evaluated(key, one.text, verdict, point, why);
        continue;
      }
      State* state = memory.of<State>(key);
      if (state == nullptr) continue;
      const auto why = [&](const Subject& subject, unsigned kind) {
        return explain(cfg, plan, *state, subject, kind);
      };
      const Verdict verdict = judge(cfg, plan, *state, point.step, one);
      if (state->answer.take(verdict)) ++plan.telling.changed;
      report.evaluated(key, one.text, verdict, point, why);
    }
  }

  // -------------------------------------------------------------------------- what is known

  static TellingTime& telling(SeriesMemory& memory) { return memory.shared<Plan>().telling; }

  /// A rate fits a plan: without one, only what it has done so far is known.
  static core::ValueMap answers(const Config&, SeriesMemory& memory,
                                SeriesProgram::NameOf name_of) {
    const Plan& plan = memory.shared<Plan>();
    AnswerCard card;
    if (const std::string_view answer = answer_of(plan.boosting.verdict()); !answer.empty()) {
      card.add(
          answer, "boosting",
          {{"covers", reached(plan)}, {"rounds", plan[kRounds]}, {"shrinkage", plan[kShrinkage]}});
    }
    memory.each<State>([&](const SeriesKey& key, const State& state) {
      const Verdict verdict = state.answer.verdict();
      std::string_view answer = answer_of(verdict);
      if (answer.empty()) return;
      core::ValueMap numbers;
      if (answer == "hit") numbers.emplace_back("kind", std::string(kind_of(verdict, kKinds)));
      const bool planned = plan[kUpdates] > 0 || plan[kFollowsMetric] > 0;
      if (answer == "ok" && !planned) {
        answer = "undecided";
        numbers.emplace_back("needs", "the planned updates (hook.plan)");
      }
      if (plan[kUpdates] > 0) numbers.emplace_back("planned_updates", plan[kUpdates]);
      if (plan[kSchedule] > 0) numbers.emplace_back("schedule", plan[kSchedule]);
      numbers.emplace_back("updates", static_cast<double>(state.step) + 1);
      numbers.emplace_back("worth", state.worth);
      card.add(answer, name_of(key.name), std::move(numbers));
    });
    return card.take();
  }

  static void on_pass(const Config&, SeriesMemory&, const StepPoint&, SeriesReport&) {}

  static bool is_rate(double value) { return value >= 0 && std::isfinite(value); }

  // ------------------------------------------------------------------------------ boosting

  static double reached(const Plan& plan) {
    return 1 - std::pow(1 - plan[kShrinkage], plan[kRounds]);
  }
  static Verdict judge_rounds(const Config& cfg, const Plan& plan) {
    if (!(plan[kRounds] >= 1 && plan[kShrinkage] > 0 && plan[kShrinkage] <= 1)) {
      return kInsufficient;
    }
    if (plan[kEarlyStopping] > 0 || plan[kRounds] > kMostRounds) return kOk;
    return reached(plan) < cfg.reach ? hit(kTooSmall) : kOk;
  }

  // --------------------------------------------------------------------------------- rates

  static bool is_low(const Config& cfg, double rate, double largest) {
    return rate < cfg.share * (1 - kRounding) * largest;
  }

  static Verdict judge(const Config& cfg, const Plan& plan, State& state, std::int64_t step,
                       const SeriesValue& rate) {
    if (!is_rate(rate.value)) return kInsufficient;
    go_on(cfg, state, step);
    take(cfg, state, rate.value);
    if (rate.name == plan.first) {
      if (const auto kind = plan.misfit(cfg)) return hit(*kind);
      if (only_warms_up(plan, state)) return hit(kWarmupOnly);
    }
    return has_ended(cfg, plan, state) || state.decay.too_soon(cfg.worth) ? hit(kEndsEarly) : kOk;
  }

  /// The updates since the value before, at its rate.
  static void go_on(const Config& cfg, State& state, std::int64_t step) {
    if (state.values == 0) state.step = step;
    const std::int64_t since = std::max<std::int64_t>(0, distance(step, state.step));
    if (state.largest > 0)
      state.worth += static_cast<double>(since) * state.current / state.largest;
    (is_low(cfg, state.current, state.largest) ? state.below : state.above) += since;
    state.step += since;
  }

  static void take(const Config& cfg, State& state, double rate) {
    if (rate > state.current) state.below = 0;
    if (rate > 0 && is_low(cfg, rate, state.current)) {  // in one update: another stage
      const std::int64_t step = state.step;
      state = State{};
      state.step = step;
    }
    if (state.values == 0) state.lowest_start = rate;
    const bool was_low = is_low(cfg, state.current, state.largest);
    if (rate > state.largest) {
      if (state.largest > 0) state.worth *= state.largest / rate;
      state.largest = rate;
      state.start = state.step;
    }
    state.decay.take(state.step, rate, kDecayed);
    if (!was_low || state.below == 0) {
      state.low = state.step;
      state.worth_before = state.worth;
    }
    state.current = rate;
    ++state.values;
  }

  static bool has_ended(const Config& cfg, const Plan& plan, const State& state) {
    return !(plan[kFollowsMetric] > 0) && is_low(cfg, state.current, state.largest) &&
           state.below > 0 && state.below >= state.above;
  }

  static bool only_warms_up(const Plan& plan, const State& state) {
    const double left = plan[kUpdates] - static_cast<double>(state.step);
    return plan[kUpdates] > 1 && left <= std::max(1.0, plan[kStride]) &&
           state.start == state.step && state.largest > state.lowest_start;
  }

  // ----------------------------------------------------------------------------- sentences

  static double percent(double share) { return std::round(1000 * share) / 10; }

  static Finding explain_rounds(const Config& cfg, const Plan& plan) {
    Finding finding = Finding::that("reach", reached(plan));
    return finding.is("<", "reach", cfg.reach)
        .titled("boosting", Verb::is, "too short for its learning rate")
        .says(sentence("{} rounds at a learning rate of {} cover at most {} % of the way from a "
                       "constant to the best fit (expected: at least {} %).",
                       TrainingPlan::whole(plan[kRounds]), plan[kShrinkage], percent(reached(plan)),
                       percent(cfg.reach)))
        .advises(
            sentence("Plan more rounds, or a larger learning_rate (eta). At this rate, half of the "
                     "way takes {} rounds.",
                     TrainingPlan::whole(std::ceil(std::log(0.5) / std::log1p(-plan[kShrinkage])))))
        .with("rounds", plan[kRounds])
        .with("shrinkage", plan[kShrinkage]);
  }

  static Finding explain(const Config& cfg, const Plan& plan, const State& state,
                         const Subject& subject, unsigned kind) {
    if (kind == kWarmupOnly) return explain_warmup(plan, state, subject);
    if (plan.misfit(cfg) == kind) return explain_misfit(cfg, plan, state, subject, kind);
    if (!has_ended(cfg, plan, state)) return explain_decay(cfg, state, subject);
    Finding finding = Finding::that("updates_below", static_cast<double>(state.below));
    finding.severity = core::Severity::error;
    finding.is(">=", "updates_above", static_cast<double>(state.above))
        .titled(subject.name, Verb::has, "ended before the training")
        .says(sentence("{} is {} since step {}, but training continues. The {} updates since then "
                       "(until step {}) are worth {} updates at the largest rate ({}); the {} "
                       "updates before are worth {}.",
                       subject.name, state.current, state.low, state.below, subject.step,
                       state.worth - state.worth_before, state.largest, state.above,
                       state.worth_before))
        .advises(
            "Give the schedule the number of updates. If it counts epochs, call scheduler.step() "
            "once per epoch. Or end the training here.")
        .since(state.low, state.values)
        .with("largest", state.largest)
        .with("value", state.current)
        .with("worth", state.worth);
    if (plan[kUpdates] > 0) {
      finding.adds(
          sentence("{} updates are planned; {} remain.", TrainingPlan::whole(plan[kUpdates]),
                   TrainingPlan::whole(plan[kUpdates] - static_cast<double>(subject.step))));
    }
    return finding;
  }

  static Finding explain_decay(const Config& cfg, const State& state, const Subject& subject) {
    const RateDecay& decay = state.decay;
    Finding finding = Finding::that("updates_at_the_largest_rate", decay.total);
    finding.severity = core::Severity::error;
    return finding.is("<", "worth", cfg.worth)
        .titled(subject.name, Verb::is, "decaying too fast")
        .says(sentence(
            "{} fell from {} to {} within {} updates (by step {}). At this pace, the whole "
            "training is worth {} updates at the largest rate (expected: at least {}).",
            subject.name, decay.largest, decay.current, decay.step - decay.start, subject.step,
            decay.total, cfg.worth))
        .advises(
            "Most probable: a schedule meant for epochs steps at each batch. Call scheduler.step() "
            "once per epoch, or give it the number of updates.")
        .since(decay.start, decay.values)
        .with("largest", decay.largest)
        .with("value", decay.current);
  }

  static Finding explain_warmup(const Plan& plan, const State& state, const Subject& subject) {
    Finding finding = Finding::that("largest_at", static_cast<double>(state.start));
    return finding.is(">=", "updates", plan[kUpdates] - std::max(1.0, plan[kStride]))
        .titled(subject.name, Verb::has, "risen until the end")
        .says(sentence("{0} rises from {2} to {3} until the last of {1} planned updates. The whole "
                       "training is warm-up, worth {4} updates at the largest rate.",
                       subject.name, TrainingPlan::whole(plan[kUpdates]), state.lowest_start,
                       state.largest, state.worth))
        .advises("Give the warm-up a tenth of the planned updates or less.")
        .with("largest", state.largest)
        .with("worth", state.worth);
  }

  static Finding explain_misfit(const Config& cfg, const Plan& plan, const State& state,
                                const Subject& subject, unsigned kind) {
    const double ratio = plan[kSchedule] / plan[kUpdates];
    const bool early = ratio < 1;
    Finding finding = Finding::that("schedule", plan[kSchedule]);
    std::string says =
        early ? sentence(
                    "The schedule of {} ends after {} updates, but {} are planned: {} % of the "
                    "training comes after its end.",
                    subject.name, TrainingPlan::whole(plan[kSchedule]),
                    TrainingPlan::whole(plan[kUpdates]), percent(1 - ratio))
              : sentence(
                    "The schedule of {} takes {} updates, but {} are planned: it completes {} %.",
                    subject.name, TrainingPlan::whole(plan[kSchedule]),
                    TrainingPlan::whole(plan[kUpdates]), percent(1 / ratio));
    finding.is(early ? "<" : ">", "limit", (early ? cfg.early : cfg.late) * plan[kUpdates])
        .titled("the schedule of " + subject.name, early ? Verb::has : Verb::does_not,
                early ? "an early end" : "end within the plan")
        .says(std::move(says))
        .advises(plan.advice(kind, early))
        .with("planned_updates", plan[kUpdates])
        .with("length", plan[kLength])
        .with("updates_per_scheduler_step", plan[kStride])
        .with("worth", state.worth);
    return finding;
  }
};

}  // namespace

RuleDescriptor budget() {
  return {.name = "budget",
          .original_name = "Budget",
          .title =
              "The learning-rate schedule or the number of rounds does not fit the length of the "
              "training.",
          .unit = "series",
          .needs = "the scalars learning_rate and ledger/plan/…, which the hook sends",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "1",
          .groups = group::kDefault | group::kPyTorch | group::kXGBoost,
          .read = &read_series_rule<Budget>};
}

}  // namespace tocsin::rules
