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
//         still       a tensor goes less than `still` (0.001) times as far as the median of its role, as a share of its
//                     size, at three words in a row; it has a gradient, and did not begin at zero
//         no_pay      each gradient says that the update before went down, by more than ten errors of the loss, and the loss
//                     fell by less than a hundredth of it and is no better than a constant (movement_pay.h)
// Quiet   where no loss says how far the training is, or only losses of adversarial pairs do: oscillates and crawls.
// Source  our own; docs/rules/movement.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/builtin/tensors/movement_state.h"
#include "rules/builtin/tensors/movement_telling.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kMovementKinds[] = {"never",  "uphill", "oscillates",
                                               "crawls", "still",  "no_pay"};
constexpr std::string_view kMovementRoom = "ledger/movement/";
constexpr std::string_view kNeverRoom = "never/";
constexpr std::string_view kSlowRoom = "slow/";

struct Movement {
  static constexpr std::span<const std::string_view> kKinds = kMovementKinds;
  static constexpr bool kPerWorker = false;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kNever, kUphill, kOscillates, kCrawls, kStill, kNoPay };
  static constexpr std::size_t kMostCalls = 8;
  static constexpr double kFirstTold = 64;  // updates; from then on whenever they have doubled

  struct Config {
    MovementBounds bounds;
  };
  using State = MovementState;
  using Parameters = MovementParameters;
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;
  /// What a step says.
  struct Said {
    MovementSaid movement;
    std::optional<Parameters> parameters;
    std::vector<std::string> names;
    std::vector<std::pair<std::string, double>> slow;
    std::optional<double> compared;
    double directed = 0;
    double directed_updates = 0;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    MovementBounds& bounds = cfg.bounds;
    in.optional("uphill", bounds.uphill, config::between(0.0, 0.9),
                "updates raise the loss if the mean cosine of gradient and update is above this");
    in.optional("against", bounds.against, config::between(0.0, 0.9),
                "gradients oscillate if the mean cosine of two in a row is below minus this");
    in.optional("along", bounds.along, config::between(0.0, 0.99),
                "gradients hardly change if the mean cosine of two in a row is above this");
    in.optional("still", bounds.still, config::between(0.0, 0.1),
                "a tensor stands still if it moves less than this share of the median of its role");
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
    for (const StepRow& row : set.rows) {
      const Name* name = row.scalar ? scope.find(row.name()) : nullptr;
      const double value = row.row.sum;
      if (name == nullptr || !name->text.starts_with(kMovementRoom) || !std::isfinite(value)) {
        continue;
      }
      const std::string_view field = std::string_view(name->text).substr(kMovementRoom.size());
      add_movement(out.movement, field, value);
      add_pace(out, field, value);
      any = any || field == "trainable";
      add_parameters(parameters, field, value);
      if (field.starts_with(kNeverRoom)) out.names.emplace_back(field.substr(kNeverRoom.size()));
    }
    std::sort(out.names.begin(), out.names.end());
    if (any) {
      parameters.at = static_cast<double>(set.step) + 1;
      out.parameters = parameters;
    }
    return out;
  }
  static void add_movement(MovementSaid& now, std::string_view field, double value) {
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
    if (field == "pays") {
      now.pays += value;
      ++now.payers;
    }
  }
  static void add_pace(Said& out, std::string_view field, double value) {
    if (field == "compared") out.compared = out.compared.value_or(0) + value;
    if (field == "directed") out.directed = value;
    if (field == "directed_updates") out.directed_updates = value;
    if (field.starts_with(kSlowRoom)) out.slow.emplace_back(field.substr(kSlowRoom.size()), value);
  }
  static void add_parameters(Parameters& parameters, std::string_view field, double value) {
    if (field == "trainable") parameters.trainable += value;
    if (field == "without") parameters.without += value;
    if (field == "zero") parameters.zero += value;
    if (field == "trainable_elements") parameters.elements += value;
    if (field == "zero_elements") parameters.still += value;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    Said now = said(set, report.scope());
    const LedgerStep step(set, report.scope());
    state.bounds = cfg.bounds;
    const double looks = state.pay.losses.looks;
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
    if (now.movement.payers > 0 && now.movement.payers >= now.movement.turns) pay(state, step, now);
    if (now.compared) compare(state, now);
    if (now.movement.looks > 0 && state.since < 0) state.since = set.step;
    state.course.add(now.movement, cfg.bounds);
    if (now.parameters) state.parameters = *now.parameters;
    if (now.parameters) judge_parameters(state, now, report);
    if (now.movement.looks > 0 || (step.rate && *step.rate < 0)) judge_way(cfg, state, report);
    if (now.movement.turns > 0) judge_turns(cfg, state, report);
    if (now.compared) judge_slow(state, now, report);
    if (state.pay.losses.looks > looks) judge_pay(state, report);
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

  static void pay(State& state, const LedgerStep& step, const Said& now) {
    // Of several losses nobody knows which one the updates are for.
    const LedgerCall* only = nullptr;
    for (const LedgerCall& call : step.calls) {
      if (!call.has(LedgerCall::loss) || call[LedgerCall::samples] <= 0) continue;
      if (only != nullptr) return;
      only = &call;
    }
    if (only == nullptr) return;
    state.pay.add((*only)[LedgerCall::loss] / (*only)[LedgerCall::samples], now.movement.pays,
                  state.run.updates, state.bounds.alpha);
  }
  static void compare(State& state, const Said& now) {
    state.compared = *now.compared;
    ++state.words;
    for (const auto& [name, share] : now.slow) state.take(name, share);
    if (now.directed_updates > 0) {
      state.directed = now.directed;
      state.directed_updates = now.directed_updates;
    }
  }

  static void judge_parameters(const State& state, const Said& now, SetReport& report) {
    report.evaluated(
        {{"metric", "parameters"}}, "parameters", state.stands_still() ? hit(kNever) : kOk,
        [&](const Subject& subject, unsigned) { return never_finding(state, now.names, subject); });
  }

  static void judge_way(const Config& cfg, const State& state, SetReport& report) {
    const Verdict verdict = state.goes_up()                      ? hit(kUphill)
                            : state.course.goes_down(cfg.bounds) ? kOk
                                                                 : kInsufficient;
    report.evaluated({{"metric", "updates"}}, "updates", verdict,
                     [&](const Subject& subject, unsigned) {
                       return state.rate < 0 ? negative_rate_finding(state, subject)
                                             : uphill_finding(state, subject);
                     });
  }

  static void judge_turns(const Config& cfg, const State& state, SetReport& report) {
    Verdict verdict = kInsufficient;
    if (state.learns_nothing() && state.course.oscillates(cfg.bounds)) {
      verdict = hit(kOscillates);
    } else if (state.learns_nothing() && state.course.crawls(cfg.bounds)) {
      verdict = hit(kCrawls);
    } else if (state.course.turns_well(cfg.bounds)) {
      verdict = kOk;
    }
    report.evaluated({{"metric", "gradients"}}, "gradients", verdict,
                     [&](const Subject& subject, unsigned kind) {
                       return kind == kOscillates ? oscillates_finding(state, subject)
                                                  : crawls_finding(state, subject);
                     });
  }

  static void judge_slow(const State& state, const Said& now, SetReport& report) {
    for (const auto& [name, slow] : state.slow) {
      report.evaluated({{"metric", name}}, name, slow.words >= State::kWords ? hit(kStill) : kOk,
                       [&, &name = name, &slow = slow](const Subject& subject, unsigned) {
                         return still_finding(state, name, slow, subject);
                       });
    }
    if (state.slow.empty()) {
      report.evaluated({{"metric", "tensors"}}, "tensors", *now.compared > 0 ? kOk : kInsufficient,
                       [](const Subject&, unsigned) { return Finding{}; });
    }
  }
  static void judge_pay(const State& state, SetReport& report) {
    const Verdict verdict = state.unpaid()                                  ? hit(kNoPay)
                            : state.pay.known != 0 && state.pay.unpaid == 0 ? kOk
                                                                            : kInsufficient;
    report.evaluated({{"metric", "pay"}}, "pay", verdict, [&](const Subject& subject, unsigned) {
      return no_pay_finding(state, subject);
    });
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
      const bool up = state.goes_up();
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
      const bool nothing = state.learns_nothing();
      const bool off = course.oscillates(state.bounds) || course.crawls(state.bounds);
      put(nothing && off, course.turns_well(state.bounds), "successive gradients",
          with_direction(state, {{"looks", course.turns}, {"cosine", course.turn()}}));
    }
    if (state.words > 0) {
      const double slow = state.slow_tensors();
      put(slow > 0, state.compared > 0, "way of tensors",
          {{"compared", state.compared}, {"still", slow}});
    }
    if (state.pay.losses.looks > 0) {
      put(state.unpaid(), state.pay.known != 0 && state.pay.unpaid == 0, "pay of updates",
          {{"promised", state.pay.promised},
           {"fallen", state.pay.fallen},
           {"error", state.pay.error}});
    }
    const Parameters& p = state.parameters;
    if (p.trainable > 0) {
      put(state.stands_still(), p.without == 0, "parameters",
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

  // ‖Σ g‖² / Σ ‖g‖² of m gradients: 1 of noise, m of one direction. So much of their squares has one.
  static core::ValueMap with_direction(const State& state, core::ValueMap numbers) {
    if (state.directed_updates > 1) {
      numbers.emplace_back("direction", (state.directed - 1) / (state.directed_updates - 1));
    }
    return numbers;
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
          .title = "Updates do not move the parameters, or do not lower the loss.",
          .unit = "metric",
          .needs = "the ledger",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<Movement>};
}

}  // namespace tocsin::rules
