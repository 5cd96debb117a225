// What rules tell of a run that goes on: answers with numbers, at doubled updates and when one changes.
#include "rules/evaluate/answers_so_far.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using testing::HasSubstr;

struct LedgerJob : SteppedJob {
  explicit LedgerJob(const std::string& rule_name) : SteppedJob{RuleHarness::of(rule_name)} {}
  LedgerJob& sends(const std::map<std::string, double>& fields, Role role = Role::ledger) {
    std::vector<Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [name, value] : fields) {
      scalars.push_back({name, step, value, role});
      entries.push_back({core::DictionaryType::scalar, name, role});
    }
    rule.feed(worker.dictionary(entries));
    rule.feed(worker.scalars(mode, scalars));
    end();
    return *this;
  }
  std::string told() { return summed_up(rule); }
  std::string told_at_the_end() {
    rule.feed(worker.end());
    return summed_up(rule);
  }
};

TEST(AnswersSoFar, AreToldAtDoubledUpdates) {
  LedgerJob job("ranks");
  FakeWorker other("digits", "exploding", 1, 2);
  job.worker = FakeWorker("digits", "exploding", 0, 2);
  const std::vector<Entry> names{
      {core::DictionaryType::scalar, "ledger/ranks/batch", Role::ledger}};
  for (int i = 0; i < 100; ++i) {
    for (FakeWorker* worker : {&job.worker, &other}) {
      job.rule.feed(worker->dictionary(names));
      job.rule.feed(worker->scalars(
          Mode::train,
          {{"ledger/ranks/batch", i, 10.0 * i + (worker == &other ? 1 : 0), Role::ledger}}));
      job.rule.feed(worker->step_end(Mode::train, i));
    }
  }
  EXPECT_EQ(sums_of(job.rule).size(), 7U) << "after 1, 2, 4 … 64";
  EXPECT_EQ(job.told(), R"({"ok":{"batches":{"ranks":2,"ranks_alike":0,"steps":64}}})");
}

TEST(AnswersSoFar, AChangeIsToldSoon) {
  LedgerJob job("precision");
  for (int i = 0; i < 64; ++i) {
    std::map<std::string, double> fields{{"ledger/precision/elements", 100},
                                         {"ledger/precision/swallowed", 99}};
    if (i == 63) {
      EXPECT_THAT(job.told(), HasSubstr(R"("needs_updates_seen":32)"));
      fields["ledger/precision/window"] = 100;
      fields["ledger/precision/unmoved"] = 98;
    }
    job.sends(fields);
  }
  EXPECT_EQ(
      job.told(),
      R"({"hit":{"weights":{"kind":"swallowed","swallowed":0.99,"updates_seen":64,"needs_updates_seen":0}}})");
}

TEST(AnswersSoFar, TheWorstWorkerAnswers) {
  struct State {
    AnswersSoFar answers;
  };
  constexpr std::string_view kinds[] = {"lost", "torn"};
  std::map<int, State> states;
  states[0].answers.note("weights", kOk, {{"share", 0.1}}, kinds);
  states[1].answers.note("weights", hit(1), {{"share", 0.9}}, kinds);
  states[1].answers.note("scale", kNotApplicable, {}, kinds);
  states[2].answers.note("weights", kInsufficient, {{"share", 0.5}}, kinds);
  EXPECT_EQ(core::to_json(AnswersSoFar::of_all(states)),
            R"({"hit":{"weights":{"kind":"torn","share":0.9}}})");
}

TEST(AnswersSoFar, DataThatComesTooSlowlyIsToldThen) {
  core::ValueMap numbers{{"pairs", 12.0}, {"needs_pairs", 288.0}};
  core::ValueMap early = numbers;
  tell_starving(early, 63, 0);
  EXPECT_EQ(early.size(), 2U) << "no pace is known";
  tell_starving(numbers, 100, 0);
  EXPECT_EQ(core::to_json(numbers),
            R"({"pairs":12,"needs_pairs":288,"decides_at_update":2500,"insufficient_data":true})");
  core::ValueMap planned{{"pairs", 12.0}, {"needs_pairs", 288.0}};
  tell_starving(planned, 100, 30000);
  EXPECT_EQ(core::find(planned, "insufficient_data"), nullptr) << "a tenth of the plan is 3000";
  core::ValueMap none{{"pairs", 0.0}, {"needs_pairs", 300.0}};
  tell_starving(none, 100, 30000);
  EXPECT_EQ(core::to_json(none), R"({"pairs":0,"needs_pairs":300,"insufficient_data":true})");
  core::ValueMap enough{{"pairs", 300.0}, {"needs_pairs", 0.0}};
  tell_starving(enough, 100, 0);
  EXPECT_EQ(enough.size(), 2U);
}

TEST(AnswersSoFar, BudgetTellsWhatThePlanIsWorth) {
  LedgerJob job("budget");
  job.sends({{"learning_rate", 0.1}}, Role::metric);
  EXPECT_THAT(job.told(),
              HasSubstr(R"({"undecided":{"learning_rate":{"needs":"the planned updates)"));
  job.sends(
      {{"ledger/plan/updates", 2000}, {"ledger/plan/schedule", 2000}, {"ledger/plan/lowest", 0}});
  job.sends({{"learning_rate", 0.05}}, Role::metric);
  EXPECT_EQ(
      job.told_at_the_end(),
      R"({"ok":{"learning_rate":{"planned_updates":2000,"schedule":2000,"updates":3,"worth":2}}})");
  LedgerJob trees("budget");
  trees.mode = Mode::global;
  trees.sends({{"ledger/plan/rounds", 100}, {"ledger/plan/shrinkage", 0.002}});
  EXPECT_THAT(trees.told(), HasSubstr(R"({"hit":{"boosting":{"covers":0.18)"));
}

TEST(AnswersSoFar, TheCourseHasAnInterval) {
  LedgerJob job("loss_not_decreasing");
  for (int i = 0; i < 3; ++i) job.sends({{"loss", 2.0}}, Role::loss);
  EXPECT_THAT(job.told(),
              HasSubstr(R"({"undecided":{"loss train":{"points":2,"needs_points":3}}})"));
  for (int i = 3; i < 200; ++i)
    job.sends({{"loss", 2.0 / (1 + 0.02 * i) + 0.01 * (i % 3)}}, Role::loss);
  const std::string told = job.told_at_the_end();
  EXPECT_THAT(told, HasSubstr(R"({"ok":{"loss train":{"first":)"));
  for (const char* name : {"now_low", "now_high", "best", "values"})
    EXPECT_THAT(told, HasSubstr(name));
}

TEST(AnswersSoFar, ParityTellsOfWhatItCompared) {
  LedgerJob parity("parity");
  parity.sends({{"ledger/data/held/target_distance", 0.02},
                {"ledger/data/held/target_drift", 0.01},
                {"ledger/data/held/target_train", 1000},
                {"ledger/data/held/target_read", 500}});
  EXPECT_THAT(parity.told(), HasSubstr(R"({"ok":{"held":{"targets_apart":0.02)"));
}

TEST(AnswersSoFar, ALossThatIsGivenProbabilitiesIsAHit) {
  LedgerJob job("probabilities_into_loss");
  for (int i = 0; i < 8; ++i) {
    job.sends({{"ledger/cross_entropy/samples", 32},
               {"ledger/cross_entropy/ceiling", 1.46},
               {"ledger/nll_loss/samples", 32}});
  }
  EXPECT_EQ(
      job.told(),
      R"({"hit":{"cross_entropy":{"ceiling":1.46,"steps":3,"needs_steps":0}},"ok":{"nll_loss":{}}})");
}

TEST(AnswersSoFar, TheProtocolIsKeptWhereTheHookSaysSo) {
  RuleHarness rule = RuleHarness::of("exploding_tensor");
  FakeWorker worker;
  rule.feed(worker.start());
  OwnedFrame frame = worker.heartbeat();
  frame.body =
      R"({"event":"preflight","findings":[{"kind":"kept","model":"Net","count":12,"names":[]}]})";
  frame.header.body_length = static_cast<std::uint32_t>(frame.body.size());
  rule.feed(frame);
  EXPECT_TRUE(rule.firing().empty());
  EXPECT_EQ(summed_up(rule, "training_preflight"), R"({"ok":{"Net":{"checks":12}}})");
}

}  // namespace
}  // namespace tocsin::rules
