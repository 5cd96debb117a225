#include "rules/declared/other_rule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "rules/declared/row_rule.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/other_step.h"
#include "rules/evaluate/spare_nodes.h"

namespace tocsin::rules::declared {
namespace {

constexpr std::uint64_t kMostWords = 1U << 21;  // that wait, and that are kept of the other run

/// A worker in a mode, by what both runs call it.
using Who = std::pair<std::uint64_t, std::uint8_t>;
using StepOf = std::pair<Who, std::int64_t>;

using PointOf = std::pair<StepOf, std::uint64_t>;  // by its name

/// A point whose step the other run has not ended.
struct Waiting {
  std::uint32_t worker = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  double epoch = 0;
  core::SummaryRow row;
  std::vector<std::uint64_t> memory;

  template <typename A>
  friend void io(A& a, Waiting& w) {
    io_all(a, w.worker, w.global_step, w.time, w.epoch, w.row, w.memory);
  }
};

/// Of the other run what its expressions came to; of a compared one what waits.
struct OtherState {
  std::map<std::pair<Who, std::uint64_t>, std::vector<std::uint64_t>> memories;  // by name
  std::map<StepOf, std::map<std::uint64_t, std::vector<double>>> values;         // by name
  std::map<PointOf, Waiting> waiting;
  std::map<Who, std::int64_t> ended;
  std::map<Who, std::int64_t> told;  // to partitions elsewhere
  std::vector<StepOf> withdrawn;     // dropped, and told before
  std::uint64_t words = 0;           // of values, and of what waits
  std::int64_t dropped_to = INT64_MIN;
  std::uint64_t compared = 0;
  bool over = false;
  bool told_over = false;

  template <typename A>
  friend void io(A& a, OtherState& s) {
    io_all(a, s.memories, s.values, s.waiting, s.ended, s.told, s.withdrawn, s.words, s.dropped_to,
           s.compared, s.over, s.told_over);
  }
};

struct OtherConfig {
  Rule rule;
  std::string_view label;  // tensor or metric
};

class OtherEvaluator final : public EvaluatorOf<OtherState> {
 public:
  explicit OtherEvaluator(const OtherConfig& config) : config_(config) {}

  void on_rows(const WorkerRows& rows, Scope& scope) override {
    if (rows.scalar != nullptr) return take(rows, *rows.scalar, scope);
    for (const std::uint32_t number : rows.rows) take(rows, rows.frame->summary(number), scope);
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    std::int64_t& ended =
        state.ended.try_emplace(who(step.worker, step.mode, scope), step.step).first->second;
    ended = std::max(ended, step.step);
    if (!scope.is_other()) compare(scope);
  }
  void on_other(Scope& scope) override { compare(scope); }
  void on_restart(std::uint32_t) override {}
  void on_end(Scope& scope) override {
    state.over = true;
    if (scope.is_other())
      return scope.unjudged("this is the run that all others are compared with");
    compare(scope);
    for (std::size_t i = 0; i < state.waiting.size(); ++i) {
      scope.counted(EvaluationOutcome::insufficient_data);
    }
    const std::string other = core::to_text(*config_.rule.other);
    if (scope.other() == nullptr) {
      scope.unjudged("no data was seen of run " + other +
                     ", the run to compare with, since this rule was configured");
    } else if (state.compared == 0) {
      scope.unjudged("this run and run " + other + " have no step in common");
    }
  }

  void publish(Tell say) override {
    for (const auto& [whose, ended] : state.ended) {
      std::int64_t& told = state.told.try_emplace(whose, INT64_MIN).first->second;
      if (told >= ended) continue;
      const auto to = state.values.upper_bound({whose, ended});
      for (auto at = state.values.upper_bound({whose, told}); at != to; ++at) {
        std::string bytes;
        Writer out(bytes);
        std::uint32_t version = kVersion;
        io(out, version);
        io(out, at->second);
        say(text_of(at->first), std::move(bytes));
      }
      told = ended;
    }
    for (const StepOf& step : state.withdrawn) say(text_of(step), std::nullopt);
    state.withdrawn.clear();
    if (state.over && !std::exchange(state.told_over, true)) {
      say(std::string(OtherStep::kOver), std::string());
    }
  }
  [[nodiscard]] bool knows(std::string_view key, bool there) const override {
    if (key == OtherStep::kOver) return state.over;
    const auto step = OtherStep::parse(key);
    if (!step) return true;
    const bool known = state.values.contains({{step->worker, step->mode}, step->step});
    return there ? known || step->step <= state.dropped_to : !known;
  }
  void learn(std::string_view key, std::optional<std::string_view> value) override {
    if (key == OtherStep::kOver) {
      state.over = state.over || value.has_value();
      return;
    }
    const auto step = OtherStep::parse(key);
    if (!step) return;
    const StepOf where{{step->worker, step->mode}, step->step};
    if (!value) {
      const auto found = state.values.find(where);
      if (found != state.values.end()) drop(found);
      return;
    }
    Loader in(*value);
    std::uint32_t version = 0;
    io(in, version);
    std::map<std::uint64_t, std::vector<double>> values;
    if (version == kVersion) io(in, values);
    if (version != kVersion || !in.ok()) return;
    for (const auto& [name, numbers] : values) {
      if (numbers.size() != config_.rule.formula.others.size()) return;
      state.words += numbers.size() + 1;
    }
    state.values[where] = std::move(values);
    std::int64_t& ended = state.ended.try_emplace(where.first, step->step).first->second;
    ended = std::max(ended, step->step);
    bound();
  }

 private:
  using Values = std::map<StepOf, std::map<std::uint64_t, std::vector<double>>>;
  static constexpr std::uint32_t kVersion = 1;  // of what is told

  static Who who(std::uint32_t worker, core::Mode mode, const Scope& scope) {
    return {core::name_hash(scope.who(worker).worker), static_cast<std::uint8_t>(mode)};
  }
  static std::string text_of(const StepOf& step) {
    return OtherStep{step.first.first, step.first.second, step.second}.text();
  }

  void take(const WorkerRows& rows, const core::SummaryRow& row, Scope& scope) {
    const Formula& formula = config_.rule.formula;
    const Who whose = who(rows.worker, rows.mode, scope);
    std::vector<std::uint64_t>& memory = state.memories[{whose, row.name}];
    if (memory.empty()) {
      memory.resize(formula.sources[0].words);
      begin(formula, 0, memory.data());
    }
    const Row columns(reinterpret_cast<const std::byte*>(&row), 1, 0);
    const Point point = point_of(columns, rows.step, rows.time, rows.epoch, scope);
    arrives(formula, 0, memory.data(), point);
    add(formula, 0, memory.data(), point, false);
    if (scope.is_other()) {
      const std::uint64_t* const words = memory.data();
      std::vector<double>& values = state.values[{whose, rows.step}][row.name];
      if (values.empty()) state.words += formula.others.size() + 1;
      values.clear();
      for (const Code& code : formula.others) {
        values.push_back(run(code, {&formula, &point, &words}));
      }
    } else {
      const auto [waiting, fresh] = nodes_.reused(state.waiting, {{whose, rows.step}, row.name});
      if (fresh) state.words += kRowWords + memory.size();
      waiting->worker = rows.worker;
      waiting->global_step = rows.global_step;
      waiting->time = rows.time;
      waiting->epoch = rows.epoch;
      waiting->row = row;
      waiting->memory = memory;
    }
    bound();
  }

  static constexpr std::uint64_t kRowWords = 20;  // about, of a point that waits

  static Point point_of(const Row& columns, std::int64_t step, std::int64_t time, double epoch,
                        const Scope& scope) {
    Point point;
    point.row = &columns;
    point.step = step;
    point.time = time;
    point.world_size = scope.world_size();
    point.epoch = epoch;
    return point;
  }

  // The oldest steps make room. What waited and was dropped is not compared.
  void bound() {
    while (state.words > kMostWords && (!state.values.empty() || !state.waiting.empty())) {
      if (!state.values.empty()) {
        drop(std::min_element(
            state.values.begin(), state.values.end(),
            [](const auto& a, const auto& b) { return a.first.second < b.first.second; }));
        continue;
      }
      const auto oldest = std::min_element(
          state.waiting.begin(), state.waiting.end(),
          [](const auto& a, const auto& b) { return a.first.first.second < b.first.first.second; });
      forget(oldest);
    }
  }
  void drop(Values::iterator at) {
    for (const auto& [name, numbers] : at->second) state.words -= numbers.size() + 1;
    state.dropped_to = std::max(state.dropped_to, at->first.second);
    const auto told = state.told.find(at->first.first);
    if (told != state.told.end() && at->first.second <= told->second) {
      state.withdrawn.push_back(at->first);
    }
    state.values.erase(at);
  }

  // What is over in both runs, in the order of workers, modes and steps.
  void compare(Scope& scope) {
    const auto* other = dynamic_cast<const OtherEvaluator*>(scope.other());
    if (other == nullptr) return;
    for (auto at = state.waiting.begin(); at != state.waiting.end();) {
      const auto& [where, name] = at->first;
      const Who& whose = where.first;
      const std::int64_t step = where.second;
      const auto ended = [&](const OtherState& one) {
        const auto known = one.ended.find(whose);
        return one.over || (known != one.ended.end() && known->second >= step);
      };
      if (!ended(state) || !ended(other->state)) {
        ++at;
        continue;
      }
      if (const std::vector<double>* values = value_of(other->state, where, name)) {
        ++state.compared;
        judge(where, name, at->second, *values, scope);
      } else {
        const bool dropped = step <= other->state.dropped_to;
        scope.counted(dropped ? EvaluationOutcome::insufficient_data
                              : EvaluationOutcome::not_applicable);
      }
      at = forget(at);
    }
  }
  static const std::vector<double>* value_of(const OtherState& there, const StepOf& where,
                                             std::uint64_t name) {
    const auto found = there.values.find(where);
    if (found == there.values.end()) return nullptr;
    const auto named = found->second.find(name);
    return named == found->second.end() ? nullptr : &named->second;
  }
  std::map<PointOf, Waiting>::iterator forget(std::map<PointOf, Waiting>::iterator at) {
    state.words -= kRowWords + at->second.memory.size();
    return nodes_.erase(state.waiting, at);
  }

  void judge(const StepOf& step, std::uint64_t name, const Waiting& here,
             const std::vector<double>& there, Scope& scope) const {
    const Rule& rule = config_.rule;
    const Row columns(reinterpret_cast<const std::byte*>(&here.row), 1, 0);
    const Point point = point_of(columns, step.second, here.time, here.epoch, scope);
    const std::uint64_t* const words = here.memory.data();
    const Sight sight{&rule.formula, &point, &words, nullptr, nullptr, there.data()};
    const Verdict verdict = verdict_of(run(rule.formula.when, sight));
    Place place = at_step(static_cast<core::Mode>(step.first.second), step.second, here.global_step,
                          here.time);
    const Name* const named = scope.find(name);
    const std::string hash = named == nullptr ? scope.text(name) : std::string();
    const std::string_view text = named == nullptr ? std::string_view(hash) : named->text;
    const std::string_view worker = scope.who(here.worker).worker;
    UnitText unit;
    unit.add(text)
        .add("\x1e")
        .add(core::to_string(*place.mode))
        .add("\x1e")
        .add(worker)
        .add("\x1e");
    const std::uint64_t number = unit.number();
    if (scope.quiet(number, verdict)) return;
    Subject subject;
    subject.name = text;
    subject.worker = worker;
    subject.mode = *place.mode;
    subject.step = step.second;
    const auto labels = [&]() -> Labels {
      return {{std::string(config_.label), subject.name},
              {"mode", std::string(core::to_string(subject.mode))},
              {"worker", subject.worker}};
    };
    scope.judged(number, here.worker, verdict, place, subject, labels,
                 [&](const Subject& about, unsigned) {
                   Finding out = tell(rule, sight, about, [&](const std::string& label) {
                     if (label == "worker") return about.worker;
                     if (label == "mode") return std::string(core::to_string(about.mode));
                     return about.name;
                   });
                   const Span span = span_of(rule.formula, 0, words, step.second);
                   return out.since(span.first_step, span.points)
                       .with("other_run", core::to_text(*rule.other));
                 });
  }

  const OtherConfig& config_;  // of the program, which outlives it
  SpareNodes<std::map<PointOf, Waiting>, 256> nodes_;
};

class OtherProgram final : public Program {
 public:
  OtherProgram(Rule rule, Choice choice) : choice_(std::move(choice)) {
    common.mode_mask = choice_.modes();
    config_.label =
        rule.selected.front().selector.source == Selector::Source::metric ? "metric" : "tensor";
    config_.rule = std::move(rule);
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kRows | input::kStepEnds;
  }
  [[nodiscard]] Match selects(const Candidate& candidate) const override {
    return choice_.matches(candidate);
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<OtherEvaluator>(config_);
  }
  [[nodiscard]] const core::RunUid* other() const noexcept override { return &*config_.rule.other; }

 private:
  OtherConfig config_;
  Choice choice_;
};

}  // namespace

std::shared_ptr<Program> other_program(Rule rule, Choice choice) {
  return std::make_shared<OtherProgram>(std::move(rule), std::move(choice));
}

}  // namespace tocsin::rules::declared
