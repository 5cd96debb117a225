#include "rules/engine/units/evaluations.h"

#include <algorithm>

#include "core/identity.h"
#include "rules/engine/compare/families.h"
#include "rules/engine/compare/other_runs.h"
#include "rules/engine/partition/describe.h"
#include "rules/engine/partition/evaluators.h"

namespace tocsin::rules {
namespace {

/// What an evaluator sees of the engine during one call.
class EvaluatorScope final : public Scope {
 public:
  EvaluatorScope(const EngineOptions& options, EngineStats& stats, IssueBook& book,
                 Summaries& summaries, const Turn& turn, Run& run, std::uint32_t rule)
      : options_(options),
        stats_(stats),
        book_(book),
        summaries_(summaries),
        turn_(turn),
        run_(run),
        rule_(rule) {}

  [[nodiscard]] const Name* find(std::uint64_t name) const override {
    return run_.names.table.find(name);
  }
  [[nodiscard]] std::string text(std::uint64_t name) const override { return name_of(run_, name); }
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
  [[nodiscard]] std::string run() const override {
    return core::to_text(run_.id.uid) + "/" + std::to_string(run_.attempt);
  }
  [[nodiscard]] StepHost* host() const override { return options_.host.get(); }

  [[nodiscard]] Candidate who(std::uint32_t number) const override {
    return candidate_of(run_, number);
  }
  [[nodiscard]] std::uint32_t world_size() const override { return run_.world_size; }
  [[nodiscard]] std::int64_t offset() const override { return turn_.record.offset; }

  void counted(EvaluationOutcome outcome) override {
    EvaluationCounts counts{};
    ++counts[static_cast<std::size_t>(outcome)];
    book_.count(turn_, run_, rule_, counts);
  }

  void failed(std::string reason) override {
    counted(EvaluationOutcome::error);
    book_.fail(turn_, run_, rule_, std::move(reason));
  }
  void recovered() override { book_.recover(turn_, run_, rule_); }
  void summary(core::ValueMap told, std::string issues_of) override {
    Summary& sum = summaries_[rule_];
    sum.told = std::move(told);
    sum.issues_of = std::move(issues_of);
  }
  void interim(std::int64_t period_end, core::ValueMap told) override {
    book_.sum_up(turn_, run_, rule_, period_end, std::move(told));
  }
  void so_far(std::int64_t time, core::ValueMap told) override {
    book_.tell_so_far(turn_, run_, rule_, time, std::move(told));
  }
  void unjudged(std::string why) override { summaries_[rule_].unjudged = std::move(why); }
  [[nodiscard]] std::vector<RuleResult> results() const override {
    std::vector<RuleResult> out;
    for (std::uint32_t rule = 0; rule < turn_.rules().first_own; ++rule) {
      const RuleProgress& progress = run_.issues.progress[rule];
      const auto sum = summaries_.find(rule);
      out.push_back({&turn_.rules().settings(rule), progress.counts, progress.state,
                     sum == summaries_.end() ? nullptr : &sum->second.told});
    }
    return out;
  }
  [[nodiscard]] RunTimes times() const override {
    return {run_.job.started_at, run_.job.ended_at, run_.course.last_time};
  }
  [[nodiscard]] bool is_other() const override {
    const core::RunUid* other = turn_.rules().settings(rule_).program->other();
    return other != nullptr && *other == run_.id.uid;
  }
  [[nodiscard]] const Evaluator* other() const override {
    for (const std::uint32_t number : turn_.rules().families) {
      if (turn_.rules().evaluated[number].rule == rule_)
        return Families::evaluator(turn_.part, run_, number);
    }
    return evaluator_of_other(turn_.part, rule_);
  }
  void late(std::size_t rows) override { stats_.late_rows += rows; }
  void closed_early() override { ++stats_.open_steps_closed; }

  bool quiet(std::uint64_t unit, Verdict verdict) override {
    if (verdict.outcome == EvaluationOutcome::hit || verdict.outcome == EvaluationOutcome::error ||
        run_.issues.lives.contains({rule_, unit})) {
      return false;
    }
    counted(verdict.outcome);
    recovers(verdict.outcome);
    return true;
  }

  void judged(std::uint64_t unit, std::uint32_t worker, Verdict verdict, const Place& place,
              const Subject& subject, SayLabels labels, Explain explain_kind) override {
    counted(verdict.outcome);
    told(verdict.outcome, subject);
    const auto known = run_.issues.lives.find({rule_, unit});
    Life life = known == run_.issues.lives.end() ? Life{} : known->second;
    if (verdict.outcome != EvaluationOutcome::hit && known == run_.issues.lives.end()) return;
    const auto explain = [&](unsigned kind) -> std::pair<Finding, Extra> {
      Finding finding = explain_kind(subject, kind);
      Extra extra;
      extra.tensor = std::move(finding.tensor);
      extra.affected.hit = 1;
      extra.affected.evaluated = 1;
      extra.affected.worst = std::move(finding.worst);
      return {std::move(finding), std::move(extra)};
    };
    const Unit one{{rule_, kNoRoster, unit, 0xFF, 0}, worker, labels};
    book_.apply(turn_, run_, rule_, life, one, verdict, place, explain);
    if (life.active()) {
      run_.issues.lives[{rule_, unit}] = life;
    } else if (known != run_.issues.lives.end()) {
      run_.issues.lives.erase(known);
    }
  }

 private:
  // A hosted rule says itself when it works again.
  void told(EvaluationOutcome outcome, const Subject& subject) {
    if (outcome == EvaluationOutcome::error) {
      book_.fail(turn_, run_, rule_,
                 subject.place() + ": " + subject.name + " does not fit the rule's parameters");
    } else {
      recovers(outcome);
    }
  }
  void recovers(EvaluationOutcome outcome) {
    if (turn_.rules().settings(rule_).hosted == nullptr &&
        (outcome == EvaluationOutcome::ok || outcome == EvaluationOutcome::hit)) {
      book_.recover(turn_, run_, rule_);
    }
  }

  const EngineOptions& options_;
  EngineStats& stats_;
  IssueBook& book_;
  Summaries& summaries_;
  const Turn& turn_;
  Run& run_;
  std::uint32_t rule_;
};

bool follows_others(const RuleTable& rules, std::uint32_t number) {
  return !rules.evaluated[number].program->follows.empty();
}

}  // namespace

void Evaluations::feed(const Turn& turn, Run& run, std::uint32_t number,
                       core::FunctionRef<void(Evaluator&, Scope&)> call) {
  if (withholds_run(run, *turn.rules().evaluated[number].program)) return;
  if (!has_evaluator(run.evaluators, number)) Families::meet(turn, run, number);
  EvaluatorScope scope(options_, stats_, book_, summaries_, turn, run,
                       turn.rules().evaluated[number].rule);
  call(evaluator_of(turn.part, run, number), scope);
}

void Evaluations::feed_all(const Turn& turn, Run& run, std::uint32_t which,
                           core::FunctionRef<void(Evaluator&, Scope&)> call) {
  for (const std::uint32_t number : turn.rules().takers_of(which)) feed(turn, run, number, call);
}

// What a rule selects of a roster: decided once per name, and again when a dictionary has named it.
void Evaluations::choose(const Turn& turn, Run& run, Roster& roster) {
  const std::vector<std::uint32_t>& wanting = turn.rules().takers_of(input::kRows);
  const bool again = roster.chosen_unsure && roster.chosen_version != run.names.version;
  const std::size_t first = again ? 0 : roster.chosen_slots;
  if (first == roster.slots.size()) return;
  roster.chosen.resize(wanting.size());
  roster.picks.resize(wanting.size());
  roster.chosen_slots = roster.slots.size();
  roster.chosen_version = run.names.version;
  if (again) roster.chosen_unsure = false;
  for (std::size_t w = 0; w < wanting.size(); ++w) {
    const Program& program = *turn.rules().evaluated[wanting[w]].program;
    std::vector<Match>& chosen = roster.chosen[w];
    chosen.resize(roster.slots.size(), Match::unknown);
    const bool withheld = withholds_tensors(run, program) && !roster.scalars;
    if (withheld) stats_.withheld_units += roster.slots.size() - first;
    const bool looks = !withheld && program.common.wants_mode(roster.mode) &&
                       wants_worker(program.common, run.workers[roster.worker]);
    for (std::size_t i = first; i < roster.slots.size(); ++i) {
      if (chosen[i] != Match::unknown) continue;
      chosen[i] = looks ? program.selects(candidate_of(run, roster, i)) : Match::no;
      roster.chosen_unsure = roster.chosen_unsure || chosen[i] == Match::unknown;
    }
    if (first == 0) roster.picks[w].clear();
    for (std::size_t i = first; i < chosen.size(); ++i) {
      if (chosen[i] == Match::yes) roster.picks[w].add(static_cast<std::uint32_t>(i));
    }
  }
}

void Evaluations::feed_rows(const Turn& turn, Run& run, std::uint32_t roster_number,
                            WorkerRows rows, std::span<const std::uint32_t> units,
                            std::uint32_t first) {
  const std::vector<std::uint32_t>& wanting = turn.rules().takers_of(input::kRows);
  if (wanting.empty()) return;
  choose(turn, run, run.rosters[roster_number]);
  const Worker& worker = run.workers[rows.worker];
  rows.loss_scale = worker.loss_scale;
  rows.after_train = worker.mark[at(core::Mode::train)];
  rows.offset = turn.record.offset;
  for (std::size_t w = 0; w < wanting.size(); ++w) {
    const Roster& roster = run.rosters[roster_number];
    if (roster.picks[w].empty()) continue;
    roster.picks[w].rows(units, first, roster.chosen[w], chosen_rows_);
    if (chosen_rows_.empty()) continue;
    rows.rows = rows.scalar != nullptr ? std::span<const std::uint32_t>() : chosen_rows_;
    feed(turn, run, wanting[w], [&](Evaluator& one, Scope& scope) { one.on_rows(rows, scope); });
  }
}

void Evaluations::feed_step_end(const Turn& turn, Run& run, const WorkerStep& step) {
  for (const std::uint32_t number : turn.rules().takers_of(input::kStepEnds)) {
    // A rule of rows that has seen none has nothing to end.
    const bool of_rows = (turn.rules().evaluated[number].program->inputs() & input::kRows) != 0;
    if (of_rows && !has_evaluator(run.evaluators, number)) continue;
    // Every shard is told of steps' ends; what goes by these alone is judged once.
    if (!of_rows && run.id.shard != 0) continue;
    feed(turn, run, number, [&](Evaluator& one, Scope& scope) { one.on_step_end(step, scope); });
  }
  tell_others(turn, run);
}

void Evaluations::feed_closed(const Turn& turn, Run& run, core::Mode mode, std::int64_t step) {
  for (const std::uint32_t number : turn.rules().takers_of(input::kClosedSteps)) {
    // A rule that has no evaluator yet waits for nothing.
    if (!has_evaluator(run.evaluators, number) || follows_others(turn.rules(), number)) continue;
    feed(turn, run, number,
         [&](Evaluator& one, Scope& scope) { one.on_closed(mode, step, scope); });
  }
}

void Evaluations::feed_settled(const Turn& turn, Run& run, core::Mode mode, std::int64_t step) {
  for (const std::uint32_t number : turn.rules().following) {
    if (!has_evaluator(run.evaluators, number)) continue;
    feed(turn, run, number,
         [&](Evaluator& one, Scope& scope) { one.on_settled(mode, step, scope); });
  }
}

void Evaluations::end(const Turn& turn, Run& run, bool reports) {
  if (reports) book_.settle(turn);  // what they sum up
  const auto ends = [](Evaluator& one, Scope& scope) { one.on_end(scope); };
  for (std::uint32_t number = 0; number < run.evaluators.size(); ++number) {
    if (!run.evaluators[number].evaluator || follows_others(turn.rules(), number)) continue;
    const bool sums_up = (turn.rules().evaluated[number].program->inputs() & input::kIssues) != 0;
    if (sums_up == reports) feed(turn, run, number, ends);
  }
  if (reports) return;
  for (const std::uint32_t number : turn.rules().following) {
    if (has_evaluator(run.evaluators, number)) feed(turn, run, number, ends);
  }
}

void Evaluations::restart(const Turn& turn, Run& run, std::uint32_t worker) {
  for (std::uint32_t number = 0; number < run.evaluators.size(); ++number) {
    if (run.evaluators[number].evaluator) evaluator_of(turn.part, run, number).on_restart(worker);
  }
}

// Those of scalars: they go by steps alone, not by workers, which begin anew. Their keys stay with
// what the run gives up, so they are written again.
EvaluatorParts Evaluations::take_series(const Turn& turn, Run& run) {
  EvaluatorParts out(run.evaluators.size());
  for (std::uint32_t i = 0; i < run.evaluators.size(); ++i) {
    EvaluatorPart& from = run.evaluators[i];
    if (!from.evaluator || turn.rules().evaluated[i].program->inputs() != input::kValues) continue;
    out[i] = copy_of(turn, from, i);
  }
  return out;
}

EvaluatorParts Evaluations::take_compared(const Turn& turn, Run& run) {
  EvaluatorParts out;
  for (const std::uint32_t number : turn.rules().comparing) {
    if (!has_evaluator(run.evaluators, number) ||
        *turn.rules().evaluated[number].program->other() != run.id.uid) {
      continue;
    }
    if (number >= out.size()) out.resize(number + 1);
    out[number] = copy_of(turn, run.evaluators[number], number);
  }
  return out;
}

// What is said elsewhere is marked as said also while nothing is sent: it was sent before.
void Evaluations::tell_elsewhere(const Turn& turn, Run& run, std::uint32_t number) {
  if (!options_.shares_comparisons || !has_evaluator(run.evaluators, number)) return;
  const std::string prefix = comparison_key(run.id.uid, turn.rules().evaluated[number].identity);
  evaluator_of(turn.part, run, number)
      .publish([&](std::string key, std::optional<std::string> value) {
        if (turn.part.silent) return;
        ++stats_.comparisons_told;
        turn.part.output.comparisons.push_back({prefix + std::move(key), std::move(value)});
      });
}

void Evaluations::tell_others(const Turn& turn, Run& run) {
  for (const std::uint32_t number : turn.rules().comparing) {
    if (*turn.rules().evaluated[number].program->other() != run.id.uid) continue;
    if (!run.workers.empty()) tell_elsewhere(turn, run, number);
    for (auto& [id, one] : turn.part.runs) {
      if (one.get() == &run || one->job.ended || !has_evaluator(one->evaluators, number)) continue;
      turn.part.cut.touch_head(*one);
      feed(turn, *one, number, [](Evaluator& asking, Scope& scope) { asking.on_other(scope); });
    }
  }
}

// With the same state: the first goes to the cut.
EvaluatorPart Evaluations::copy_of(const Turn& turn, EvaluatorPart& from,
                                   std::uint32_t number) const {
  std::string bytes;
  Writer writer(bytes);
  from.evaluator->save(writer);
  Loader loader(bytes);
  EvaluatorPart out;
  out.evaluator = turn.rules().evaluated[number].program->evaluator();
  out.evaluator->load(loader);
  out.identity = from.identity;
  return out;
}

}  // namespace tocsin::rules
