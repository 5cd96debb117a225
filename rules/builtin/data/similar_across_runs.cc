// Fires when tensors of a run differ from those of another run, whatever its name says.
//
// Reads   the columns of the tensors and scalars that the user selects, and their statistic digest.
// Window  one step of a worker, judged when it is over in both runs. The other run is read as it comes:
//         live, from the topic, or from the directory that is judged. Where it lies in another
//         partition, the engine there says what it keeps of it (topic `comparisons`).
// Fires   for the same name, mode, mode step and worker:
//           (no kind)  shapes differ; NaN or infinities are not the same in number; a single value, or
//                      min, max, mean, std or l2, is off by more than atol + rtol·|b|, b the other
//                      run's; with rtol and atol 0 also unequal digests of one type
//           missing    (missing: hit) one of the two runs has the tensor at a step that both have
// Quiet   for equal digests (equality is then proven), for steps that one run alone has, and for what
//         the other run has not reached when this one ends.
// Source  Amazon SageMaker Debugger, SimilarAcrossRuns; docs/rules/similar_across_runs.md.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "rules/builtin/data/likeness.h"
#include "rules/builtin/data/likeness_telling.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/other_step.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMostSaved = 200'000;  // rows of a run that are kept
constexpr std::string_view kSimilarKinds[] = {"", "missing"};
enum SimilarKind : unsigned { kDifferent, kMissing };

class SimilarEvaluator final : public EvaluatorOf<SimilarState> {
 public:
  SimilarEvaluator(const SimilarConfig& config, const Common& common)
      : config_(config), common_(common) {}

  void on_rows(const WorkerRows& rows, Scope& scope) override {
    if (!common_.wants_mode(rows.mode) || !common_.wants_step(rows.step)) return;
    if (rows.step <= state.dropped_to) return scope.late(1);
    SavedStep& step = state.steps[{who(rows.worker, rows.mode, scope), rows.step}];
    step.global_step = std::max(step.global_step, rows.global_step);
    step.time = std::max(step.time, rows.time);
    step.worker = rows.worker;
    const std::size_t before = step.rows.size();
    if (rows.scalar != nullptr) keep(step, *rows.scalar, true, scope);
    for (const std::uint32_t row : rows.rows) keep(step, rows.frame->summary(row), false, scope);
    if (rows.frame != nullptr) attach(std::span(step.rows).subspan(before), rows);
    state.rows += step.rows.size() - before;
    if (state.rows > kMostSaved) drop_oldest();
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    Aligned& worker = state.workers[who(step.worker, step.mode, scope)];
    worker.ended = std::max(worker.ended, step.step);
    if (!scope.is_other()) compare(scope);
  }
  void on_other(Scope& scope) override { compare(scope); }

  // One record per worker and step, with the names of its rows.
  void publish(Tell say) override {
    for (auto& [whose, worker] : state.workers) {
      if (worker.told >= worker.ended) continue;
      const auto from = state.steps.upper_bound({whose, worker.told});
      const auto to = state.steps.upper_bound({whose, worker.ended});
      for (auto at = from; at != to; ++at) say(text_of(at->first), bytes_of(at->second));
      worker.told = worker.ended;
    }
    for (const SimilarState::Key& key : state.withdrawn) say(text_of(key), std::nullopt);
    state.withdrawn.clear();
    if (state.over && !std::exchange(state.told_over, true))
      say(std::string(OtherStep::kOver), std::string());
  }
  [[nodiscard]] bool knows(std::string_view key, bool there) const override {
    if (key == OtherStep::kOver) return state.over;
    const auto step = key_of(key);
    if (!step) return true;
    return there ? state.steps.contains(*step) || step->second <= state.dropped_to
                 : !state.steps.contains(*step);
  }
  void learn(std::string_view key, std::optional<std::string_view> value) override {
    if (key == OtherStep::kOver) {
      state.over = state.over || value.has_value();
      return;
    }
    const auto where = key_of(key);
    if (!where) return;
    if (!value) return forget(*where);
    SavedStep step;
    std::map<std::uint64_t, std::string> names;
    std::uint32_t version = 0;
    Loader in(*value);
    io(in, version);
    if (version != kVersion) return;
    io_all(in, step, names);
    if (!in.ok() || !state.steps.try_emplace(*where, step).second) return;
    state.rows += step.rows.size();
    state.names.merge(names);
    Aligned& worker = state.workers[where->first];
    worker.ended = std::max(worker.ended, where->second);
    if (state.rows > kMostSaved) drop_oldest();
  }
  void on_end(Scope& scope) override {
    state.over = true;
    if (scope.is_other())
      return scope.unjudged("this is the run that all others are compared with");
    compare(scope);
    for (std::size_t i = 0; i < state.steps.size(); ++i) {
      scope.counted(EvaluationOutcome::insufficient_data);  // the other run has not come so far
    }
    scope.summary(told(scope));
    if (scope.other() == nullptr) {
      scope.unjudged("no data was seen of run " + core::to_text(config_.other) +
                     ", the run to compare with, since this rule was configured");
    } else if (state.same + state.similar + state.different + state.missing == 0) {
      scope.unjudged("this run and run " + core::to_text(config_.other) +
                     " have no saved step in common");
    }
  }

 private:
  static SimilarState::Who who(std::uint32_t worker, core::Mode mode, const Scope& scope) {
    return {core::name_hash(scope.worker(worker)), static_cast<std::uint8_t>(mode)};
  }

  void keep(SavedStep& step, const core::SummaryRow& row, bool scalar, const Scope& scope) {
    const Name* name = scope.find(row.name);
    if (name != nullptr && scope.is_other()) state.names.try_emplace(row.name, name->text);
    step.rows.push_back(saved(row, scalar, name));
  }

  static constexpr std::uint32_t kVersion = 2;  // of what is told

  static std::string text_of(const SimilarState::Key& key) {
    return OtherStep{key.first.first, key.first.second, key.second}.text();
  }
  static std::optional<SimilarState::Key> key_of(std::string_view text) {
    const auto step = OtherStep::parse(text);
    if (!step) return std::nullopt;
    return SimilarState::Key{{step->worker, step->mode}, step->step};
  }
  std::string bytes_of(SavedStep& step) {
    std::map<std::uint64_t, std::string> names;
    for (const SavedRow& row : step.rows) {
      const auto known = state.names.find(row.name);
      if (known != state.names.end()) names.insert(*known);
    }
    std::uint32_t version = kVersion;
    std::string out;
    Writer writer(out);
    io(writer, version);
    io_all(writer, step, names);
    return out;
  }
  void forget(const SimilarState::Key& key) {
    const auto found = state.steps.find(key);
    if (found == state.steps.end()) return;
    state.dropped_to = std::max(state.dropped_to, key.second);
    state.rows -= found->second.rows.size();
    state.steps.erase(found);
    ++state.dropped;
  }

  // This run may never have named what the other one alone has.
  static std::string name_of(std::uint64_t name, const Scope& scope) {
    if (scope.find(name) != nullptr) return scope.text(name);
    const auto* other = dynamic_cast<const SimilarEvaluator*>(scope.other());
    if (other == nullptr) return scope.text(name);
    const auto known = other->state.names.find(name);
    return known == other->state.names.end() ? scope.text(name) : known->second;
  }

  // An eighth of the steps that are kept.
  void drop_oldest() {
    std::vector<std::int64_t> steps;
    for (const auto& [key, step] : state.steps) steps.push_back(key.second);
    const auto at = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 8);
    std::nth_element(steps.begin(), at, steps.end());
    state.dropped_to = *at;
    for (auto one = state.steps.begin(); one != state.steps.end();) {
      if (one->first.second > state.dropped_to) {
        ++one;
        continue;
      }
      ++state.dropped;
      const auto worker = state.workers.find(one->first.first);
      if (worker != state.workers.end() && one->first.second <= worker->second.told) {
        state.withdrawn.push_back(one->first);
      }
      state.rows -= one->second.rows.size();
      one = state.steps.erase(one);
    }
  }

  // What is over in both runs, in the order of workers, modes and steps.
  void compare(Scope& scope) {
    const auto* other = dynamic_cast<const SimilarEvaluator*>(scope.other());
    if (other == nullptr) return;
    for (auto at = state.steps.begin(); at != state.steps.end();) {
      const auto& [whose, step] = at->first;
      Aligned& worker = state.workers[whose];
      const auto theirs = other->state.workers.find(whose);
      const bool here = state.over || worker.ended >= step;
      const bool there = other->state.over ||
                         (theirs != other->state.workers.end() && theirs->second.ended >= step);
      if (!here || !there) {
        ++at;
        continue;
      }
      worker.first = std::min(worker.first, step);
      worker.last = std::max(worker.last, step);
      const auto found = other->state.steps.find(at->first);
      if (found != other->state.steps.end()) {
        ++worker.compared;
        judge(at->first, at->second, found->second, scope);
      } else if (step <= other->state.dropped_to) {
        ++state.left_out;
        scope.counted(EvaluationOutcome::insufficient_data);
      } else {
        ++worker.only_here;
        scope.counted(EvaluationOutcome::not_applicable);
      }
      state.rows -= at->second.rows.size();
      at = state.steps.erase(at);
    }
  }

  void judge(const SimilarState::Key& key, const SavedStep& here, const SavedStep& there,
             Scope& scope) {
    const auto named = [](const std::vector<SavedRow>& rows, std::uint64_t name) {
      return std::find_if(rows.begin(), rows.end(),
                          [&](const SavedRow& row) { return row.name == name; });
    };
    for (const SavedRow& row : here.rows) {
      const auto other = named(there.rows, row.name);
      if (other != there.rows.end()) {
        const Likeness likeness = compared(config_, row, *other);
        ++(likeness.is == Likeness::Is::same      ? state.same
           : likeness.is == Likeness::Is::similar ? state.similar
                                                  : state.different);
        tell(key, here, row, likeness.is == Likeness::Is::different ? hit(kDifferent) : kOk,
             likeness, scope);
      } else {
        judge_missing(key, here, row, true, scope);
      }
    }
    for (const SavedRow& row : there.rows) {
      if (named(here.rows, row.name) == here.rows.end()) {
        judge_missing(key, here, row, false, scope);
      }
    }
  }

  void judge_missing(const SimilarState::Key& key, const SavedStep& step, const SavedRow& row,
                     bool has, Scope& scope) {
    ++state.missing;
    if (config_.missing != "hit") return scope.counted(EvaluationOutcome::not_applicable);
    tell(key, step, row, hit(kMissing), {Likeness::Is::different, has ? "here" : "there", 0, 0},
         scope);
  }

  void tell(const SimilarState::Key& key, const SavedStep& step, const SavedRow& row,
            Verdict verdict, const Likeness& likeness, Scope& scope) {
    const auto mode = static_cast<core::Mode>(key.first.second);
    Place place = at_step(mode, key.second, step.global_step, step.time);
    Subject subject;
    subject.name = name_of(row.name, scope);
    subject.worker = scope.worker(step.worker);
    subject.mode = mode;
    subject.dtype = static_cast<core::Dtype>(row.dtype);
    subject.step = key.second;
    const auto labels = [&]() -> Labels {
      return {{row.scalar != 0 ? "metric" : "tensor", subject.name},
              {"mode", std::string(core::to_string(mode))},
              {"worker", subject.worker}};
    };
    scope.judged(unit_number({subject.name, core::to_string(mode), subject.worker}), step.worker,
                 verdict, place, subject, labels, [&](const Subject& about, unsigned kind) {
                   return kind == kMissing ? tell_missing(config_, likeness, about)
                                           : tell_different(config_, likeness, about);
                 });
  }

  [[nodiscard]] core::ValueMap told(const Scope& scope) const {
    core::ValueMap out{{"other_run", core::to_text(config_.other)}};
    const auto* other = dynamic_cast<const SimilarEvaluator*>(scope.other());
    if (other == nullptr) {
      out.emplace_back("means", "nothing of the other run was seen");
      return out;
    }
    std::uint64_t steps = 0;
    std::uint64_t here = 0;
    std::uint64_t there = 0;
    for (const auto& [whose, worker] : state.workers) {
      steps += worker.compared;
      here += worker.only_here;
      if (worker.first > worker.last) continue;
      const auto from = other->state.steps.lower_bound({whose, worker.first});
      const auto to = other->state.steps.upper_bound({whose, worker.last});
      there += static_cast<std::uint64_t>(std::distance(from, to)) - worker.compared;
    }
    const auto add = [&](const char* name, std::uint64_t number) {
      out.emplace_back(name, number);
    };
    add("steps_compared", steps);
    add("steps_only_here", here);
    add("steps_only_there", there);
    add("steps_not_reached", state.steps.size());
    if (state.left_out > 0) add("steps_left_out", state.left_out);
    add("same", state.same);
    add("similar", state.similar);
    add("different", state.different);
    add("in_one_run_only", state.missing);
    return out;
  }

  const SimilarConfig& config_;  // of the program, which outlives it
  const Common& common_;
};

class SimilarProgram final : public Program {
 public:
  SimilarConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kRows | input::kStepEnds;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<SimilarEvaluator>(config, common);
  }
  [[nodiscard]] const core::RunUid* other() const noexcept override { return &config.other; }
};

struct SimilarAcrossRuns {
  static constexpr std::span<const std::string_view> kKinds = kSimilarKinds;
  static constexpr std::string_view kExtensions[] = {"rtol", "atol", "equal_nan", "missing"};

  static Defaults defaults(Preset) { return {.needs_selector = true}; }
  static void adjust(const SimilarConfig&, Program& program) {
    for (const std::string& name : program.common.collection_names) {
      program.needs.push_back({name, {"digest"}});
    }
  }
  static void read(config::Reader& in, SimilarConfig& cfg, Preset) {
    std::vector<std::string> others;  // the original takes a list, of exactly one
    in.required("other_trials", others, "ID of the run that all others are compared with");
    in.optional("rtol", cfg.rtol, config::at_least(0.0),
                "tolerance relative to the other run's value");
    in.optional("atol", cfg.atol, config::at_least(0.0), "absolute tolerance");
    in.optional("equal_nan", cfg.equal_nan, "NaN in both runs counts as equal");
    in.optional("missing", cfg.missing, config::one_of({"ignore", "hit"}),
                "what to do about a tensor that only one of the runs has at a step of both");
    if (in.describing() || !in.has("other_trials")) return;
    if (others.size() != 1) return in.error("other_trials", "expected exactly one run");
    const std::string& other = others.front();
    if (const auto uid = core::parse_run_uid(other)) {
      cfg.other = *uid;
    } else {
      in.error("other_trials", "\"" + other +
                                   "\" is no run uid: expected one run, as `tocsin status` "
                                   "names it (a UUID of 36 characters)");
    }
  }
};

}  // namespace

RuleDescriptor similar_across_runs() {
  return {.name = "similar_across_runs",
          .original_name = "SimilarAcrossRuns",
          .title = "Tensors of a run differ from those of another run.",
          .unit = "tensor",
          .needs =
              "the tensors named by collection_names or tensor_regex in both runs, better with "
              "statistic digest",
          .presets = "",
          .severity = core::Severity::info,
          .version = "2",
          .read = &read_rule<SimilarAcrossRuns, SimilarProgram>};
}

}  // namespace tocsin::rules
