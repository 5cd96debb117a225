// Fires when the output does not depend on the input.
//
// Reads   the ledger of each loss call (docs/ledger.md), added up over workers; learning_rate.
// Window  training: 3 steps, and looks at 32, 64, 128 … of them; evaluation: one pass.
// Fires   constant    no exchange of two targets changes a loss, and the variance of the outputs over the samples is less than
//                     `spread` (1e-6) of that of the targets: in 3 steps in a row of outputs that had differed; of outputs
//                     that never did in 32 steps, where a straight line through them does not get there by the end of the plan
//         one_answer  hardly any answer differs from its step's most frequent one though labels do, and the scores are in no order:
//                     fewer than `share` (0.55) of pairs fit their own targets better, at `alpha`. Of scores that had no order
//                     before, only where the loss is a constant's and cannot get below it (as in chance_level)
//         embedding   all rows point into one direction: mean cosine of two above 0.98 and of each with the mean direction above
//                     0.9, in each measured step of the newer half of the updates, where it was below 0.9 at first and a straight
//                     line stays above. Or they lie on a line (participation ratio below 1.5, at first 4 or more) though each sample
//                     is a class of its own. Looked at when 32, 64, 128 … updates have come
//         mode        what a generator makes differs in less than half as many directions (participation ratio) as the data:
//                     rejected at `alpha` when 64, 128 … words have come, and a straight line does not get there
//         In evaluation the first two must last for as long as all updates before them.
// Quiet   for a majority answer whose scores are in order; for heads that start at zero; while the rate was larger than
//         ever within the window; of steps in which a call has one target for all beside other calls (adversarial
//         pairs); without two different targets in a batch.
// Source  our own; docs/rules/collapse.md.

#include "rules/builtin/data/collapse_telling.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "rules/builtin/data/embedding_telling.h"
#include "rules/builtin/data/sample_course.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kCollapseKinds[] = {"constant", "one_answer", "embedding", "mode"};

struct Collapse {
  static constexpr std::span<const std::string_view> kKinds = kCollapseKinds;
  static constexpr bool kPerWorker = false;
  static constexpr bool kJoinsModes = true;
  static constexpr std::span<const Sent> kSent{};
  enum Kind : unsigned { kConstant, kOneAnswer, kEmbedding, kMode };
  static constexpr std::size_t kMostCalls = 64;  // of a run and mode
  static constexpr double kFirstTold = 64;       // updates; from then on whenever they have doubled

  struct Config {
    PairingBounds bounds;
    double spread = 1e-6;
  };
  using Courses = std::map<std::string, CollapseCourse>;
  using Generators = std::map<std::string, SampleCourse>;
  using Embeddings = std::map<std::string, EmbeddingCourse>;
  struct State {
    PairingBounds bounds;  // for what is told at the end
    PairingRun run;
    Courses train;
    Courses eval;
    Embeddings embeddings;
    Generators generators;
    double told = 0;  // updates when the newest sum was told
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.bounds, s.run, s.train, s.eval, s.embeddings, s.generators, s.told);
    }
  };
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;

  static Defaults defaults(Preset) {
    return {.modes = static_cast<std::uint8_t>(mode_bit(core::Mode::train) |
                                               mode_bit(core::Mode::eval))};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("spread", cfg.spread, config::between(0.0, 1.0),
                "variance of the outputs, as a share of that of the targets, below which they are "
                "constant");
    in.optional("share", cfg.bounds.share, config::between(0.51, 0.9),
                "least share of pairs whose outputs fit their own targets better than each other's "
                "(chance: 0.5)");
    in.optional("skill", cfg.bounds.skill, config::between(0.0, 1.0),
                "least skill of a model (1 - loss / loss of the best constant)");
    in.optional("alpha", cfg.bounds.alpha, config::between(1e-9, 0.1),
                "chance of a false alarm per run");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;  // what the user has chosen
    std::string error;
    program.selection.add_role(core::Role::ledger);
    program.selection.add_regex("^learning_rate$", error);
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const LedgerStep step(set, report.scope());
    const bool train = set.mode == core::Mode::train;
    state.bounds = cfg.bounds;
    if (train) state.run.updates = static_cast<double>(set.step) + 1;
    if (step.planned_updates) state.run.planned = *step.planned_updates;
    if (train && step.rate && *step.rate > state.run.rate) {
      state.run.rate = *step.rate;
      state.run.rate_at = state.run.updates;
    }
    PairingRun run = state.run;
    if (!train) run.updates = static_cast<double>(std::max<std::int64_t>(set.after_train, -1) + 1);
    Courses& courses = train ? state.train : state.eval;
    for (const LedgerCall& call : step.calls) {
      const std::string name(call.name);
      if (!courses.contains(name) && courses.size() >= kMostCalls) continue;
      CollapseCourse& course = courses[name];
      const bool adversarial = call[LedgerCall::one_target] > 0 && call[LedgerCall::calls] > 1;
      if (!adversarial) {
        const auto other = state.train.find(name);
        add(cfg, course, call, run, train,
            train || other == state.train.end() ? nullptr : &other->second.outputs);
      }
      report.evaluated(
          {{"metric", name}}, name, adversarial ? kNotApplicable : verdict_of(course, cfg),
          [&](const Subject& subject, unsigned kind) {
            return kind == kConstant ? constant_finding(subject, course.outputs, run, cfg.spread)
                                     : one_answer_finding(subject, course.answers, run, cfg.bounds);
          });
    }
    if (train) {
      judge_embeddings(state, step, set, report);
      judge_samples(cfg, state, set, report);
      tell_so_far(state, set, report.scope());
    }
  }

  static void judge_embeddings(State& state, const LedgerStep& step, const StepSet& set,
                               SetReport& report) {
    for (const auto& [name, sums] : EmbeddingStep::of(set, report.scope())) {
      if (!state.embeddings.contains(name) && state.embeddings.size() >= kMostCalls) continue;
      EmbeddingCourse& course = state.embeddings[name];
      course.train(sums, state.run, loss_of(step), is_instances(step));
      Verdict verdict = course.looks > 0 ? kOk : kInsufficient;
      if (course.standing != 0) verdict = hit(kEmbedding);
      report.evaluated({{"metric", name}}, name, verdict, [&](const Subject& subject, unsigned) {
        return embedding_finding(subject, course, state.run);
      });
    }
  }

  static void judge_samples(const Config& cfg, State& state, const StepSet& set,
                            SetReport& report) {
    for (const auto& [name, words] : SampleStep::of(set, report.scope())) {
      if (!state.generators.contains(name) && state.generators.size() >= kMostCalls) continue;
      SampleCourse& course = state.generators[name];
      course.train(words, state.run, cfg.bounds.alpha);
      const std::string_view answer = sample_answer(course);
      const Verdict verdict = answer == "hit" ? hit(kMode) : answer == "ok" ? kOk : kInsufficient;
      report.evaluated({{"metric", name}}, name, verdict, [&](const Subject& subject, unsigned) {
        return sample_finding(subject, course, state.run);
      });
    }
  }

  static void add(const Config& cfg, CollapseCourse& course, const LedgerCall& call,
                  const PairingRun& run, bool train, const OutputCourse* trained) {
    if (train) {
      course.outputs.train(call, run, cfg.spread);
      course.answers.train(call, run, cfg.bounds);
    } else {
      course.outputs.evaluate(call, run, trained, cfg.spread);
      course.answers.evaluate(call, run, cfg.bounds);
    }
  }

  static Verdict verdict_of(const CollapseCourse& course, const Config& cfg) {
    if (course.outputs.standing != 0) return hit(kConstant);
    if (course.answers.standing != 0) return hit(kOneAnswer);
    return collapse_answer(course, cfg.bounds) == "ok" ? kOk : kInsufficient;
  }

  // ------------------------------------------------------------------------- what is known

  static core::ValueMap told(const State& state) {
    core::ValueMap out;
    for (const std::string_view answer : {"ok", "hit", "undecided"}) {
      core::ValueMap calls;
      for (const auto& [mode, courses] :
           {std::pair{"train", &state.train}, std::pair{"eval", &state.eval}}) {
        for (const auto& [name, course] : *courses) {
          if (collapse_answer(course, state.bounds) != answer) continue;
          calls.emplace_back(name + " " + mode, collapse_numbers(course, state.run, state.bounds));
        }
      }
      for (const auto& [name, course] : state.embeddings) {
        if (embedding_answer(course) != answer) continue;
        calls.emplace_back(name + " train", embedding_numbers(course, state.run));
      }
      for (const auto& [name, course] : state.generators) {
        if (sample_answer(course) == answer) {
          calls.emplace_back(name + " train", sample_numbers(course));
        }
      }
      if (!calls.empty()) out.emplace_back(answer, std::move(calls));
    }
    return out;
  }
  static void tell_so_far(State& state, const StepSet& set, Scope& scope) {
    if ((state.train.empty() && state.embeddings.empty() && state.generators.empty()) ||
        state.run.updates < std::max(kFirstTold, 2 * state.told))
      return;
    state.told = state.run.updates;
    scope.so_far(set.time, told(state));
  }
  static core::ValueMap summary(const States& states, const Scope&) {
    return states.empty() ? core::ValueMap{} : told(states.begin()->second);
  }
};

}  // namespace

RuleDescriptor collapse() {
  return {.name = "collapse",
          .original_name = "Collapse",
          .title = "The output does not depend on the input.",
          .unit = "metric",
          .needs = "the ledger",
          .presets = "",
          .severity = core::Severity::warning,
          .version = "2",
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<Collapse>};
}

}  // namespace tocsin::rules
