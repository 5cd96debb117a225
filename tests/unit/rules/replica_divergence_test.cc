#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

struct Group {
  RuleHarness rule = RuleHarness::of("replica_divergence");
  std::vector<FakeWorker> workers;

  explicit Group(std::uint32_t world) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      workers.emplace_back("digits", "group", rank, world);
    }
    rule.feed(workers[0].dictionary({{core::DictionaryType::tensor, "w", Role::weight},
                                     {core::DictionaryType::tensor, "v", Role::weight}}));
  }
  // One digest per worker; 0: it sends none.
  void step(std::int64_t step, const std::vector<std::uint64_t>& digests,
            const std::string& name = "w", std::uint64_t flags = 0, Mode mode = Mode::train) {
    for (std::size_t i = workers.size(); i-- > 0;) {
      std::vector<Statistic> sent;
      if (digests[i] != 0) {
        sent.push_back({core::SparseStat::digest, 0, std::bit_cast<double>(digests[i])});
      }
      rule.feed(workers[i].summary(mode, step, {row_of(name, Role::weight, 9, 1, 1, flags)}, sent));
      rule.feed(workers[i].step_end(mode, step));
    }
  }
  // (digest, elements) per worker.
  void step_of_sizes(std::int64_t step,
                     const std::vector<std::pair<std::uint64_t, std::uint64_t>>& held) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const auto [digest, count] = held[i];
      rule.feed(workers[i].summary(Mode::train, step, {row_of("w", Role::weight, count, 1, 1)},
                                   {{core::SparseStat::digest, 0, std::bit_cast<double>(digest)}}));
    }
    for (FakeWorker& worker : workers) rule.feed(worker.step_end(Mode::train, step));
  }
  std::string status() {
    for (FakeWorker& worker : workers) rule.feed(worker.end());
    return rule.rule_state();
  }
};

constexpr std::uint64_t kDigest = 0xef46db3751d8e999;
constexpr std::uint64_t kOther = 0xef46db3751d8e998;  // one bit of it

TEST(ReplicaDivergence, EqualDigestsAreRight) {
  Group group(3);
  for (int i = 0; i < 3; ++i) group.step(i, {kDigest, kDigest, kDigest});
  EXPECT_EQ(group.status(), "NoIssuesFound");
}

TEST(ReplicaDivergence, WhereOneWorkerSendsForAllItSaysWhatIsMissing) {
  Group group(2);
  group.rule.feed(
      group.workers[0].summary(Mode::train, 0, {row_of("w", Role::weight, 9, 1, 1)},
                               {{core::SparseStat::digest, 0, std::bit_cast<double>(kDigest)}}));
  for (FakeWorker& worker : group.workers) group.rule.feed(worker.step_end(Mode::train, 0));
  EXPECT_EQ(group.status(), "NoData");
  std::string reason;
  for (const Event& event : group.rule.events()) {
    if (const auto* one = std::get_if<core::RuleStatusEvent>(&event)) reason = one->reason;
  }
  EXPECT_NE(reason.find("capture.workers"), std::string::npos) << reason;
}

TEST(ReplicaDivergence, OneBitIsEnoughAndTheMinorityIsNamed) {
  Group group(4);
  group.step(0, {kDigest, kDigest, kOther, kDigest});
  const auto issues = group.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].severity, core::Severity::error);
  EXPECT_EQ(issues[0].labels.get("tensor"), "w");
  EXPECT_EQ(issues[0].labels.get("worker"), "");
  EXPECT_EQ(issues[0].summary,
            "1 of 4 replicas of w differ from the others at train step 0: rank 2.");
}

TEST(ReplicaDivergence, WhereNoneIsInTheMajorityTheLowestRankIsRight) {
  Group group(2);
  group.step(0, {kOther, kDigest});
  ASSERT_EQ(group.rule.firing().size(), 1U);
  EXPECT_NE(group.rule.firing()[0].summary.find("rank 1"), std::string::npos);
}

TEST(ReplicaDivergence, DigestsThatSpellNaNAreComparedAsBits) {
  constexpr std::uint64_t kQuiet = 0x7ff8000000000001;
  Group same(2);
  same.step(0, {kQuiet, kQuiet});
  EXPECT_TRUE(same.rule.firing().empty()) << "NaN is not equal to itself, its bits are";
  Group zeros(2);
  zeros.step(0, {0x8000000000000000, 0x0000000000000001});
  EXPECT_EQ(zeros.rule.firing().size(), 1U);
}

TEST(ReplicaDivergence, TensorsAreUnitsAndAnIssueHeals) {
  Group group(2);
  group.step(0, {kDigest, kOther});
  group.step(1, {kDigest, kDigest}, "v");
  for (int i = 2; i < 5; ++i) group.step(i, {kDigest, kDigest});
  EXPECT_EQ(group.rule.firing().size(), 1U);
  ASSERT_EQ(group.rule.resolved().size(), 1U);
  EXPECT_EQ(group.rule.resolved()[0].ending->step, 4);
}

TEST(ReplicaDivergence, FewerThanTwoDigestsSayNothing) {
  Group group(3);
  group.step(0, {kDigest, 0, 0});
  group.step(1, {0, 0, 0});
  EXPECT_EQ(group.status(), "NoData");
  Group one(1);
  one.step(0, {kDigest});
  EXPECT_EQ(one.status(), "NoData");
}

TEST(ReplicaDivergence, StepsAreComparedWithTheirOwnOnly) {
  Group group(2);
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t digest = kDigest + static_cast<std::uint64_t>(i);
    group.step(i, {digest, digest});
  }
  EXPECT_EQ(group.status(), "NoIssuesFound");
}

TEST(ReplicaDivergence, PartsOfShardedTensorsAndEvaluationAreLeftOut) {
  Group group(2);
  group.step(0, {kDigest, kOther}, "w", core::meta::kPartial);
  group.step(1, {kDigest, kOther}, "w", core::meta::kEmptyHere);
  group.step(0, {kDigest, kOther}, "v", 0, Mode::eval);
  EXPECT_EQ(group.status(), "NoData");
  EXPECT_TRUE(group.rule.firing().empty());
}

// Stages of a pipeline may both have a "w": what differs in size is no replica of it.
TEST(ReplicaDivergence, OnlyTensorsOfOneSizeAreCompared) {
  Group stages(2);
  stages.step_of_sizes(0, {{kDigest, 9}, {kOther, 12}});
  EXPECT_EQ(stages.status(), "NoData");
  EXPECT_TRUE(stages.rule.firing().empty());
  Group four(4);
  four.step_of_sizes(0, {{kDigest, 9}, {kDigest, 9}, {kOther, 12}, {kOther, 12}});
  EXPECT_TRUE(four.rule.firing().empty());
  four.step_of_sizes(1, {{kDigest, 9}, {kDigest, 9}, {kOther, 12}, {kDigest, 12}});
  ASSERT_EQ(four.rule.firing().size(), 1U);
  EXPECT_NE(four.rule.firing()[0].summary.find("1 of 4 replicas of w"), std::string::npos)
      << four.rule.firing()[0].summary;
}

}  // namespace
}  // namespace tocsin::rules
