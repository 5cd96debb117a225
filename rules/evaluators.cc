// Between the engine and its evaluators: hands them what they ask for, and makes issues of what they
// say.
#include "rules/run/evaluator_part.h"

#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {

/// What an evaluator sees of the engine during one call.
class Engine::Impl::EvaluatorScope final : public Scope {
 public:
  EvaluatorScope(Impl& engine, Run& run, std::uint32_t rule)
      : engine_(engine), run_(run), rule_(rule) {}

  [[nodiscard]] const Name* find(std::uint64_t name) const override {
    return run_.names.table.find(name);
  }
  [[nodiscard]] std::string text(std::uint64_t name) const override {
    return engine_.name_of(run_, name);
  }
  [[nodiscard]] std::string worker(std::uint32_t number) const override {
    return number < run_.workers.size() ? run_.workers[number].name : std::string();
  }
  [[nodiscard]] std::uint32_t rank(std::uint32_t number) const override {
    return number < run_.workers.size() ? run_.workers[number].rank : 0;
  }
  [[nodiscard]] std::string node(std::uint32_t number) const override {
    return number < run_.workers.size() ? run_.workers[number].node : std::string();
  }
  [[nodiscard]] std::size_t workers() const override { return run_.workers.size(); }
  [[nodiscard]] std::string job() const override { return run_.job.name; }

  [[nodiscard]] Candidate who(std::uint32_t number) const override {
    return Engine::Impl::candidate_of(run_, number);
  }
  [[nodiscard]] std::uint32_t world_size() const override { return run_.world_size; }
  [[nodiscard]] std::int64_t offset() const override { return engine_.ref.offset; }

  void counted(Outcome outcome) override {
    OutcomeCounts counts{};
    ++counts[static_cast<std::size_t>(outcome)];
    engine_.count(run_, rule_, counts);
  }

  void summary(std::string text) override { engine_.summaries[rule_] = std::move(text); }
  void late(std::size_t rows) override { engine_.stats.late_rows += rows; }
  void closed_early() override { ++engine_.stats.open_steps_closed; }

  void judged(std::uint64_t unit, std::uint32_t worker, Verdict verdict, const Place& place,
              const Subject& subject, SayLabels labels, Explain explain_kind) override {
    counted(verdict.outcome);
    const auto known = run_.issues.lives.find({rule_, unit});
    Life life = known == run_.issues.lives.end() ? Life{} : known->second;
    if (verdict.outcome != Outcome::hit && known == run_.issues.lives.end()) return;
    const auto explain = [&](unsigned kind) -> std::pair<Finding, Extra> {
      Finding finding = explain_kind(subject, kind);
      Extra extra;
      extra.tensor = std::move(finding.tensor);
      extra.affected.hit = 1;
      extra.affected.evaluated = 1;
      extra.affected.worst = std::move(finding.worst);
      return {std::move(finding), std::move(extra)};
    };
    const Unit one{{rule_, kNoLane, unit, 0xFF, 0}, worker, labels};
    engine_.settle(run_, rule_, life, one, verdict, place, explain);
    if (life.active()) {
      run_.issues.lives[{rule_, unit}] = life;
    } else if (known != run_.issues.lives.end()) {
      run_.issues.lives.erase(known);
    }
  }

 private:
  Impl& engine_;
  Run& run_;
  std::uint32_t rule_;
};

namespace {

bool has_evaluator(const Run& run, std::uint32_t number) {
  return number < run.evaluators.size() && run.evaluators[number].evaluator != nullptr;
}

}  // namespace

void Engine::Impl::bind_evaluators() {
  for (std::uint32_t i = 0; i < first_own; ++i) {
    const Program* program = all_rules[i].program.get();
    const std::uint32_t inputs = program->inputs();
    if (inputs == 0) continue;
    const auto number = static_cast<std::uint32_t>(evaluated.size());
    const RuleSettings& rule = all_rules[i];
    evaluated.push_back(
        {i, program, unit_number({rule.name, rule.type, rule.version, rule.params_hash})});
    if ((inputs & input::kValues) != 0) series_rules.push_back({number, program});
    for (std::size_t bit = 0; bit < takers.size(); ++bit) {
      if ((inputs & (1U << bit)) != 0) takers[bit].push_back(number);
    }
  }
}

Evaluator& Engine::Impl::evaluator(Run& run, std::uint32_t number) {
  if (run.evaluators.size() < evaluated.size()) run.evaluators.resize(evaluated.size());
  EvaluatorPart& part_of = run.evaluators[number];
  if (!part_of.evaluator) {
    part->cut.touch_head(run);
    part_of.evaluator = evaluated[number].program->evaluator();
    part_of.identity = evaluated[number].identity;
  }
  part->cut.touch_evaluator(run, number);
  return *part_of.evaluator;
}

void Engine::Impl::feed(Run& run, std::uint32_t number,
                        core::FunctionRef<void(Evaluator&, Scope&)> call) {
  EvaluatorScope scope(*this, run, evaluated[number].rule);
  call(evaluator(run, number), scope);
}

void Engine::Impl::feed_all(Run& run, std::uint32_t which,
                            core::FunctionRef<void(Evaluator&, Scope&)> call) {
  for (const std::uint32_t number : takers_of(which)) feed(run, number, call);
}

// What a rule selects of a lane: decided once per name, and again when a dictionary has named it.
void Engine::Impl::choose(Run& run, Lane& lane) {
  const std::vector<std::uint32_t>& wanting = takers_of(input::kRows);
  const bool again = lane.chosen_unsure && lane.chosen_version != run.names.version;
  const std::size_t first = again ? 0 : lane.chosen_slots;
  if (first == lane.slots.size()) return;
  lane.chosen.resize(wanting.size());
  lane.chosen_slots = lane.slots.size();
  lane.chosen_version = run.names.version;
  if (again) lane.chosen_unsure = false;
  for (std::size_t w = 0; w < wanting.size(); ++w) {
    const Program& program = *evaluated[wanting[w]].program;
    std::vector<Match>& chosen = lane.chosen[w];
    chosen.resize(lane.slots.size(), Match::unknown);
    const bool looks = program.common.wants_mode(lane.mode) &&
                       wants_worker(program.common, run.workers[lane.worker]);
    for (std::size_t i = first; i < lane.slots.size(); ++i) {
      if (chosen[i] != Match::unknown) continue;
      chosen[i] = looks ? program.selects(candidate_of(run, lane, i)) : Match::no;
      lane.chosen_unsure = lane.chosen_unsure || chosen[i] == Match::unknown;
    }
  }
}

void Engine::Impl::feed_rows(Run& run, std::uint32_t lane_number, WorkerRows rows,
                             std::span<const std::uint32_t> units) {
  const std::vector<std::uint32_t>& wanting = takers_of(input::kRows);
  if (wanting.empty()) return;
  choose(run, run.lanes[lane_number]);
  const Worker& worker = run.workers[rows.worker];
  rows.loss_scale = worker.loss_scale;
  rows.after_train = worker.mark[at(core::Mode::train)];
  rows.offset = ref.offset;
  for (std::size_t w = 0; w < wanting.size(); ++w) {
    const std::vector<Match>& chosen = run.lanes[lane_number].chosen[w];
    chosen_rows.clear();
    for (std::uint32_t i = 0; i < units.size(); ++i) {
      if (units[i] != RowBatch::kSkip && chosen[units[i]] == Match::yes) chosen_rows.push_back(i);
    }
    if (chosen_rows.empty()) continue;
    rows.rows = rows.scalar != nullptr ? std::span<const std::uint32_t>() : chosen_rows;
    feed(run, wanting[w], [&](Evaluator& one, Scope& scope) { one.on_rows(rows, scope); });
  }
}

void Engine::Impl::feed_step_end(Run& run, const WorkerStep& step) {
  for (const std::uint32_t number : takers_of(input::kStepEnds)) {
    // A rule of rows that has seen none has nothing to end.
    const bool of_rows = (evaluated[number].program->inputs() & input::kRows) != 0;
    if (of_rows && !has_evaluator(run, number)) continue;
    feed(run, number, [&](Evaluator& one, Scope& scope) { one.on_step_end(step, scope); });
  }
}

void Engine::Impl::feed_closed(Run& run, core::Mode mode, std::int64_t step) {
  for (const std::uint32_t number : takers_of(input::kClosedSteps)) {
    // A rule that has no evaluator yet waits for nothing.
    if (!has_evaluator(run, number)) continue;
    feed(run, number, [&](Evaluator& one, Scope& scope) { one.on_closed(mode, step, scope); });
  }
}

void Engine::Impl::end_evaluators(Run& run) {
  for (std::uint32_t number = 0; number < run.evaluators.size(); ++number) {
    if (!run.evaluators[number].evaluator) continue;
    feed(run, number, [](Evaluator& one, Scope& scope) { one.on_end(scope); });
  }
}

void Engine::Impl::restart_evaluators(Run& run, std::uint32_t worker) {
  for (std::uint32_t number = 0; number < run.evaluators.size(); ++number) {
    if (run.evaluators[number].evaluator) evaluator(run, number).on_restart(worker);
  }
}

}  // namespace tocsin::rules
