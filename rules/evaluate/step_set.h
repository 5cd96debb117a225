// Rules of all rows of one step: of one worker (judged when it has ended the step) or of all of them
// (judged when nobody can add to it any more). Rows come by rank, then in the order of name hashes,
// whatever the order in which they were sent.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rules/evaluate/answers_so_far.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/spare_nodes.h"

namespace tocsin::rules {

/// A statistic of a row beside its columns (core/statistics.h). The numbers of tag 1 and tag 2 are
/// each unique by themselves.
struct Sent {
  std::uint16_t id = 0;
  bool vector = false;

  // NOLINTBEGIN(google-explicit-constructor): a list of what a rule keeps reads as its names
  constexpr Sent() = default;
  constexpr Sent(core::SparseStat stat) : id(static_cast<std::uint16_t>(stat)) {}
  constexpr Sent(core::VectorStat stat) : id(static_cast<std::uint16_t>(stat)), vector(true) {}
  // NOLINTEND(google-explicit-constructor)
  friend constexpr bool operator==(const Sent&, const Sent&) = default;
};

struct SentStatistic {
  Sent what;
  std::vector<double> parameters;
  std::vector<double> values;

  template <typename A>
  friend void io(A& a, SentStatistic& e) {
    io_all(a, e.what, e.parameters, e.values);
  }
};

/// A selected row, kept until its step is complete. A scalar is a row of count 1.
struct StepRow {
  std::uint32_t worker = 0;
  std::uint32_t rank = 0;
  bool scalar = false;
  double loss_scale = 1;  // gradients of rows without flag 18 are divided by it
  double epoch = 0;       // as in WorkerRows
  core::SummaryRow row;
  std::vector<SentStatistic> extras;  // those of Rule::kSent, as they came

  StepRow() = default;
  StepRow(const WorkerRows& from, std::uint32_t its_rank, const core::SummaryRow& its_row)
      : worker(from.worker),
        rank(its_rank),
        scalar(from.scalar != nullptr),
        loss_scale(from.loss_scale),
        epoch(from.epoch),
        row(its_row) {}
  /// Row `at` of the frame, put where it stays.
  StepRow(const WorkerRows& from, std::uint32_t its_rank, std::uint32_t at)
      : worker(from.worker),
        rank(its_rank),
        loss_scale(from.loss_scale),
        epoch(from.epoch),
        row(from.frame->summary(at)) {}

  [[nodiscard]] std::uint64_t name() const noexcept { return row.name; }
  [[nodiscard]] core::Role role() const noexcept { return core::meta::role(row.meta); }
  [[nodiscard]] bool has(std::uint64_t flag) const noexcept { return (row.meta & flag) != 0; }
  /// The number, a digest as the number of its bits; nullopt where it was not sent, or with other
  /// parameters.
  [[nodiscard]] std::optional<double> statistic(core::SparseStat stat,
                                                std::span<const double> parameters = {}) const;
  /// nullptr where it was not sent, or with other parameters.
  [[nodiscard]] const std::vector<double>* vector(core::VectorStat stat,
                                                  std::span<const double> parameters = {}) const;

  template <typename A>
  friend void io(A& a, StepRow& r) {
    io_all(a, r.worker, r.rank, r.scalar, r.loss_scale, r.epoch, r.row, r.extras);
  }

 private:
  [[nodiscard]] const SentStatistic* find(Sent what, std::span<const double> parameters) const;
};

struct StepSet {
  core::Mode mode = core::Mode::train;
  std::int64_t step = 0;
  std::int64_t after_train = INT64_MIN;     // of an evaluation: train step that had ended before it
  std::int64_t time = 0;                    // of its newest row, UTC ns
  std::uint32_t worker = Scope::kNoWorker;  // of a rule that judges workers one by one
  bool skipped = false;  // of such a rule: the worker's optimizer left this update out
  std::span<const StepRow> rows;
};

/// A label of a unit; its texts live during one call.
struct UnitLabel {
  std::string_view key;
  std::string_view value;
};

/// Where a rule puts its verdicts about a step.
class SetReport {
 public:
  SetReport(Scope& scope, const Place& place, const StepSet& set)
      : scope_(scope), place_(place), set_(set) {}
  [[nodiscard]] Scope& scope() const noexcept { return scope_; }
  /// `unit`: labels beside mode and worker, for instance {"tensor", name}; `name`: of the subject.
  void evaluated(const Labels& unit, std::string_view name, Verdict verdict,
                 Scope::Explain explain);
  void evaluated_as(std::span<const UnitLabel> unit, std::string_view name, Verdict verdict,
                    Scope::Explain explain);
  /// Nothing could be judged: why is in the outcome.
  void without_unit(EvaluationOutcome outcome) { scope_.counted(outcome); }
  /// For evidence: what the issue says of the tensor.
  [[nodiscard]] core::TensorRef tensor(const StepRow& row) const;

 private:
  Scope& scope_;
  const Place& place_;
  const StepSet& set_;
};

/// Rows that wait for their step, by (worker or none, mode, step).
class StepSets {
 public:
  struct Key {
    std::uint32_t worker = 0;
    std::uint8_t mode = 0;
    std::int64_t step = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Waiting {
    std::int64_t global_step = 0;
    std::int64_t time = 0;
    std::int64_t first_offset = INT64_MAX;
    std::int64_t last_offset = -1;
    std::int64_t after_train = INT64_MIN;  // last train step that a worker had ended before it
    bool skipped = false;
    std::vector<std::uint32_t> missing;  // ranks that lost frames of it
    std::vector<StepRow> rows;

    template <typename A>
    friend void io(A& a, Waiting& w) {
      io_all(a, w.global_step, w.time, w.first_offset, w.last_offset, w.after_train, w.skipped,
             w.missing, w.rows);
    }
  };
  using One = std::pair<Key, Waiting>;
  static constexpr std::size_t kMostRows = 1U << 18;  // of one rule and run

  /// `kept`: statistics that the rule reads beside the columns. False: too many rows wait already;
  /// the oldest step has to be judged as it is.
  bool add(const WorkerRows& from, bool per_worker, std::span<const Sent> kept, const Scope& scope);
  /// What the end of a worker's step says of its rows.
  void ended(const WorkerStep& step, bool per_worker, const Scope& scope);
  /// The worker began anew: what waits of it will come again, or belongs to steps that never were.
  void forget(std::uint32_t worker);
  /// The next step of `mode` (and `worker`) up to `step` that waits.
  std::optional<One> take(std::uint32_t worker, core::Mode mode, std::int64_t step);
  /// One of `mode` that came before train step `step` ended: once everybody has ended that, nobody
  /// can add to it.
  std::optional<One> take_before(core::Mode mode, std::int64_t step);
  /// The oldest of all.
  std::optional<One> take_any();
  /// The rows that were taken are judged: their memory is for a step to come.
  void recycle(std::vector<StepRow> rows);

  template <typename A>
  friend void io(A& a, StepSets& s) {
    io_all(a, s.waiting_, s.rows_);
  }

 private:
  static constexpr std::size_t kSpares = 2;

  One out(std::map<Key, Waiting>::iterator at);
  std::vector<StepRow> spare();
  void put_in_order(std::vector<StepRow>& rows);

  std::map<Key, Waiting> waiting_;
  std::uint64_t rows_ = 0;
  // Not in snapshots, to allocate and sort less:
  SpareNodes<std::map<Key, Waiting>> nodes_;
  std::vector<std::vector<StepRow>> spares_;  // empty, with room
  std::vector<std::uint32_t> order_;          // what sorted the last step; it mostly sorts the next
};

/// `Rule` has: Config; State, with io(), one per mode (and worker); kPerWorker; kSent, the
/// statistics beside the columns that it reads; judge(config, state, set, report); perhaps takes(config,
/// rows, scope): false of rows that nothing can follow from, which are then not kept; perhaps kJoinsModes:
/// one State for all modes. A State with `answers` (answers_so_far.h) fills the run card.
template <typename Rule>
struct StepSetMemory {
  StepSets sets;
  std::map<std::pair<std::uint32_t, std::uint8_t>, typename Rule::State> states;
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::int64_t> judged;  // newest step

  template <typename A>
  friend void io(A& a, StepSetMemory& m) {
    io_all(a, m.sets, m.states, m.judged);
  }
};

template <typename Rule>
class StepSetEvaluator : public EvaluatorOf<StepSetMemory<Rule>> {
 public:
  StepSetEvaluator(const typename Rule::Config& config, const Common& common)
      : config_(config), common_(common) {}

  void on_rows(const WorkerRows& rows, Scope& scope) override {
    if (!common_.wants_mode(rows.mode) || !common_.wants_step(rows.step)) return;
    if constexpr (requires { Rule::takes(config_, rows, scope); }) {
      if (!Rule::takes(config_, rows, scope)) return;
    }
    const auto done = this->state.judged.find(who(rows.worker, rows.mode));
    if (done != this->state.judged.end() && rows.step <= done->second) {
      scope.late(rows.scalar != nullptr ? 1 : rows.rows.size());
      return;
    }
    if (this->state.sets.add(rows, Rule::kPerWorker, Rule::kSent, scope)) return;
    scope.closed_early();
    if (auto oldest = this->state.sets.take_any()) judge(std::move(*oldest), scope);
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    this->state.sets.ended(step, Rule::kPerWorker, scope);
    if constexpr (Rule::kPerWorker) judge_up_to(step.worker, step.mode, step.step, scope);
  }
  void on_closed(core::Mode mode, std::int64_t step, Scope& scope) override {
    judge_up_to(Scope::kNoWorker, mode, step, scope);
    if (mode != core::Mode::train) return;
    for (const core::Mode other : {core::Mode::eval, core::Mode::predict}) {
      while (auto next = this->state.sets.take_before(other, step)) judge(std::move(*next), scope);
    }
  }
  void on_settled(core::Mode mode, std::int64_t step, Scope& scope) override {
    on_closed(mode, step, scope);
  }
  /// `Rule` may have summary(states, scope), by worker and mode: told at the end of the run; and unjudged(scope): why,
  /// where it could judge nothing.
  void on_end(Scope& scope) override {
    judge_rest(scope);
    if constexpr (requires { Rule::summary(this->state.states, scope); }) {
      scope.summary(Rule::summary(this->state.states, scope));
    } else if constexpr (kAnswers) {
      scope.summary(AnswersSoFar::of_all(this->state.states));
    }
    if constexpr (requires { Rule::unjudged(scope); }) {
      if (std::string why = Rule::unjudged(scope); !why.empty()) scope.unjudged(std::move(why));
    }
  }
  /// A worker that is judged by itself begins with nothing; a step of all that was judged stays so.
  void on_restart(std::uint32_t worker) override {
    this->state.sets.forget(worker);
    if constexpr (Rule::kPerWorker) {
      const auto of_it = [&](const auto& entry) { return entry.first.first == worker; };
      std::erase_if(this->state.states, of_it);
      std::erase_if(this->state.judged, of_it);
    }
  }

 protected:
  /// Steps that nobody has ended.
  void judge_rest(Scope& scope) {
    while (auto next = this->state.sets.take_any()) judge(std::move(*next), scope);
  }

 private:
  static constexpr bool kAnswers = requires(typename Rule::State & state) { state.answers.time; };

  static std::pair<std::uint32_t, std::uint8_t> who(std::uint32_t worker, core::Mode mode) {
    return {Rule::kPerWorker ? worker : Scope::kNoWorker, static_cast<std::uint8_t>(mode)};
  }
  void judge_up_to(std::uint32_t worker, core::Mode mode, std::int64_t step, Scope& scope) {
    while (auto next = this->state.sets.take(worker, mode, step)) judge(std::move(*next), scope);
  }
  void judge(StepSets::One one, Scope& scope) {
    auto& [key, waiting] = one;
    StepSet set;
    set.mode = static_cast<core::Mode>(key.mode);
    set.step = key.step;
    set.after_train = waiting.after_train;
    set.time = waiting.time;
    set.worker = key.worker;
    set.skipped = waiting.skipped;
    set.rows = waiting.rows;
    Place place = at_step(set.mode, set.step, waiting.global_step, waiting.time);
    place.first_offset = waiting.first_offset;
    place.last_offset = waiting.last_offset;
    place.partial = !waiting.missing.empty();
    place.missing_ranks = waiting.missing;
    SetReport report(scope, place, set);
    const auto unit = who(key.worker, set.mode);
    this->state.judged[unit] = key.step;
    auto owner = unit;
    if constexpr (requires { Rule::kJoinsModes; }) owner.second = UINT8_MAX;
    Rule::judge(config_, this->state.states[owner], set, report);
    if constexpr (kAnswers) {
      const std::int64_t update = set.mode == core::Mode::eval ? set.after_train : set.step;
      tell_answers(this->state.states, std::max(0.0, static_cast<double>(update) + 1), set.time,
                   scope);
    }
    this->state.sets.recycle(std::move(waiting.rows));
  }

  const typename Rule::Config& config_;  // of the program, which outlives its evaluators
  const Common& common_;
};

template <typename Rule>
class StepSetProgramOf : public Program {
 public:
  typename Rule::Config config;
  [[nodiscard]] TensorUse tensor_use() const noexcept override {
    if constexpr (requires { Rule::kTensorUse; }) return Rule::kTensorUse;
    return TensorUse::several;
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kRows | input::kStepEnds | (Rule::kPerWorker ? 0 : input::kClosedSteps);
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<StepSetEvaluator<Rule>>(config, common);
  }
};

/// Like read_row_rule, for rules of this shape.
template <typename Rule>
std::shared_ptr<const Program> read_step_set_rule(config::Reader& in, Preset preset) {
  return read_rule<Rule, StepSetProgramOf<Rule>>(in, preset);
}

}  // namespace tocsin::rules
