// Rules of all rows of a step, through one that says what it was given: what belongs to a step, when
// it is judged, and that neither the order of workers' records nor a kill changes it.
#include "rules/evaluate/step_set.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/rules/state_topic.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

/// Fires at every step and tells all its rows.
template <bool kEach>
struct Teller {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = kEach;
  static constexpr Sent kSent[] = {core::SparseStat::p05, core::VectorStat::class_counts};
  struct Config {};
  struct State {
    std::int64_t steps = 0;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.steps);
    }
  };

  static void judge(const Config&, State& state, const StepSet& set, SetReport& report) {
    ++state.steps;
    std::string text = sentence_of(state, set);
    for (const StepRow& row : set.rows) {
      text += " " + std::to_string(row.rank) + ":" + report.scope().text(row.name()) + "=" +
              figure(row.row.sum);
      if (const auto p05 = row.statistic(core::SparseStat::p05)) text += "/" + figure(*p05);
      const auto* counts = row.vector(core::VectorStat::class_counts);
      for (std::size_t i = 0; counts != nullptr && i < counts->size(); ++i) {
        text += "," + figure((*counts)[i]);
      }
    }
    report.evaluated({}, "all", hit(), [&](const Subject&, unsigned) {
      return Finding::that("rows", static_cast<double>(set.rows.size())).says(text);
    });
  }
  static std::string sentence_of(const State& state, const StepSet& set) {
    return "#" + std::to_string(state.steps) + " " + std::string(core::to_string(set.mode)) + " " +
           std::to_string(set.step) + (set.skipped ? " skipped:" : ":");
  }
};

template <bool kEach>
RulesConfig telling() {
  auto program = std::make_shared<StepSetProgramOf<Teller<kEach>>>();
  program->selection.add_all();
  program->common.cooldown = {};
  RulesConfig out;
  RuleSettings& rule = out.rules.emplace_back();
  rule.name = rule.type = "teller";
  rule.program = std::move(program);
  return out;
}

struct Told {
  RuleHarness rule;
  explicit Told(RulesConfig rules) : rule(std::move(rules), {}) {}
  std::vector<std::string> steps() {
    std::vector<std::string> out;
    for (const core::Issue& issue : rule.firing()) {
      if (issue.rule == "teller") out.push_back(issue.summary);
    }
    return out;
  }
};

FakeWorker worker_of_two(std::uint32_t rank) { return FakeWorker("digits", "two", rank, 2); }

core::SummaryRow sum(const std::string& name, double value) {
  return summarize({name, {value}, Role::weight});
}

const std::vector<Entry> kNames = {{core::DictionaryType::tensor, "a"},
                                   {core::DictionaryType::tensor, "b"},
                                   {core::DictionaryType::scalar, "x"}};
// Rows stand by the hashes of their names.
const bool kAFirst = core::name_hash("a") < core::name_hash("b");

TEST(StepSet, OfAllWorkersStandsByRankThenName) {
  Told told(telling<false>());
  FakeWorker zero = worker_of_two(0);
  FakeWorker one = worker_of_two(1);
  told.rule.feed(zero.dictionary(kNames));
  told.rule.feed(one.summary(Mode::train, 0, {sum("b", 4), sum("a", 3)}));
  told.rule.feed(one.step_end(Mode::train, 0));
  told.rule.feed(zero.summary(Mode::train, 0, {sum("a", 1)}));
  told.rule.feed(zero.summary(Mode::train, 0, {sum("b", 2)}));
  EXPECT_TRUE(told.steps().empty()) << "one worker has not ended the step";
  told.rule.feed(zero.step_end(Mode::train, 0));
  EXPECT_EQ(told.steps(),
            std::vector<std::string>{kAFirst ? "#1 train 0: 0:a=1 0:b=2 1:a=3 1:b=4"
                                             : "#1 train 0: 0:b=2 0:a=1 1:b=4 1:a=3"});
}

TEST(StepSet, OfOneWorkerWaitsForNobodyElse) {
  Told told(telling<true>());
  FakeWorker zero = worker_of_two(0);
  FakeWorker one = worker_of_two(1);
  told.rule.feed(zero.dictionary(kNames));
  told.rule.feed(one.summary(Mode::train, 0, {sum("a", 3)}));
  told.rule.feed(zero.summary(Mode::train, 0, {sum("a", 1)}));
  told.rule.feed(one.step_end(Mode::train, 0, core::meta::kOptimizerSkipped));
  EXPECT_EQ(told.steps(), std::vector<std::string>{"#1 train 0 skipped: 1:a=3"});
  told.rule.feed(zero.step_end(Mode::train, 0));
  EXPECT_EQ(told.steps().back(), "#1 train 0: 0:a=1") << "its own state";
  EXPECT_EQ(told.rule.firing().back().labels.get("worker"), "worker_0");
}

TEST(StepSet, KeepsTheStatisticsItsRuleReadsAndScalars) {
  Told told(telling<true>());
  FakeWorker worker;
  told.rule.feed(worker.dictionary(kNames));
  told.rule.feed(worker.scalars(Mode::train, {{"x", 0, 7}}));
  told.rule.feed(worker.summary(
      Mode::train, 0, {sum("c", 0), sum("a", 1)},
      {{core::SparseStat::p05, 1, 0.5}, {core::SparseStat::p95, 1, 9}},
      {{core::VectorStat::class_counts, 1, {3, 4}}, {core::VectorStat::class_correct, 1, {1, 1}}}));
  told.rule.feed(worker.step_end(Mode::train, 0));
  ASSERT_EQ(told.steps().size(), 1U);
  EXPECT_NE(told.steps()[0].find("0:a=1/0.5,3,4"), std::string::npos) << told.steps()[0];
  EXPECT_NE(told.steps()[0].find("0:x=7"), std::string::npos) << told.steps()[0];
}

TEST(StepSet, RowsThatComeAfterTheirStepAreLeftOutAndCounted) {
  Told told(telling<false>());
  FakeWorker zero = worker_of_two(0);
  FakeWorker one = worker_of_two(1);
  told.rule.feed(zero.dictionary(kNames));
  for (FakeWorker* worker : {&zero, &one}) {
    told.rule.feed(worker->summary(Mode::train, 0, {sum("a", 1)}));
    told.rule.feed(worker->step_end(Mode::train, 0));
  }
  ASSERT_EQ(told.steps().size(), 1U);
  told.rule.feed(one.summary(Mode::train, 0, {sum("b", 1), sum("c", 1)}));
  told.rule.end_of_input();
  EXPECT_EQ(told.steps().size(), 1U);
  EXPECT_EQ(told.rule.engine().stats().late_rows, 2U);
}

TEST(StepSet, AStepWithoutAnEndIsJudgedWithTheNextOrAtTheEnd) {
  Told told(telling<true>());
  FakeWorker worker;
  told.rule.feed(worker.dictionary(kNames));
  told.rule.feed(worker.summary(Mode::train, 0, {sum("a", 1)}));
  told.rule.feed(worker.summary(Mode::train, 1, {sum("a", 2)}));
  told.rule.feed(worker.step_end(Mode::train, 1));
  told.rule.feed(worker.summary(Mode::train, 2, {sum("a", 3)}));
  told.rule.feed(worker.end());
  EXPECT_EQ(told.steps(), (std::vector<std::string>{"#1 train 0: 0:a=1", "#2 train 1: 0:a=2",
                                                    "#3 train 2: 0:a=3"}));
}

TEST(StepSet, EvaluationsOfATrainingAreJudgedWhenTheNextTrainStepIsOver) {
  Told told(telling<false>());
  FakeWorker zero = worker_of_two(0);
  FakeWorker one = worker_of_two(1);
  told.rule.feed(zero.dictionary(kNames));
  for (FakeWorker* worker : {&zero, &one}) told.rule.feed(worker->step_end(Mode::train, 0));
  for (FakeWorker* worker : {&zero, &one}) {
    told.rule.feed(worker->summary(Mode::eval, 0, {sum("a", 1)}));
    told.rule.feed(worker->step_end(Mode::eval, 0));
  }
  EXPECT_TRUE(told.steps().empty());
  for (FakeWorker* worker : {&zero, &one}) told.rule.feed(worker->step_end(Mode::train, 1));
  EXPECT_EQ(told.steps(), std::vector<std::string>{"#1 eval 0: 0:a=1 1:a=1"});
}

TEST(StepSet, WithoutTrainingTheFirstEvaluationWaitsForAllWorkersToo) {
  Told told(telling<false>());
  FakeWorker zero = worker_of_two(0);
  FakeWorker one = worker_of_two(1);
  told.rule.feed(zero.dictionary(kNames));
  for (FakeWorker* worker : {&zero, &one}) {
    EXPECT_TRUE(told.steps().empty());
    told.rule.feed(worker->summary(Mode::eval, 0, {sum("a", 1)}));
    told.rule.feed(worker->step_end(Mode::eval, 0));
  }
  EXPECT_EQ(told.steps(), std::vector<std::string>{"#1 eval 0: 0:a=1 1:a=1"});
}

TEST(StepSet, LostFramesMakeTheStepPartial) {
  Told told(telling<false>());
  FakeWorker zero = worker_of_two(0);
  FakeWorker one = worker_of_two(1);
  told.rule.feed(zero.dictionary(kNames));
  for (FakeWorker* worker : {&zero, &one}) {
    told.rule.feed(worker->summary(Mode::train, 0, {sum("a", 1)}));
    if (worker == &one) ++worker->header.sequence;
    told.rule.feed(worker->step_end(Mode::train, 0));
  }
  ASSERT_EQ(told.steps().size(), 1U);
  for (const core::Issue& issue : told.rule.firing()) {
    if (issue.rule != "teller") continue;
    EXPECT_TRUE(issue.evidence.window.partial);
    EXPECT_EQ(issue.evidence.window.missing_ranks, std::vector<std::uint32_t>{1});
  }
}

TEST(StepSet, AWorkerThatBeginsAnewLeavesNothingBehind) {
  Told each(telling<true>());
  Told all(telling<false>());
  for (Told* told : {&each, &all}) {
    FakeWorker worker;
    told->rule.feed(worker.dictionary(kNames));
    told->rule.feed(worker.summary(Mode::train, 5, {sum("a", 1)}));
    told->rule.feed(worker.step_end(Mode::train, 5));
    told->rule.feed(worker.summary(Mode::train, 6, {sum("a", 2)}));  // and dies
    worker.header.incarnation += 1;
    worker.header.sequence = 0;
    for (const std::int64_t step : {5, 6}) {
      told->rule.feed(worker.summary(Mode::train, step, {sum("a", 3)}));
      told->rule.feed(worker.step_end(Mode::train, step));
    }
  }
  EXPECT_EQ(each.steps(), (std::vector<std::string>{"#1 train 5: 0:a=1", "#2 train 6: 0:a=3"}))
      << "the second step 5 is judged, by a new state, and would have the id of the first";
  EXPECT_EQ(all.steps(), (std::vector<std::string>{"#1 train 5: 0:a=1", "#2 train 6: 0:a=3"}))
      << "a closed step is never reopened";
  EXPECT_EQ(all.rule.engine().stats().late_rows, 1U);
}

TEST(StepSet, TooMuchThatWaitsClosesTheOldestStepEarlyAndSaysSo) {
  Told told(telling<true>());
  FakeWorker worker;
  std::vector<core::SummaryRow> rows;
  for (std::uint64_t i = 0; i < 7000; ++i) {
    rows.push_back(sum("a", 1));
    rows.back().name = i + 1;
  }
  std::int64_t step = 0;
  for (std::size_t sent = 0; sent <= StepSets::kMostRows; sent += rows.size()) {
    EXPECT_TRUE(told.rule.firing().empty());
    told.rule.feed(worker.summary(Mode::train, step++, rows));
  }
  ASSERT_EQ(told.rule.firing().size(), 1U);
  EXPECT_EQ(told.rule.firing()[0].step, 0);
  EXPECT_EQ(told.rule.engine().stats().open_steps_closed, 1U);
}

template <bool kEach>
std::vector<std::string> told_by(const std::vector<OwnedFrame>& frames) {
  Told told(telling<kEach>());
  for (const OwnedFrame& frame : frames) told.rule.feed(frame);
  std::vector<std::string> out = told.steps();
  for (const std::string& id : told.rule.ids()) out.push_back(id);
  if (kEach) std::sort(out.begin(), out.end());
  return out;
}

RC_GTEST_PROP(StepSet, TheOrderOfWorkersRecordsChangesNothing,
              (std::vector<int> one, std::vector<int> two, const std::vector<int>& order)) {
  one.resize(std::min<std::size_t>(one.size(), 12));
  two.resize(one.size());
  const std::vector<std::vector<OwnedFrame>> workers{story("a", 0, 2, one), story("a", 1, 2, two)};
  const auto calm = interleave(workers, {});
  const auto mixed = interleave(workers, order);
  RC_ASSERT(told_by<false>(mixed) == told_by<false>(calm));
  RC_ASSERT(told_by<true>(mixed) == told_by<true>(calm));
}

template <bool kEach>
std::vector<std::string> played(const std::vector<OwnedFrame>& frames, bool kills) {
  StateTopic topic(telling<kEach>());
  std::vector<bool> killed(frames.size());
  while (topic.next() < static_cast<std::int64_t>(frames.size())) {
    const auto i = static_cast<std::size_t>(topic.next());
    topic.feed(frames[i]);
    if (i % 3 == 0) topic.piece(i % 2 == 0 ? 1 : kWhole);
    if (i % 5 != 4) topic.commit();
    if (kills && i % 4 == 1 && !killed[i]) {
      killed[i] = true;
      topic.restart();
    }
  }
  topic.commit();
  return topic.told();
}

RC_GTEST_PROP(StepSet, KilledAtManyPointsTellsWhatWouldHaveBeenTold,
              (std::vector<int> one, std::vector<int> two, const std::vector<int>& order)) {
  one.resize(std::min<std::size_t>(one.size(), 12));
  two.resize(std::min<std::size_t>(two.size(), 12));
  const auto frames = interleave({story("a", 0, 2, one), story("a", 1, 2, two)}, order);
  RC_ASSERT(played<false>(frames, true) == played<false>(frames, false));
  RC_ASSERT(played<true>(frames, true) == played<true>(frames, false));
}

}  // namespace
}  // namespace tocsin::rules
