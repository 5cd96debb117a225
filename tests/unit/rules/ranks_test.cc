#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

struct Replicas {
  RuleHarness rule;
  std::vector<FakeWorker> workers;

  explicit Replicas(std::uint32_t world, const std::string& with = "{}")
      : rule(RuleHarness::of("ranks", with)) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      workers.emplace_back("digits", "replicas", rank, world);
    }
    rule.feed(workers[0].dictionary(
        {{core::DictionaryType::scalar, "ledger/ranks/batch", Role::ledger}}));
  }
  /// A fingerprint per rank; 0: it sends none. The last rank comes first.
  void step(std::int64_t step, const std::vector<double>& batches) {
    for (std::size_t i = workers.size(); i-- > 0;) {
      if (batches[i] != 0) {
        rule.feed(workers[i].scalars(Mode::train,
                                     {{"ledger/ranks/batch", step, batches[i], Role::ledger}}));
      }
      rule.feed(workers[i].step_end(Mode::train, step));
    }
  }
  std::string status() {
    for (FakeWorker& worker : workers) rule.feed(worker.end());
    return rule.rule_state();
  }
};

TEST(Ranks, ThreeStepsInARowOnTheSameBatchesAreTold) {
  Replicas job(3);
  job.step(0, {11, 12, 11});
  job.step(1, {21, 22, 21});
  EXPECT_TRUE(job.rule.firing().empty());
  job.step(2, {31, 32, 31});
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "same_batches");
  EXPECT_EQ(issues[0].summary,
            "1 of 3 ranks trained on the batches of a lower rank, in 3 steps in a row up to train "
            "step 2: rank 2 as rank 0.");
}

TEST(Ranks, OtherBatchesAreRight) {
  Replicas job(4);
  for (int i = 0; i < 9; ++i) job.step(i, {1.0 + i, 2.5 + i, 3.25 + i, 4.125 + i});
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(Ranks, OneStepApartIsEnoughToBeRight) {
  Replicas job(2);
  for (int i = 0; i < 9; ++i) job.step(i, {10.0 + i, i % 3 == 2 ? 100.0 + i : 10.0 + i});
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(Ranks, AnInputThatNeverChangesTellsNothing) {
  Replicas job(2);
  for (int i = 0; i < 9; ++i) job.step(i, {7, 7});
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(Ranks, WhoSendsNoneIsNotCompared) {
  Replicas job(2);
  for (int i = 0; i < 9; ++i) job.step(i, {1.0 + i, 0});
  EXPECT_EQ(job.status(), "NoData");
}

TEST(Ranks, OneRankHasNoOther) {
  Replicas job(1);
  for (int i = 0; i < 9; ++i) job.step(i, {1.0 + i});
  EXPECT_EQ(job.status(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
