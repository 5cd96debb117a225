#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

/// A loop that saves its inputs every `distance` steps and logs a loss at each.
struct Loader : SteppedJob {
  std::int64_t distance = 5;
  bool logs = true;
  explicit Loader(const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("repeated_batch", with)} {
    rule.feed(worker.dictionary({{core::DictionaryType::tensor, "x", Role::input},
                                 {core::DictionaryType::scalar, "loss", Role::loss}}));
  }
  /// Steps up to one that saves these inputs. The loss of a step is `level(step)`.
  template <typename Level>
  void save(const std::vector<double>& inputs, Level level) {
    do {
      const bool due = step % distance == 0;
      if (logs) rule.feed(worker.scalars(Mode::train, {{"loss", step, level(step), Role::loss}}));
      if (due) rule.feed(worker.tensors(Mode::train, step, {{"x", inputs, Role::input}}));
      end();
      if (due) return;
    } while (true);
  }
  void save(const std::vector<double>& inputs) {
    save(inputs, [](std::int64_t at) { return 1 / (1 + 0.1 * static_cast<double>(at)); });
  }
  void evaluate(std::int64_t at, const std::vector<double>& inputs) {
    rule.feed(worker.tensors(Mode::eval, at, {{"x", inputs, Role::input}}));
    rule.feed(worker.step_end(Mode::eval, at));
  }
};

const std::vector<double> kBatch{1, 2, 3, 5};
const std::vector<double> kLarge{0, 1, 2, 3, 4, 5, 6, 7, 8};

TEST(RepeatedBatch, TellsOfALoaderThatHasStopped) {
  Loader job;
  for (const double x : {1.0, 2.0, 3.0, 4.0}) job.save({x, 0});
  job.save({4, 0});
  EXPECT_TRUE(job.rule.firing().empty()) << "two saved steps in a row";
  job.save({4, 0});
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "stuck");
  EXPECT_EQ(issues[0].summary,
            "Training repeats one batch: from step 15 to train step 25 on worker_0 the model's "
            "inputs are the same at 3 saved steps; before that they changed.");
}

TEST(RepeatedBatch, TwoChangesAreNoLoaderThatMoves) {
  Loader job;
  for (const double x : {1.0, 2.0, 3.0, 3.0, 3.0, 3.0}) job.save({x, 0});
  EXPECT_TRUE(job.rule.firing().empty());
}

// Seen at every fifth step it changes; at every tenth it would be the same from the start on.
TEST(RepeatedBatch, ChangesCountAtOneDistance) {
  Loader job;
  for (const double x : {1.0, 2.0, 3.0, 4.0, 5.0}) job.save({x, 0});
  job.distance = 10;
  for (int i = 0; i < 4; ++i) job.save({5, 0});
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(RepeatedBatch, OneBatchFromTheStartBesideALargerEvaluation) {
  Loader job;
  job.evaluate(0, kLarge);
  for (int i = 0; i < 2; ++i) job.save(kBatch);
  EXPECT_TRUE(job.rule.firing().empty());
  job.save(kBatch);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "one_batch");
}

TEST(RepeatedBatch, AWholeDataSetIsOneBatch) {
  Loader same;
  same.evaluate(0, {1, 2, 3, 5});
  for (int i = 0; i < 5; ++i) same.save(kBatch);
  EXPECT_TRUE(same.rule.firing().empty()) << "and evaluated as it is";
  Loader twice;
  twice.evaluate(0, {0, 1, 2, 3, 4, 5, 6, 7});
  for (int i = 0; i < 5; ++i) twice.save(kBatch);
  EXPECT_TRUE(twice.rule.firing().empty()) << "twice as many are not more than twice";
}

TEST(RepeatedBatch, TwoEvaluationStepsThatDifferCountTogether) {
  Loader job;
  job.evaluate(0, {0, 1, 2, 3, 4});
  job.evaluate(1, {0, 1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) job.save(kBatch);
  EXPECT_TRUE(job.rule.firing().empty()) << "the same one twice";
  job.evaluate(2, {9, 1, 2, 3, 4});
  job.save(kBatch);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(RepeatedBatch, BatchesOfOneKindTellNothing) {
  Loader job;
  job.evaluate(0, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  for (int i = 0; i < 5; ++i) job.save({1, 0, 0, 1});
  EXPECT_TRUE(job.rule.firing().empty()) << "one-hot rows have one mean";
}

// Five batches in one order, and every fifth step is saved.
TEST(RepeatedBatch, ALoaderThatGoesRoundIsSeenByItsLosses) {
  const auto round = [](std::int64_t at) {
    const double own[] = {0.3, -0.2, 0.1, -0.3, 0.2};
    return 2 - 0.01 * static_cast<double>(at) + own[at % 5];
  };
  Loader job;
  job.evaluate(0, kLarge);
  for (int i = 0; i < 6; ++i) job.save(kBatch, round);
  EXPECT_TRUE(job.rule.firing().empty());
  const auto noisy = [](std::int64_t at) {
    const double drawn[] = {0.3, -0.2, 0.1, -0.3, 0.2, -0.1, 0.2, 0.3, -0.3, 0.1, 0.2, -0.3, 0.1};
    return 2 - 0.01 * static_cast<double>(at) + drawn[at % 13];
  };
  Loader other;
  other.evaluate(0, kLarge);
  for (int i = 0; i < 6; ++i) other.save(kBatch, noisy);
  EXPECT_EQ(other.rule.firing().size(), 1U) << "dropout does not return";
}

TEST(RepeatedBatch, WithoutLossesOnlyAChangeTells) {
  Loader job;
  job.logs = false;
  job.evaluate(0, kLarge);
  for (int i = 0; i < 5; ++i) job.save(kBatch);
  EXPECT_TRUE(job.rule.firing().empty());
  Loader each;
  each.logs = false;
  each.distance = 1;
  each.evaluate(0, kLarge);
  for (int i = 0; i < 3; ++i) each.save(kBatch);
  EXPECT_EQ(each.rule.firing().size(), 1U) << "where every step is saved nothing is between";
}

TEST(RepeatedBatch, EmptySamplesAreConstantInputs) {
  Loader job;
  for (const double x : {1.0, 2.0, 3.0}) job.save({x, 0});
  for (int i = 0; i < 5; ++i) job.save({0, 0});
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(RepeatedBatch, NaNIsNoBatch) {
  Loader job;
  for (const double x : {1.0, 2.0, 3.0, 4.0}) job.save({x, 0});
  for (int i = 0; i < 5; ++i) job.save({std::nan(""), 0});
  EXPECT_TRUE(job.rule.firing().empty());
}

TEST(RepeatedBatch, ResolvesWhenTheLoaderGoesOn) {
  Loader job("{clear_after: 1}");
  for (const double x : {1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 5.0}) job.save({x, 0});
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
