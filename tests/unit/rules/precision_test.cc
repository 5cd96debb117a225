#include <gtest/gtest.h>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Role;

constexpr const char* kPrecisionFields[] = {"elements", "swallowed", "window",
                                            "unmoved",  "scaled",    "left_out"};

struct StoredJob : SteppedJob {
  explicit StoredJob(const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("precision", with)} {
    std::vector<Entry> names;
    for (const std::string field : kPrecisionFields) {
      names.push_back({core::DictionaryType::scalar, "ledger/precision/" + field, Role::ledger});
    }
    rule.feed(worker.dictionary(names));
  }
  void say(const std::vector<std::pair<std::string, double>>& fields, std::uint64_t flags = 0) {
    std::vector<Scalar> scalars;
    scalars.reserve(fields.size());
    for (const auto& [field, value] : fields) {
      scalars.push_back({"ledger/precision/" + field, step, value, Role::ledger});
    }
    if (!scalars.empty()) rule.feed(worker.scalars(mode, scalars));
    rule.feed(worker.step_end(mode, step++, flags));
  }
  // Updates of 100 elements each, and what the last one says of the window.
  void window(int updates, double swallowed, double unmoved) {
    for (int i = 1; i < updates; ++i) say({{"elements", 100}, {"swallowed", swallowed}});
    say({{"elements", 100}, {"swallowed", swallowed}, {"window", 200}, {"unmoved", unmoved}});
  }
};

TEST(Precision, UpdatesThatAreRoundedAwayAreTold) {
  StoredJob job;
  job.window(64, 95, 190);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "swallowed");
  EXPECT_EQ(issues[0].summary,
            "Rounding erases updates: 95 % of the elements with a gradient had the same value "
            "after the update as before, over 64 updates up to train step 63 on worker_0. 95 % "
            "were never changed. The weights are stored in 16 bits.");
  EXPECT_EQ(job.status(), "IssuesFound");
}

TEST(Precision, AtTheLimitItIsQuiet) {
  StoredJob at_share;
  at_share.window(64, 90, 190);
  EXPECT_EQ(at_share.status(), "NoIssuesFound") << "90 % exactly";
  StoredJob moved;
  moved.window(64, 99, 180);
  EXPECT_EQ(moved.status(), "NoIssuesFound") << "nearly every update changes nothing, but a tenth "
                                                "were changed by one: stochastic rounding";
}

TEST(Precision, FewerUpdatesThanAWindowTellNothing) {
  StoredJob job;
  job.window(63, 100, 200);
  EXPECT_EQ(job.status(), "NoData");
}

TEST(Precision, AShortWindowIsAddedToTheNext) {
  StoredJob job;
  job.window(63, 100, 200);
  job.window(1, 100, 200);
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(Precision, ElementsWithoutAGradientAreNoData) {
  StoredJob job;
  for (int i = 0; i < 64; ++i) {
    job.say({{"elements", 0}, {"swallowed", 0}, {"window", 0}, {"unmoved", 0}});
  }
  EXPECT_EQ(job.status(), "NoData");
}

TEST(Precision, ItEndsWhenUpdatesArriveAgain) {
  StoredJob job("{updates: 2, clear_after: 2}");
  job.window(2, 100, 200);
  job.window(2, 10, 20);
  EXPECT_TRUE(job.rule.resolved().empty());
  job.window(2, 10, 20);
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

TEST(Precision, AScalerThatLeavesOutAFifthIsQuietAndMoreIsTold) {
  StoredJob job("{attempts: 10}");
  job.say({{"scaled", 10}, {"left_out", 10}});
  EXPECT_EQ(job.rule.firing().size(), 0U) << "it finds its scale";
  job.say({{"scaled", 5}});
  job.say({{"scaled", 5}, {"left_out", 2}});
  EXPECT_EQ(job.rule.firing().size(), 0U) << "2 of 10";
  job.say({{"scaled", 9}, {"left_out", 2}});
  job.say({{"scaled", 1}}, core::meta::kOptimizerSkipped);
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U) << "3 of 10, one of them in the optimizer's kernel";
  EXPECT_EQ(issues[0].kind, "skipped");
  EXPECT_NE(issues[0].summary.find("skipped 3 of the 10 updates"), std::string::npos)
      << issues[0].summary;
}

/// A word of the gradients of some tensors.
void say_gradients(StoredJob& job, double scale, double zeros,
                   const std::string& name = "a.weight") {
  const std::string field = "ledger/precision/underflow/" + name;
  std::vector<Entry> names{{core::DictionaryType::scalar, field, Role::ledger}};
  for (const std::string one : {"scale", "scale_tensors", "beside"}) {
    names.push_back({core::DictionaryType::scalar, "ledger/precision/" + one, Role::ledger});
  }
  job.rule.feed(job.worker.dictionary(names));
  job.say({{"scale", scale}, {"scale_tensors", 6}, {"beside", 2}, {"underflow/" + name, zeros}});
}

TEST(Precision, AGradientThatFloat16CannotHoldIsToldAtTheThirdWord) {
  StoredJob job;
  for (int word = 0; word < 3; ++word) {
    EXPECT_TRUE(job.rule.firing().empty());
    say_gradients(job, 1, 0.75);
  }
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "underflow");
  EXPECT_EQ(issues[0].summary,
            "75 % of the gradient of a.weight are zeros up to train step 2 on worker_0. Most of "
            "the rest are small multiples of 2^-24, the smallest number of float16. The loss scale "
            "is 1, too small to help. 2 of 6 tensors have no zeros.");
}

TEST(Precision, AScaleThatCanLiftGradientsOrAFewZerosAreQuiet) {
  StoredJob scaled;
  for (int word = 0; word < 6; ++word) say_gradients(scaled, 2, 0.75);
  EXPECT_EQ(scaled.status(), "NoIssuesFound");
  StoredJob few;
  for (int word = 0; word < 6; ++word) say_gradients(few, 1, 0.5);
  EXPECT_EQ(few.status(), "NoIssuesFound") << "half exactly";
  StoredJob between;
  for (int word = 0; word < 9; ++word) say_gradients(between, 1, word % 3 == 2 ? 0 : 0.75);
  EXPECT_EQ(between.status(), "NoIssuesFound");
}

TEST(Precision, WithoutEitherThereIsNoData) {
  StoredJob job;
  for (int i = 0; i < 10; ++i) job.say({});
  EXPECT_EQ(job.status(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
