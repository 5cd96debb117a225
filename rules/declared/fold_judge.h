// How a declarative rule judges what belongs to one completed step: members with a memory each, folded
// over workers or tensors, or one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/declared/choice.h"
#include "rules/declared/compile.h"
#include "rules/declared/hearing.h"
#include "rules/declared/row_rule.h"
#include "rules/declared/step_axis.h"
#include "rules/evaluate/spare_nodes.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules::declared {

/// Who is folded, with what it remembers. `row`: its own at this step; nullptr: it is judged by its memory.
struct Member {
  std::uint64_t name = 0;
  std::uint32_t worker = 0;
  const StepRow* row = nullptr;
  std::uint64_t* memory = nullptr;
};

struct FoldConfig {
  Rule rule;
  bool folds_names = false;
  bool folds_workers = false;
  bool by_worker = false;       // rows of all workers wait together, and each is judged by itself
  std::string_view name_label;  // of the unit: "tensor", "metric", "span"; empty: steps have none
};

/// What across() makes of the members' numbers. Those that are not finite are left out, as of every
/// aggregate: what one of them did to a mean would depend on the order of the members.
class Folded {
 public:
  explicit Folded(Formula::Fold::Kind kind) : kind_(kind) {}
  void add(double x, std::uint32_t worker) {
    if (!std::isfinite(x)) return;
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
    using Way = Formula::Fold::Kind;
    if (kind_ == Way::count) return n_;
    if (n_ == 0) return std::nan("");
    switch (kind_) {
      case Way::min:
        return least_;
      case Way::max:
        return most_;
      case Way::mean:
        return mean_;
      case Way::std:
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

/// What makes a unit: its name and worker, 0 where these are folded.
using MemberGroup = std::pair<std::uint64_t, std::uint32_t>;

/// What judging a step needs for the time being, kept for the next one.
struct FoldScratch {
  std::vector<Member> members;
  std::vector<MemberGroup> judged;  // whose piece was over before this step
  std::vector<double> fired;
  std::vector<double> folds;
};

/// Of one mode. `ended` and `spent` stand with those of all workers.
struct Members {
  struct SpanOf {
    std::uint32_t worker = 0;
    std::int64_t step = 0;
    std::uint64_t name = 0;
    friend auto operator<=>(const SpanOf&, const SpanOf&) = default;

    template <typename A>
    friend void io(A& a, SpanOf& s) {
      io_all(a, s.worker, s.step, s.name);
    }
  };
  /// Seconds and number of the spans of one name.
  struct Spent {
    double seconds = 0;
    std::uint64_t count = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::uint64_t>> memories;
  std::map<std::uint32_t, std::int64_t> ended;  // newest ended step of each worker
  std::map<SpanOf, Spent> spent;                // of steps that are open
  Heard heard;
  StepAxis axis;
  // Not in snapshots:
  FoldScratch scratch;
  SpareNodes<std::map<SpanOf, Spent>, 64> spans;

  template <typename A>
  friend void io(A& a, Members& m) {
    io_all(a, m.memories, m.ended, m.spent, m.heard, m.axis);
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
    const Formula& formula = config.rule.formula;
    std::vector<Member>& members = state.scratch.members;
    state.heard.at(formula, state.axis, StepAxis::place_of(set.mode, set.step, set.after_train),
                   state.scratch.fired);
    state.scratch.judged.clear();
    if (formula.cut()) judge_pieces(config, state, set, beyond, report);
    members.clear();
    for (const StepRow& row : set.rows) {
      auto& memory = state.memories[{row.name(), row.worker}];
      if (memory.size() != formula.sources[0].words) {
        memory.resize(formula.sources[0].words);
        begin(formula, 0, memory.data());
      }
      members.push_back({row.name(), row.worker, &row, memory.data()});
      const Row columns = columns_of(&row);
      const Point point = point_of(&row, set, columns, report.scope());
      arrives(formula, 0, memory.data(), point);
      add(formula, 0, memory.data(), point, formula.cut());
    }
    if (formula.cut()) return judge_pieces(config, state, set, completes, report);
    each_group(config, members, [&](std::span<const Member> group) {
      judge_group(config, set, group, state.scratch, report);
    });
  }

 private:
  static MemberGroup group_of(const FoldConfig& config, const Member& one) {
    const bool by_name = !config.folds_names && !config.name_label.empty();
    return {by_name ? one.name : 0, config.by_worker ? one.worker : 0};
  }

  // Rows come by worker: what belongs together is brought together.
  template <typename Call>
  static void each_group(const FoldConfig& config, std::vector<Member>& members, Call call) {
    const auto before = [&](const Member& a, const Member& b) {
      return group_of(config, a) < group_of(config, b);
    };
    if (!std::is_sorted(members.begin(), members.end(), before)) {
      std::stable_sort(members.begin(), members.end(), before);
    }
    for (auto first = members.begin(); first != members.end();) {
      const auto last = std::find_if(first, members.end(), [&](const Member& one) {
        return group_of(config, one) != group_of(config, *first);
      });
      call(std::span<const Member>(&*first, static_cast<std::size_t>(last - first)));
      first = last;
    }
  }

  // Pieces lie on one grid, or end by a pause of all: so all members of a unit are judged together, also those that
  // have nothing at this step. Who has had nothing in the piece is no member of it.
  template <typename Over>
  static void judge_pieces(const FoldConfig& config, Members& state, const StepSet& set, Over over,
                           SetReport& report) {
    const Formula& formula = config.rule.formula;
    FoldScratch& scratch = state.scratch;
    scratch.members.clear();
    for (auto& [who, memory] : state.memories) {
      if (open(formula, memory.data())) {
        scratch.members.push_back({who.first, who.second, nullptr, memory.data()});
      }
    }
    Point point;
    point.step = set.step;
    point.time = set.time;
    each_group(config, scratch.members, [&](std::span<const Member> group) {
      const bool all = std::all_of(group.begin(), group.end(), [&](const Member& one) {
        return over(formula, one.memory, point);
      });
      const MemberGroup which = group_of(config, group.front());
      std::vector<MemberGroup>& judged = scratch.judged;
      // Once per step: the piece of one step that ends what was before is judged with the next one.
      if (!all || std::find(judged.begin(), judged.end(), which) != judged.end()) return;
      judged.push_back(which);
      for (const Member& one : group) close(formula, 0, one.memory);
      judge_group(config, set, group, scratch, report);
      for (const Member& one : group) turn(formula, 0, one.memory);
    });
  }

  static Row columns_of(const StepRow* row) {
    static constexpr core::SummaryRow kNone{};
    return {reinterpret_cast<const std::byte*>(row == nullptr ? &kNone : &row->row), 1, 0};
  }
  static Point point_of(const StepRow* row, const StepSet& set, const Row& columns,
                        const Scope& scope) {
    Point point;
    point.row = &columns;
    point.step = set.step;
    point.time = set.time;
    point.world_size = scope.world_size();
    if (row == nullptr) return point;
    point.kept = row;
    point.value = row->row.sum;
    point.epoch = row->epoch;
    return point;
  }

  static void judge_group(const FoldConfig& config, const StepSet& set,
                          std::span<const Member> members, FoldScratch& scratch,
                          SetReport& report) {
    const Rule& rule = config.rule;
    std::vector<double>& folds = scratch.folds;
    folds.clear();
    std::uint32_t greatest = Scope::kNoWorker;
    for (std::size_t f = 0; f < rule.formula.folds.size(); ++f) {
      Folded folded(rule.formula.folds[f].kind);
      for (const Member& member : members) {
        const Row columns = columns_of(member.row);
        const Point point = point_of(member.row, set, columns, report.scope());
        const std::uint64_t* const memory = member.memory;
        folded.add(run(rule.formula.folds[f].code, {&rule.formula, &point, &memory, nullptr}),
                   member.worker);
      }
      if (rule.argmax == f) greatest = folded.worker();
      folds.push_back(folded.result());
    }
    const Member& first = members.front();
    const Row columns = columns_of(first.row);
    const Point point = point_of(first.row, set, columns, report.scope());
    const std::uint64_t* const memory = first.memory;
    const Sight sight{&rule.formula, &point, &memory, folds.data(), scratch.fired.data()};
    const Verdict verdict = verdict_of(run(rule.formula.when, sight));
    std::array<UnitLabel, 2> labels;
    std::size_t known = 0;
    std::string hash;  // where no dictionary names it
    std::string_view name;
    if (!config.folds_names && !config.name_label.empty()) {
      if (const Name* entry = report.scope().find(first.name)) {
        name = entry->text;
      } else {
        hash = report.scope().text(first.name);
        name = hash;
      }
      labels[known++] = {config.name_label, name};
    }
    std::string_view worker;
    if (config.by_worker) {
      worker = report.scope().who(first.worker).worker;
      labels[known++] = {"worker", worker};
      if (name.empty()) name = worker;
    }
    report.evaluated_as(std::span(labels).first(known), name, verdict,
                        [&](const Subject& subject, unsigned) {
                          Finding out = tell(rule, sight, subject, [&](const std::string& label) {
                            if (label == "argmax_worker") {
                              return greatest == Scope::kNoWorker ? std::string("none")
                                                                  : report.scope().worker(greatest);
                            }
                            if (label == "worker")
                              return config.by_worker ? std::string(worker) : subject.worker;
                            if (label == "mode") return std::string(core::to_string(subject.mode));
                            return subject.name;
                          });
                          const Span span = span_of(rule.formula, 0, memory, set.step);
                          if (!config.by_worker) out.with("members", members.size());
                          return out.since(span.first_step, span.points);
                        });
  }
};

/// Every mode hears of the others' hits by itself: each is judged as far as it has come.
template <bool PerWorker>
class FoldEvaluator : public StepSetEvaluator<FoldRule<PerWorker>> {
 public:
  FoldEvaluator(const FoldConfig& config, const Common& common)
      : StepSetEvaluator<FoldRule<PerWorker>>(config, common),
        hears_(!config.rule.formula.hearings.empty()) {}

  void on_fired(std::size_t which, const Place& place, const Labels&) override {
    each_mode([&](Members& members) {
      members.heard.add(which, place.mode.value_or(core::Mode::global), place.step);
    });
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    if (hears_) each_mode([&](Members& members) { members.axis.ended(step); });
    StepSetEvaluator<FoldRule<PerWorker>>::on_step_end(step, scope);
  }
  void on_settled(core::Mode mode, std::int64_t step, Scope& scope) override {
    StepSetEvaluator<FoldRule<PerWorker>>::on_closed(mode, step, scope);
    each_mode([&](Members& members) {
      if (const auto place = members.axis.place(mode, step)) {
        members.heard.settled(members.axis, *place);
        members.axis.settled(*place);
      }
    });
  }
  void on_restart(std::uint32_t worker) override {
    StepSetEvaluator<FoldRule<PerWorker>>::on_restart(worker);
    each_mode([&](Members& members) { members.axis.restarted(worker); });
  }

 protected:
  /// What is kept of a mode for all workers together.
  Members& of_all(core::Mode mode) {
    return this->state.states[{Scope::kNoWorker, static_cast<std::uint8_t>(mode)}];
  }

 private:
  template <typename Call>
  void each_mode(Call call) {
    for (const core::Mode mode :
         {core::Mode::global, core::Mode::train, core::Mode::eval, core::Mode::predict}) {
      call(of_all(mode));
    }
  }

  bool hears_;
};

}  // namespace tocsin::rules::declared
