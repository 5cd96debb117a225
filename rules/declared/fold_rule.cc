#include "rules/declared/fold_rule.h"

#include <algorithm>
#include <utility>

#include "rules/declared/fold_judge.h"
#include "rules/declared/step_rule.h"

namespace tocsin::rules::declared {
namespace {

/// Rows of tensors and scalars.
template <bool PerWorker>
class FoldedRows final : public StepSetProgramOf<FoldRule<PerWorker>> {
 public:
  explicit FoldedRows(Choice choice) : choice_(std::move(choice)) {
    this->common.mode_mask = choice_.modes();
  }
  [[nodiscard]] Match selects(const Candidate& candidate) const override {
    return choice_.matches(candidate);
  }
  [[nodiscard]] TensorUse tensor_use() const noexcept override {
    const bool alone = !this->config.folds_names && this->config.rule.formula.hearings.empty();
    return alone ? TensorUse::one : TensorUse::several;
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<FoldEvaluator<PerWorker>>(this->config, this->common);
  }

 private:
  Choice choice_;
};

template <bool PerWorker>
std::shared_ptr<Program> made(FoldConfig config, Choice choice) {
  auto program = std::make_shared<FoldedRows<PerWorker>>(std::move(choice));
  program->config = std::move(config);
  return program;
}

}  // namespace

std::shared_ptr<Program> fold_program(Rule rule, Choice choice) {
  FoldConfig config;
  const Selector::Source source = rule.selected.front().selector.source;
  const auto folds = [&](std::string_view label) {
    return std::find(rule.folded.begin(), rule.folded.end(), label) != rule.folded.end();
  };
  const bool follows = !rule.formula.hearings.empty();
  config.folds_workers = folds("worker");
  config.folds_names = folds("tensor") || folds("metric") || folds("span");
  if (source == Selector::Source::metric) config.name_label = "metric";
  if (source == Selector::Source::span) config.name_label = "span";
  if (source == Selector::Source::tensor || source == Selector::Source::collection) {
    config.name_label = "tensor";
  }
  // What other rules say of a step is known when everybody has ended it.
  const bool per_worker = !config.folds_workers && !follows;
  config.by_worker = follows && !config.folds_workers;
  config.rule = std::move(rule);
  if (source == Selector::Source::step || source == Selector::Source::span) {
    return step_program(std::move(config), per_worker, std::move(choice));
  }
  return per_worker ? made<true>(std::move(config), std::move(choice))
                    : made<false>(std::move(config), std::move(choice));
}

}  // namespace tocsin::rules::declared
