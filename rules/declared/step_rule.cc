#include "rules/declared/step_rule.h"

#include <cmath>
#include <utility>

namespace tocsin::rules::declared {
namespace {

/// Steps, and what spans of one name took in a step, come as rows of one number, so that they wait
/// like any others.
template <bool PerWorker>
class TimedPoints : public FoldEvaluator<PerWorker> {
 public:
  TimedPoints(const FoldConfig& config, const Common& common, const Choice& choice)
      : FoldEvaluator<PerWorker>(config, common), choice_(choice) {}

  void on_rows(const WorkerRows&, Scope&) override {}
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    auto& ended = this->of_all(step.mode).ended;
    const auto newest = ended.try_emplace(step.worker, step.step).first;
    newest->second = std::max(newest->second, step.step);
    points(step, scope);
    FoldEvaluator<PerWorker>::on_step_end(step, scope);
  }
  void on_restart(std::uint32_t worker) override {
    FoldEvaluator<PerWorker>::on_restart(worker);
    for (const core::Mode mode :
         {core::Mode::global, core::Mode::train, core::Mode::eval, core::Mode::predict}) {
      Members& members = this->of_all(mode);
      members.ended.erase(worker);
      std::erase_if(members.spent, [&](const auto& one) { return one.first.worker == worker; });
    }
  }

 protected:
  virtual void points(const WorkerStep& step, Scope& scope) = 0;

  void add(const WorkerStep& step, std::uint64_t name, std::uint64_t count, double seconds,
           Scope& scope) {
    core::SummaryRow row;
    row.name = name;
    row.count = count;
    row.sum = seconds;
    WorkerRows rows = rows_of(step);
    const auto& trained = this->of_all(core::Mode::train).ended;
    const auto known = trained.find(step.worker);
    rows.after_train = known == trained.end() ? INT64_MIN : known->second;
    rows.offset = scope.offset();
    rows.scalar = &row;
    FoldEvaluator<PerWorker>::on_rows(rows, scope);
  }

  const Choice& choice_;
};

template <bool PerWorker>
class StepEvaluator final : public TimedPoints<PerWorker> {
 public:
  using TimedPoints<PerWorker>::TimedPoints;

 private:
  void points(const WorkerStep& step, Scope& scope) override {
    Candidate who = scope.who(step.worker);
    who.mode = step.mode;
    if (!this->choice_.matches_step(who)) return;
    // A worker that does not time its steps says nothing of their duration.
    const double seconds =
        step.end > step.start ? static_cast<double>(step.end - step.start) / 1e9 : std::nan("");
    this->add(step, 0, 1, seconds, scope);
  }
};

/// A step without spans of a name has no point of it.
template <bool PerWorker>
class SpanEvaluator final : public TimedPoints<PerWorker> {
 public:
  using TimedPoints<PerWorker>::TimedPoints;

  void on_spans(std::uint32_t worker, const core::FrameView& frame, Scope& scope) override {
    Members& members = this->of_all(frame.header().mode);
    const auto ended = members.ended.find(worker);
    for (std::size_t i = 0; i < frame.rows(); ++i) {
      const core::SpanRow span = frame.span(i);
      if (span.duration < 0) continue;  // an instant takes no time
      if (ended != members.ended.end() && span.step <= ended->second) {
        scope.late(1);
        continue;
      }
      Members::Spent& spent = members.spans.at(members.spent, {worker, span.step, span.name});
      spent.seconds += static_cast<double>(span.duration) / 1e9;
      ++spent.count;
    }
  }

 private:
  void points(const WorkerStep& step, Scope& scope) override {
    Members& members = this->of_all(step.mode);
    Candidate who = scope.who(step.worker);
    who.mode = step.mode;
    // Steps whose end was lost are over as well, and nobody knows how long they were.
    auto at = members.spent.lower_bound({step.worker, INT64_MIN, 0});
    while (at != members.spent.end() && at->first.worker == step.worker &&
           at->first.step <= step.step) {
      const auto [span, one] = *at;
      at = members.spans.erase(members.spent, at);
      if (span.step != step.step) continue;
      who.name = scope.find(span.name);
      if (this->choice_.matches_span(who) == Match::yes) {
        this->add(step, span.name, one.count, one.seconds, scope);
      }
    }
  }
};

template <bool PerWorker, template <bool> class EvaluatorType, std::uint32_t kInputs>
class TimedProgram final : public StepSetProgramOf<FoldRule<PerWorker>> {
 public:
  explicit TimedProgram(Choice choice) : choice_(std::move(choice)) {
    this->common.mode_mask = choice_.modes();
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return kInputs | (PerWorker ? 0 : input::kClosedSteps);
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<EvaluatorType<PerWorker>>(this->config, this->common, choice_);
  }

 private:
  Choice choice_;
};

template <bool PerWorker>
std::shared_ptr<Program> made(FoldConfig config, Choice choice) {
  const auto with = [&](auto program) -> std::shared_ptr<Program> {
    program->config = std::move(config);
    return program;
  };
  if (config.rule.selected.front().selector.source == Selector::Source::span) {
    return with(
        std::make_shared<TimedProgram<PerWorker, SpanEvaluator, input::kStepEnds | input::kSpans>>(
            std::move(choice)));
  }
  return with(std::make_shared<TimedProgram<PerWorker, StepEvaluator, input::kStepEnds>>(
      std::move(choice)));
}

}  // namespace

std::shared_ptr<Program> step_program(FoldConfig config, bool per_worker, Choice choice) {
  return per_worker ? made<true>(std::move(config), std::move(choice))
                    : made<false>(std::move(config), std::move(choice));
}

}  // namespace tocsin::rules::declared
