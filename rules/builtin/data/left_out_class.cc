// Fires when a class is left out: its samples are not told apart, or training has none of them.
//
// Reads   scalars ledger/<call>/class_… (docs/ledger.md, "Classes"), added up over workers.
// Window  training: from one doubling of the updates to the next (64, 128, 256 …), or to a later one if three classes
//         do not have enough samples yet; evaluation: one pass.
// Fires   random_class    of pairs of samples exactly one of which is of the class, that one is the likelier for the
//                         class in fewer than ½ + `lead` · what the usual class has above ½, at `alpha`, by e-BH over
//                         the classes; while the usual class has more than `usual` (0.8)
//         never_answered  no answer is the class, its samples cost no less than guessing by class frequency, and half of
//                         the usual class's samples are right
//         never_seen      evaluation has samples of it and training none, at `alpha`; at once
//         rarely_seen     a quarter of its share in evaluation is more than it has in training, at `alpha`, and its samples
//                         are right less than half as often as usual
//         All but never_seen at two looks in a row, between which the updates have doubled. Usual: the lower median
//         of the classes that are judged.
// Quiet   of classes with fewer than `samples` (50) labels or pairs, of those with a twentieth of the median's labels or
//         fewer, until a class has had half as many labels as the usual class needed; with fewer than 3 classes
//         that are judged; of several labels per sample, which send none of it.
// Source  our own; docs/rules/left_out_class.md.

#include <map>
#include <string>
#include <utility>

#include "rules/builtin/data/class_course.h"
#include "rules/builtin/data/class_telling.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kLeftOutKinds[] = {"random_class", "never_answered", "never_seen",
                                              "rarely_seen"};

struct LeftOutClass {
  static constexpr std::span<const std::string_view> kKinds = kLeftOutKinds;
  static constexpr bool kPerWorker = false;
  static constexpr bool kJoinsModes = true;
  static constexpr TensorUse kTensorUse = TensorUse::none;
  static constexpr std::span<const Sent> kSent{};
  static constexpr std::size_t kMostCalls = 64;  // of a run and mode
  static constexpr double kFirstTold = 64;       // updates; from then on whenever they have doubled

  struct Config {
    ClassBounds bounds;
  };
  using Courses = std::map<std::string, ClassCourse>;
  struct State {
    double lead = 0;  // of the bounds, for what is told at the end
    double usual = 0;
    double samples = 0;
    double alpha = 0;
    Courses train;
    Courses eval;
    double updates = 0;
    double told = 0;  // updates when the newest sum was told
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.lead, s.usual, s.samples, s.alpha, s.train, s.eval, s.updates, s.told);
    }
    [[nodiscard]] ClassBounds bounds() const { return {lead, usual, samples, alpha}; }
  };
  using States = std::map<std::pair<std::uint32_t, std::uint8_t>, State>;

  static Defaults defaults(Preset) {
    return {.modes =
                static_cast<std::uint8_t>(mode_bit(core::Mode::train) | mode_bit(core::Mode::eval)),
            .patterns = {"^ledger/.+/class_"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    ClassBounds& bounds = cfg.bounds;
    in.optional("lead", bounds.lead, config::between(0.05, 0.9),
                "least lead of a class over chance (half of the pairs), as a share of the usual "
                "class's lead");
    in.optional("usual", bounds.usual, config::between(0.6, 0.99),
                "share of right pairs from which the usual class counts as learned");
    in.optional("samples", bounds.samples, config::at_least(10.0),
                "least number of labels and pairs to judge a class");
    in.optional("alpha", bounds.alpha, config::between(1e-9, 0.1),
                "chance of a false alarm per kind, loss call and mode");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const ClassBounds& bounds = cfg.bounds;
    state.lead = bounds.lead;
    state.usual = bounds.usual;
    state.samples = bounds.samples;
    state.alpha = bounds.alpha;
    const bool train = set.mode == core::Mode::train;
    const double updates =
        static_cast<double>(train ? set.step : std::max<std::int64_t>(set.after_train, -1)) + 1;
    state.updates = std::max(state.updates, updates);
    Courses& courses = train ? state.train : state.eval;
    for (const auto& [name, classes] : classes_of(set, report.scope())) {
      const auto [at, fresh] = courses.try_emplace(name);
      if (fresh && courses.size() > kMostCalls) {
        courses.erase(at);
        continue;
      }
      ClassCourse& course = at->second;
      if (train) {
        course.train(classes, updates, bounds);
      } else {
        const auto other = state.train.find(name);
        course.evaluate(classes, updates, other == state.train.end() ? nullptr : &other->second,
                        bounds);
      }
      const std::string metric = "ledger/" + name;
      const unsigned kinds = course.kinds();
      Verdict verdict = ClassWindow(course.window, bounds).known(bounds) ? kOk : kInsufficient;
      if (kinds != 0) verdict = {EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
      report.evaluated({{"metric", metric}}, name, verdict,
                       [&](const Subject& subject, unsigned kind) {
                         return class_finding(kind, subject, course, bounds);
                       });
    }
    tell_so_far(state, set, report.scope());
  }

  // ------------------------------------------------------------------------- what is known

  static core::ValueMap told(const State& state) {
    core::ValueMap out;
    const ClassBounds bounds = state.bounds();
    for (const std::string_view answer : {"ok", "hit", "undecided"}) {
      core::ValueMap calls;
      for (const auto& [mode, courses] :
           {std::pair{"train", &state.train}, std::pair{"eval", &state.eval}}) {
        for (const auto& [name, course] : *courses) {
          if (class_answer(course, bounds) != answer) continue;
          calls.emplace_back(name + " " + mode, class_numbers(course, bounds));
        }
      }
      if (!calls.empty()) out.emplace_back(answer, std::move(calls));
    }
    return out;
  }

  static void tell_so_far(State& state, const StepSet& set, Scope& scope) {
    if (state.train.empty() || state.updates < std::max(kFirstTold, 2 * state.told)) return;
    state.told = state.updates;
    scope.so_far(set.time, told(state));
  }

  static core::ValueMap summary(const States& states, const Scope&) {
    return states.empty() ? core::ValueMap{} : told(states.begin()->second);
  }
};

}  // namespace

RuleDescriptor left_out_class() {
  return {.name = "left_out_class",
          .original_name = "LeftOutClass",
          .title = "A class is never predicted, confused with all others, or rare in training.",
          .unit = "metric",
          .needs = "the ledger of a classification loss",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<LeftOutClass>};
}

}  // namespace tocsin::rules
