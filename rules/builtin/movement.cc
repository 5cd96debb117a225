// Fires when updates do not move what they may move, or not along its gradient.
//
// Reads   scalars ledger/movement/… (docs/ledger.md): of updates that were looked at, products of gradient and way
//         on some elements; and how many parameters never had a gradient. The ledger of loss calls; learning_rate.
// Window  all that was looked at so far.
// Fires   never       parameters whose gradient was zero at each of 200 updates (certain)
//         uphill      updates go along the gradient instead of against it: the mean cosine of gradient and way is at most
//                     `uphill` (0) under H0, which is rejected at `alpha`, and the sum of their products over all
//                     updates is above zero, which it never is of momentum and Adam (movement_course.h);
//                     or the learning rate is below zero (certain)
//         oscillates  successive gradients point against each other: their mean cosine is at least -`against` (0.3)
//                     under H0, rejected at `alpha`, and the loss is no better than one constant answer and
//                     will not be (pairing_course.h)
//         crawls      the same of a mean cosine of at most `along` (0.9): gradients hardly turn
// Quiet   where no loss says how far the training is, or only losses of adversarial pairs do: oscillates and crawls.
// Source  our own; docs/rules/movement.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/builtin/movement_course.h"
#include "rules/builtin/pairing_course.h"
#include "rules/evaluate/step_set.h"
#include "rules/sentence.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kMovementKinds[] = {"never", "uphill", "oscillates", "crawls"};
constexpr std::string_view kMovementRoom = "ledger/movement/";
constexpr std::string_view kNeverRoom = "never/";

struct Movement {
  static constexpr std::span<const std::string_view> kKinds = kMovementKinds;
  static constexpr bool kPerWorker = false;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kNever, kUphill, kOscillates, kCrawls };
  static constexpr std::size_t kMostCalls = 8;
  static constexpr double kFirstTold = 64;  // updates; from then on whenever they have doubled

  struct Config {
    MovementBounds bounds;
  };
  /// Parameters of the optimizers, and those without a gradient so far.
  struct Parameters {
    double trainable = 0;
    double without = 0;  // no gradient at all
    double zero = 0;     // zeros in its place
    double elements = 0;
    double still = 0;  // elements of these
    double at = 0;     // updates when it was said
    template <typename A>
    friend void io(A& a, Parameters& p) {
      io_all(a, p.trainable, p.without, p.zero, p.elements, p.still, p.at);
    }
  };
  struct State {
    MovementBounds bounds;  // for what is told at the end
    MovementCourse course;
    Parameters parameters;
    PairingRun run;
    std::map<std::string, PairingCourse> calls;
    std::int64_t since = -1;
    double told = 0;  // updates when the newest sum was told
    double rate = 0;  // the newest
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.bounds, s.course, s.parameters, s.run, s.calls, s.since, s.told, s.rate);
    }
  };
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;
  /// What a step says.
  struct Said {
    MovementSaid movement;
    std::optional<Parameters> parameters;
    std::vector<std::string> names;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    MovementBounds& bounds = cfg.bounds;
    in.optional("uphill", bounds.uphill, config::between(0.0, 0.9),
                "mean cosine of gradient and way above which updates go up the loss");
    in.optional("against", bounds.against, config::between(0.0, 0.9),
                "successive gradients with a mean cosine below minus this oscillate");
    in.optional("along", bounds.along, config::between(0.0, 0.99),
                "successive gradients with a mean cosine above this crawl");
    in.optional("alpha", bounds.alpha, config::between(1e-9, 0.1),
                "chance of a false alarm per kind and run");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    program.selection.add_role(core::Role::ledger);
    program.selection.add_regex("^learning_rate$", error);
  }

  static Said said(const StepSet& set, const Scope& scope) {
    Said out;
    Parameters parameters;
    bool any = false;
    MovementSaid& now = out.movement;
    for (const StepRow& row : set.rows) {
      const Name* name = row.scalar ? scope.find(row.name()) : nullptr;
      const double value = row.row.sum;
      if (name == nullptr || !name->text.starts_with(kMovementRoom) || !std::isfinite(value)) {
        continue;
      }
      const std::string_view field = std::string_view(name->text).substr(kMovementRoom.size());
      if (field == "stands_for") {
        now.stands_for += value;
        ++now.looks;
      }
      if (field == "along") now.along += value;
      if (field == "gradient") now.gradient += value;
      if (field == "update") now.update += value;
      if (field == "turned") {
        now.turned += value;
        ++now.turns;
      }
      any = any || field == "trainable";
      if (field == "trainable") parameters.trainable += value;
      if (field == "without") parameters.without += value;
      if (field == "zero") parameters.zero += value;
      if (field == "trainable_elements") parameters.elements += value;
      if (field == "zero_elements") parameters.still += value;
      if (field.starts_with(kNeverRoom)) out.names.emplace_back(field.substr(kNeverRoom.size()));
    }
    std::sort(out.names.begin(), out.names.end());
    if (any) {
      parameters.at = static_cast<double>(set.step) + 1;
      out.parameters = parameters;
    }
    return out;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    Said now = said(set, report.scope());
    const LedgerStep step(set, report.scope());
    state.bounds = cfg.bounds;
    state.run.updates = static_cast<double>(set.step) + 1;
    if (step.planned_updates) state.run.planned = *step.planned_updates;
    if (step.rate) {
      state.rate = *step.rate;
      if (*step.rate > state.run.rate) {
        state.run.rate = *step.rate;
        state.run.rate_at = state.run.updates;
      }
    }
    for (const LedgerCall& call : step.calls) learn(state, call);
    if (now.movement.looks > 0 && state.since < 0) state.since = set.step;
    state.course.add(now.movement, cfg.bounds);
    if (now.parameters) state.parameters = *now.parameters;
    if (now.parameters) judge_parameters(state, now, report);
    if (now.movement.looks > 0 || (step.rate && *step.rate < 0)) judge_way(cfg, state, report);
    if (now.movement.turns > 0) judge_turns(cfg, state, report);
    tell_so_far(state, set, report.scope());
  }

  static void learn(State& state, const LedgerCall& call) {
    // Real and made samples of a GAN: its loss stays where it is while both sides learn.
    if (call[LedgerCall::one_target] > 0 && call[LedgerCall::calls] > 1) return;
    const auto [at, fresh] = state.calls.try_emplace(std::string(call.name));
    if (fresh && state.calls.size() > kMostCalls) {
      state.calls.erase(at);
    } else {
      at->second.train(call, state.run, PairingBounds{});
    }
  }

  // ------------------------------------------------------------------------------- verdicts

  static bool stands_still(const State& state) { return state.parameters.zero > 0; }
  static bool goes_up(const State& state, const MovementBounds& bounds) {
    return state.rate < 0 || state.course.goes_up(bounds);
  }
  /// A call is no better than one constant answer and will not be, and no other is.
  static bool learns_nothing(const State& state) {
    bool out = false;
    for (const auto& [name, call] : state.calls) {
      if (call.knows != 0) return false;
      out = out || call.short_of != 0;
    }
    return out;
  }

  static void judge_parameters(const State& state, const Said& now, SetReport& report) {
    report.evaluated(
        {{"metric", "parameters"}}, "parameters", stands_still(state) ? hit(kNever) : kOk,
        [&](const Subject& subject, unsigned) { return explain_never(state, now, subject); });
  }

  static void judge_way(const Config& cfg, const State& state, SetReport& report) {
    const Verdict verdict = goes_up(state, cfg.bounds)           ? hit(kUphill)
                            : state.course.goes_down(cfg.bounds) ? kOk
                                                                 : kInsufficient;
    report.evaluated({{"metric", "updates"}}, "updates", verdict,
                     [&](const Subject& subject, unsigned) {
                       return state.rate < 0 ? explain_rate(state, subject)
                                             : explain_uphill(cfg, state, subject);
                     });
  }

  static void judge_turns(const Config& cfg, const State& state, SetReport& report) {
    Verdict verdict = kInsufficient;
    if (learns_nothing(state) && state.course.oscillates(cfg.bounds)) {
      verdict = hit(kOscillates);
    } else if (learns_nothing(state) && state.course.crawls(cfg.bounds)) {
      verdict = hit(kCrawls);
    } else if (state.course.turns_well(cfg.bounds)) {
      verdict = kOk;
    }
    report.evaluated({{"metric", "gradients"}}, "gradients", verdict,
                     [&](const Subject& subject, unsigned kind) {
                       return kind == kOscillates ? explain_oscillates(cfg, state, subject)
                                                  : explain_crawls(cfg, state, subject);
                     });
  }

  // ------------------------------------------------------------------------------ sentences

  static Finding explain_never(const State& state, const Said& now, const Subject& subject) {
    const Parameters& p = state.parameters;
    std::string listed;
    for (const std::string& name : now.names) listed += (listed.empty() ? ": " : ", ") + name;
    const auto more = p.zero - static_cast<double>(now.names.size());
    if (!listed.empty() && more > 0) listed += sentence(" and {} more", more);
    return Finding::that("zero", p.zero)
        .is(">", "limit", 0)
        .titled("parameters", Verb::have, "gradients of zero since the start")
        .says(sentence("Of {} trainable parameters {} ({} % of the elements) had a gradient of "
                       "zero at each of 200 updates and more up to {}{}.",
                       p.trainable, p.zero, 100 * p.still / std::max(p.elements, 1.0),
                       subject.place(), listed))
        .advises(
            "Look for units behind them that are dead or saturated, for a loss or branch that is "
            "multiplied by zero, and for a start at zero on both sides of a product. What is meant "
            "to stay can be frozen (requires_grad_(False)).")
        .with("elements", p.elements)
        .with("still", p.still);
  }

  static Finding explain_rate(const State& state, const Subject& subject) {
    return Finding::that("learning_rate", state.rate)
        .is("<", "limit", 0)
        .titled("the learning rate", Verb::is, "below zero")
        .says(sentence("The learning rate is {} at {}: updates go up the loss.", state.rate,
                       subject.place()))
        .advises(
            "A schedule went past its end: give it the number of updates of the whole training, or "
            "keep the rate at zero or above.");
  }

  static Finding explain_uphill(const Config& cfg, const State& state, const Subject& subject) {
    const MovementCourse& course = state.course;
    return Finding::that("cosine", course.cosine())
        .is(">", "uphill", cfg.bounds.uphill)
        .titled("updates", Verb::are, "going up the loss")
        .says(sentence("Updates go up the loss: of {} that were looked at up to {}, the way of the "
                       "weights and their gradient have a mean cosine of {}. It is below 0 where "
                       "updates go down.",
                       course.looks, subject.place(), course.cosine()))
        .advises(
            "Check the sign of the update in an optimizer of your own, and that the gradients are "
            "of these parameters and of this loss. If the loss is to become large, say "
            "maximize=True to the optimizer.")
        .since(state.since, static_cast<std::uint64_t>(course.looks))
        .with("log_evidence", course.up.evidence());
  }

  static Finding explain_oscillates(const Config& cfg, const State& state, const Subject& subject) {
    const MovementCourse& course = state.course;
    return Finding::that("cosine", course.turn())
        .is("<", "limit", -cfg.bounds.against)
        .titled("the gradient", Verb::is, "turning round at each update")
        .says(sentence("Successive gradients point against each other: their mean cosine is {} in "
                       "{} updates up to {}, and the loss is no better than one constant answer.",
                       course.turn(), course.turns, subject.place()))
        .advises(
            "Each update jumps over what it aims at: divide the learning rate by 3 to 10. With "
            "very "
            "few batches per epoch the labels may not follow from the inputs instead.")
        .since(state.since, static_cast<std::uint64_t>(course.turns))
        .with("log_evidence", course.opposed.evidence());
  }

  static Finding explain_crawls(const Config& cfg, const State& state, const Subject& subject) {
    const MovementCourse& course = state.course;
    return Finding::that("cosine", course.turn())
        .is(">", "along", cfg.bounds.along)
        .titled("the gradient", Verb::is, "hardly changing")
        .says(sentence("The gradient hardly changes from update to update: the mean cosine of two "
                       "in a row is {} in {} updates up to {}, and the loss is no better than one "
                       "constant answer and will not be by the end.",
                       course.turn(), course.turns, subject.place()))
        .advises(
            "Updates are small beside the way that is left: multiply the learning rate by 10, and "
            "check that it is no longer in its warm-up.")
        .since(state.since, static_cast<std::uint64_t>(course.turns))
        .with("log_evidence", course.alike.evidence());
  }

  // ------------------------------------------------------------------------- what is known

  static core::ValueMap told(const State& state) {
    core::ValueMap answers[3];  // ok, hit, undecided
    const auto put = [&](bool is_hit, bool is_ok, std::string what, core::ValueMap numbers) {
      answers[is_hit ? 1 : is_ok ? 0 : 2].emplace_back(std::move(what), std::move(numbers));
    };
    const MovementCourse& course = state.course;
    const double enough = -std::log(state.bounds.alpha);
    if (course.looks > 0) {
      const bool up = goes_up(state, state.bounds);
      const bool down = course.goes_down(state.bounds);
      core::ValueMap numbers{{"looks", course.looks}, {"cosine", course.cosine()}};
      if (!up && !down) {
        // As long as the evidence grows as it did.
        const double most = std::max(course.up.evidence(), course.down.evidence());
        if (most > 0)
          numbers.emplace_back("needs_looks", std::ceil(course.looks * (enough / most - 1)));
      }
      put(up, down, "way of updates", std::move(numbers));
    }
    if (course.turns > 0) {
      const bool nothing = learns_nothing(state);
      const bool off = course.oscillates(state.bounds) || course.crawls(state.bounds);
      put(nothing && off, course.turns_well(state.bounds), "successive gradients",
          {{"looks", course.turns}, {"cosine", course.turn()}});
    }
    const Parameters& p = state.parameters;
    if (p.trainable > 0) {
      put(stands_still(state), p.without == 0, "parameters",
          {{"updates", p.at},
           {"trainable", p.trainable},
           {"zero_gradient", p.zero},
           {"without_gradient", p.without}});
    }
    core::ValueMap out;
    constexpr std::string_view kNames[] = {"ok", "hit", "undecided"};
    for (std::size_t i = 0; i < 3; ++i) {
      if (!answers[i].empty()) out.emplace_back(std::string(kNames[i]), std::move(answers[i]));
    }
    return out;
  }

  static void tell_so_far(State& state, const StepSet& set, Scope& scope) {
    if (state.course.looks == 0 || state.run.updates < std::max(kFirstTold, 2 * state.told)) return;
    state.told = state.run.updates;
    scope.so_far(set.time, told(state));
  }

  static core::ValueMap summary(const States& states, const Scope&) {
    return states.empty() ? core::ValueMap{} : told(states.begin()->second);
  }
};

}  // namespace

RuleDescriptor movement() {
  return {.name = "movement",
          .original_name = "Movement",
          .title = "Updates do not move what they may move, or not down the loss.",
          .unit = "metric",
          .needs = "the ledger",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<Movement>};
}

}  // namespace tocsin::rules
