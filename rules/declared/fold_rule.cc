#include "rules/declared/fold_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "rules/declared/row_rule.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules::declared {
namespace {

/// A row with what its member of the group remembers.
struct Member {
  const StepRow* row = nullptr;
  std::uint64_t* memory = nullptr;
};

struct FoldConfig {
  Rule rule;
  bool folds_names = false;
  bool folds_workers = false;
  std::string_view name_label;  // of the unit: "tensor", "metric"; empty: steps have none
};

/// What across() makes of the members' numbers. Those that are not known are left out.
class Folded {
 public:
  explicit Folded(Formula::Fold::Kind kind) : kind_(kind) {}
  void add(double x, std::uint32_t worker) {
    if (std::isnan(x)) return;
    ++n_;
    const double off = x - mean_;
    mean_ += off / n_;
    m2_ += off * (x - mean_);
    least_ = std::min(least_, x);
    if (x > most_) {
      most_ = x;
      worker_ = worker;
    }
  }
  [[nodiscard]] std::uint32_t worker() const noexcept { return worker_; }
  [[nodiscard]] double result() const {
    using Kind = Formula::Fold::Kind;
    if (kind_ == Kind::count) return n_;
    if (n_ == 0) return std::nan("");
    switch (kind_) {
      case Kind::min:
        return least_;
      case Kind::max:
        return most_;
      case Kind::mean:
        return mean_;
      case Kind::std:
        return std::sqrt(m2_ / n_);
      default:
        return most_ - least_;
    }
  }

 private:
  Formula::Fold::Kind kind_;
  double n_ = 0;
  double mean_ = 0;
  double m2_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -std::numeric_limits<double>::infinity();
  std::uint32_t worker_ = Scope::kNoWorker;
};

struct Members {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::uint64_t>> memories;
  std::map<std::uint32_t, std::int64_t> trained;  // newest ended train step of each worker

  template <typename A>
  friend void io(A& a, Members& m) {
    io_all(a, m.memories, m.trained);
  }
};

template <bool PerWorker>
struct FoldRule {
  using Config = FoldConfig;
  using State = Members;
  static constexpr bool kPerWorker = PerWorker;
  // Which of them an expression asks for is known at run time only; what is not sent costs nothing.
  static constexpr std::array<Sent, 20> kSent{core::SparseStat::median,
                                              core::SparseStat::prod,
                                              core::SparseStat::p05,
                                              core::SparseStat::p25,
                                              core::SparseStat::p75,
                                              core::SparseStat::p95,
                                              core::SparseStat::delta_l2,
                                              core::SparseStat::delta_max_abs,
                                              core::SparseStat::delta_excess,
                                              core::SparseStat::prev_l2,
                                              core::SparseStat::delta_from_step,
                                              core::SparseStat::unit_count,
                                              core::SparseStat::unit_inactive_count,
                                              core::SparseStat::unit_saturated_count,
                                              core::SparseStat::abs_ge_count,
                                              core::SparseStat::depth,
                                              core::SparseStat::abs_min,
                                              core::SparseStat::abs_median,
                                              core::SparseStat::abs_prod,
                                              core::SparseStat::first_bad_index};

  static void judge(const FoldConfig& config, Members& state, const StepSet& set,
                    SetReport& report) {
    std::vector<Member> members;
    members.reserve(set.rows.size());
    for (const StepRow& row : set.rows) {
      auto& memory = state.memories[{row.name(), row.worker}];
      const Formula& formula = config.rule.formula;
      if (memory.size() != formula.sources[0].words) {
        memory.resize(formula.sources[0].words);
        begin(formula, 0, memory.data());
      }
      members.push_back({&row, memory.data()});
      const Row columns = columns_of(row);
      const Point point = point_of(row, set, columns, report.scope());
      arrives(formula, 0, memory.data(), point);
      add(formula, 0, memory.data(), point, false);
    }
    if (config.folds_names || config.name_label.empty()) {
      return judge_group(config, set, members, report);
    }
    // Rows come by worker: the same name is one group.
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return a.row->name() < b.row->name();
    });
    for (auto first = members.begin(); first != members.end();) {
      const auto last = std::find_if(first, members.end(), [&](const Member& one) {
        return one.row->name() != first->row->name();
      });
      judge_group(config, set, {&*first, static_cast<std::size_t>(last - first)}, report);
      first = last;
    }
  }

 private:
  static Row columns_of(const StepRow& row) {
    return {reinterpret_cast<const std::byte*>(&row.row), 1, 0};
  }
  static Point point_of(const StepRow& row, const StepSet& set, const Row& columns,
                        const Scope& scope) {
    Point point;
    point.row = &columns;
    point.kept = &row;
    point.value = row.row.sum;
    point.step = set.step;
    point.time = set.time;
    point.world_size = scope.world_size();
    return point;
  }

  static void judge_group(const FoldConfig& config, const StepSet& set,
                          std::span<const Member> members, SetReport& report) {
    const Rule& rule = config.rule;
    std::vector<double> folds;
    std::uint32_t greatest = Scope::kNoWorker;
    for (std::size_t f = 0; f < rule.formula.folds.size(); ++f) {
      Folded folded(rule.formula.folds[f].kind);
      for (const Member& member : members) {
        const Row columns = columns_of(*member.row);
        const Point point = point_of(*member.row, set, columns, report.scope());
        const std::uint64_t* const memory = member.memory;
        folded.add(run(rule.formula.folds[f].code, {&rule.formula, &point, &memory, nullptr}),
                   member.row->worker);
      }
      if (rule.argmax == f) greatest = folded.worker();
      folds.push_back(folded.result());
    }
    const Member& first = members.front();
    const Row columns = columns_of(*first.row);
    const Point point = point_of(*first.row, set, columns, report.scope());
    const std::uint64_t* const memory = first.memory;
    const Sight sight{&rule.formula, &point, &memory, folds.data()};
    const double answer = run(rule.formula.when, sight);
    const Verdict verdict = std::isnan(answer) ? kInsufficient : answer == 0 ? kOk : hit();
    Labels labels;
    std::string name;
    if (!config.folds_names && !config.name_label.empty()) {
      name = report.scope().text(first.row->name());
      labels.emplace_back(config.name_label, name);
    }
    report.evaluated(labels, name, verdict, [&](const Subject& subject, unsigned) {
      std::vector<double> numbers;
      numbers.reserve(rule.spoken.size());
      for (const Spoken& one : rule.spoken) numbers.push_back(run(one.code, sight));
      Finding out = tell(rule, numbers.data(), subject, [&](const std::string& label) {
        if (label == "argmax_worker") {
          return greatest == Scope::kNoWorker ? std::string("none")
                                              : report.scope().worker(greatest);
        }
        if (label == "worker") return subject.worker;
        if (label == "mode") return std::string(core::to_string(subject.mode));
        return subject.name;
      });
      const Span span = span_of(rule.formula, 0, memory, set.step);
      return out.since(span.first_step, span.points).with("members", members.size());
    });
  }
};

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

 private:
  Choice choice_;
};

/// Steps come as rows of one number, their duration, so that they wait like any others.
template <bool PerWorker>
class StepEvaluator final : public StepSetEvaluator<FoldRule<PerWorker>> {
 public:
  StepEvaluator(const FoldConfig& config, const Common& common, const Choice& choice)
      : StepSetEvaluator<FoldRule<PerWorker>>(config, common), choice_(choice) {}

  void on_rows(const WorkerRows&, Scope&) override {}
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    Candidate who = scope.who(step.worker);
    who.mode = step.mode;
    auto& trained =
        this->state.states[{Scope::kNoWorker, static_cast<std::uint8_t>(core::Mode::train)}]
            .trained;
    if (step.mode == core::Mode::train) trained[step.worker] = step.step;
    if (choice_.matches_step(who)) {
      core::SummaryRow row;
      row.name = 0;
      row.count = 1;
      // A worker that does not time its steps says nothing of their duration.
      row.sum =
          step.end > step.start ? static_cast<double>(step.end - step.start) / 1e9 : std::nan("");
      WorkerRows rows;
      rows.worker = step.worker;
      rows.mode = step.mode;
      rows.step = step.step;
      rows.global_step = step.global_step;
      rows.time = step.end;
      const auto known = trained.find(step.worker);
      rows.after_train = known == trained.end() ? INT64_MIN : known->second;
      rows.offset = scope.offset();
      rows.scalar = &row;
      StepSetEvaluator<FoldRule<PerWorker>>::on_rows(rows, scope);
    }
    StepSetEvaluator<FoldRule<PerWorker>>::on_step_end(step, scope);
  }

 private:
  const Choice& choice_;
};

template <bool PerWorker>
class DeclaredSteps final : public StepSetProgramOf<FoldRule<PerWorker>> {
 public:
  explicit DeclaredSteps(Choice choice) : choice_(std::move(choice)) {
    this->common.mode_mask = choice_.modes();
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kStepEnds | (PerWorker ? 0 : input::kClosedSteps);
  }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<StepEvaluator<PerWorker>>(this->config, this->common, choice_);
  }

 private:
  Choice choice_;
};

template <typename ProgramType>
std::shared_ptr<Program> made(FoldConfig config, Choice choice) {
  auto program = std::make_shared<ProgramType>(std::move(choice));
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
  config.folds_workers = folds("worker");
  config.folds_names = folds("tensor") || folds("metric");
  if (source == Selector::Source::metric) config.name_label = "metric";
  if (source == Selector::Source::tensor || source == Selector::Source::collection) {
    config.name_label = "tensor";
  }
  const bool per_worker = !config.folds_workers;
  config.rule = std::move(rule);
  if (source == Selector::Source::step) {
    return per_worker ? made<DeclaredSteps<true>>(std::move(config), std::move(choice))
                      : made<DeclaredSteps<false>>(std::move(config), std::move(choice));
  }
  return per_worker ? made<FoldedRows<true>>(std::move(config), std::move(choice))
                    : made<FoldedRows<false>>(std::move(config), std::move(choice));
}

}  // namespace tocsin::rules::declared
