// Runs whose tensors are spread over shards (docs/wire.md): each shard is judged by itself. Rules of one tensor are as good as
// ever, over all workers; those that join several are given none, and say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/rule_harness.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;
using ::testing::HasSubstr;

/// One rule, and the senders of one or more ranks to each of two shards.
struct Spread {
  RuleHarness rule;
  std::vector<std::array<FakeWorker, 2>> ranks;

  explicit Spread(const std::string& rules, std::uint32_t world = 1, std::uint16_t shards = 2)
      : rule(rules) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      auto& both = ranks.emplace_back(std::array{FakeWorker("digits", "spread", rank, world),
                                                 FakeWorker("digits", "spread", rank, world)});
      for (std::uint16_t shard = 0; shard < 2; ++shard) {
        both[shard].header.shard = shard;
        both[shard].header.shard_count = shards;
      }
      rule.feed(both[0].start());
      for (FakeWorker& worker : both) {
        rule.feed(
            worker.dictionary({{core::DictionaryType::tensor, "gradient/a", Role::gradient},
                               {core::DictionaryType::tensor, "gradient/b", Role::gradient}}));
      }
    }
  }
  /// A step of every rank: each tensor goes to the shard given.
  void step(std::int64_t number, const std::vector<std::pair<int, TensorValues>>& tensors,
            double loss = 1) {
    for (auto& both : ranks) {
      for (const auto& [shard, tensor] : tensors) {
        rule.feed(both[static_cast<std::size_t>(shard)].tensors(Mode::train, number, {tensor}));
      }
      rule.feed(both[0].scalars(Mode::train, {{"loss", number, loss}}));
      for (FakeWorker& worker : both) rule.feed(worker.step_end(Mode::train, number));
    }
  }
  void end() {
    for (auto& both : ranks) rule.feed(both[0].end());
  }
  /// What the first shard's engine said last of the run.
  core::JobEvent newest() {
    core::JobEvent out;
    for (const Event& event : rule.events()) {
      if (const auto* job = std::get_if<core::JobEvent>(&event)) out = *job;
    }
    return out;
  }
  /// It comes to the further shard so many seconds after its last record.
  void settle(const core::JobEvent& event, std::int64_t seconds, bool live = true) {
    rule.engine().settle(3, event, core::wall_time(ranks[0][0].header.time + seconds * kSecond),
                         live);
  }
  /// Of all statuses of the rule, the reasons.
  std::vector<std::string> reasons(const std::string& name) {
    std::vector<std::string> out;
    for (const Event& event : rule.events()) {
      const auto* status = std::get_if<core::RuleStatusEvent>(&event);
      if (status != nullptr && status->rule == name) out.push_back(status->reason);
    }
    return out;
  }
};

TensorValues gradient(const std::string& name, double value) {
  return {"gradient/" + name, {value, -value, value}, Role::gradient};
}

TEST(Shards, ARuleOfOneTensorFindsItInAnyShard) {
  Spread run(" [exploding_tensor]");
  run.step(0, {{0, gradient("a", 1)}, {1, gradient("b", NAN)}});
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].labels.get("tensor"), "gradient/b");
  run.end();
  EXPECT_THAT(run.reasons("exploding_tensor").back(),
              HasSubstr("judged for the first of 2 shards only"));
}

TEST(Shards, ARuleThatJoinsTensorsIsGivenNoneAndSaysSoAtOnce) {
  Spread run(" [poor_weight_initialization, vanishing_gradient]");
  for (int i = 0; i < 3; ++i) run.step(i, {{0, gradient("a", 1e-12)}, {1, gradient("b", 1e-12)}});
  for (const char* name : {"poor_weight_initialization", "vanishing_gradient"}) {
    ASSERT_EQ(run.reasons(name).size(), 1U) << "said with the first frame, and once";
    EXPECT_THAT(run.reasons(name)[0], HasSubstr("spread over 2 shards"));
  }
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.rule_state("vanishing_gradient"), "NoData");
  EXPECT_THAT(run.reasons("vanishing_gradient").back(), HasSubstr("spread over 2 shards"));
  EXPECT_GE(run.rule.engine().stats().withheld_units, 2U);
}

TEST(Shards, OneShardIsNothingToSpeakOf) {
  Spread run(" [vanishing_gradient]", 1, 1);
  run.ranks[0][0].header.shard_count = 1;
  for (int i = 0; i < 8; ++i) {
    run.rule.feed(run.ranks[0][0].tensors(Mode::train, i, {gradient("a", 1e-12)}));
    run.rule.feed(run.ranks[0][0].step_end(Mode::train, i));
  }
  run.end();
  EXPECT_FALSE(run.rule.firing().empty());
  EXPECT_EQ(run.rule.engine().stats().withheld_units, 0U);
}

TEST(Shards, ScalarsAreAllInTheFirst) {
  Spread run(" [loss_spike, exploding_tensor]");
  run.step(0, {{1, gradient("a", 1)}}, NAN);
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].labels.get("tensor"), "") << "it is the loss";
  run.end();
  for (const std::string& reason : run.reasons("loss_spike")) {
    EXPECT_THAT(reason, ::testing::Not(HasSubstr("shard")));
  }
}

TEST(Shards, OneTensorOfAllWorkersMeetsInItsShard) {
  Spread run(" [replica_divergence]", 3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    FakeWorker& worker = run.ranks[rank][1];
    const std::uint64_t digest = rank == 1 ? 0xef46db3751d8e998 : 0xef46db3751d8e999;
    run.rule.feed(worker.dictionary({{core::DictionaryType::tensor, "w", Role::weight}}));
    run.rule.feed(worker.summary(Mode::train, 0, {row_of("w", Role::weight, 9, 1, 1)},
                                 {{core::SparseStat::digest, 0, std::bit_cast<double>(digest)}}));
  }
  for (auto& both : run.ranks) {
    for (FakeWorker& worker : both) run.rule.feed(worker.step_end(Mode::train, 0));
  }
  ASSERT_EQ(run.rule.firing().size(), 1U);
}

TEST(Shards, OwnRulesOverWorkersAreJudgedAndThoseOverTensorsAreNot) {
  const std::string select = "select: 'collection(\"gradients\")', ";
  Spread run(" [{name: ranks, " + select +
                 "by: [tensor], when: 'across(max, abs_max) > 5'}, {name: layers, " + select +
                 "by: [worker], when: 'across(max, abs_max) > 5'}]",
             2);
  run.step(0, {{0, gradient("a", 1)}, {1, gradient("b", 9)}});
  run.end();
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].rule, "ranks");
  EXPECT_EQ(run.rule.firing()[0].labels.get("tensor"), "gradient/b");
  EXPECT_EQ(run.rule.rule_state("layers"), "NoData");
}

// The second shard has found A and knows nothing of B: it would say that B is absent.
TEST(Shards, ASequenceIsNotJudgedFromOneShardsPart) {
  Spread run(
      " [exploding_tensor, loss_spike, {name: alone, sequence: exploding_tensor, "
      "without: loss_spike, within: 2 steps}]");
  run.step(0, {{0, gradient("a", 1)}, {1, gradient("b", NAN)}});
  for (int i = 1; i < 9; ++i) run.step(i, {{0, gradient("a", 1)}, {1, gradient("b", NAN)}});
  run.end();
  for (const core::Issue& issue : run.rule.firing()) EXPECT_EQ(issue.rule, "exploding_tensor");
  EXPECT_EQ(run.rule.rule_state("alone"), "NoData");
  EXPECT_THAT(run.reasons("alone").back(), HasSubstr("spread over 2 shards"));
}

TEST(Shards, ALossThatIsATensorIsNotJudgedAndTheRuleSaysWhy) {
  Spread run(" [loss_not_decreasing]");
  for (FakeWorker& worker : run.ranks[0]) {
    run.rule.feed(worker.dictionary({{core::DictionaryType::tensor, "loss/x", Role::loss}}));
  }
  for (int i = 0; i < 40; ++i) {
    run.rule.feed(run.ranks[0][1].tensors(Mode::train, i, {{"loss/x", {1.0 + i}, Role::loss}}));
    for (FakeWorker& worker : run.ranks[0]) run.rule.feed(worker.step_end(Mode::train, i));
  }
  run.end();
  EXPECT_TRUE(run.rule.firing().empty());
  EXPECT_THAT(run.reasons("loss_not_decreasing").back(), HasSubstr("gets only scalars"));
  EXPECT_GE(run.rule.engine().stats().withheld_units, 1U);
}

// Every shard is told of the ends of steps: what goes by these alone would be found once in each.
TEST(Shards, WhatGoesByStepsAloneIsJudgedOnce) {
  Spread run(" [straggler]", 3);
  run.ranks[1][0].step_time = run.ranks[1][1].step_time = kSecond;
  for (int i = 0; i < 60; ++i) run.step(i, {{0, gradient("a", 1)}, {1, gradient("b", 1)}});
  ASSERT_EQ(run.rule.firing().size(), 1U);
}

TEST(Shards, ASilenceIsHeardByTheFirst) {
  Spread run(" [{use: stalled_training_rule, with: {threshold: 60}}]");
  run.step(0, {{0, gradient("a", 1)}, {1, gradient("b", 1)}});
  run.rule.tick(run.ranks[0][0].header.time + 200 * kSecond);
  EXPECT_EQ(run.rule.firing().size(), 1U);
}

TEST(Shards, AFurtherOneEndsWithTheRunOnceItIsQuiet) {
  Spread run(" [exploding_tensor]");
  run.step(0, {{1, gradient("b", NAN)}});
  run.end();
  EXPECT_TRUE(run.rule.resolved().empty()) << "the end stands in the first shard";
  ASSERT_EQ(run.rule.engine().further_shards(3).size(), 1U);
  const core::JobEvent ended = run.newest();
  ASSERT_EQ(ended.phase, core::JobPhase::ended);
  run.settle(ended, 60, false);
  EXPECT_TRUE(run.rule.resolved().empty()) << "more may stand in its partition";
  run.settle(ended, 1);
  EXPECT_TRUE(run.rule.resolved().empty()) << "more may be on its way";
  run.settle(ended, 60);
  ASSERT_EQ(run.rule.resolved().size(), 1U);
  EXPECT_EQ(run.rule.resolved()[0].resolution, core::Resolution::job_ended);
  run.settle(ended, 120);
  EXPECT_EQ(run.rule.resolved().size(), 1U);
}

TEST(Shards, AFurtherOneKnowsTheJobItIsOf) {
  Spread run(" [exploding_tensor]");
  run.settle(run.newest(), 0);
  run.step(0, {{1, gradient("b", NAN)}});
  ASSERT_EQ(run.rule.firing().size(), 1U);
  EXPECT_EQ(run.rule.firing()[0].labels.get("job"), "digits");
}

TEST(Shards, ANewLaunchBeginsAnewInEveryShard) {
  Spread run(" [exploding_tensor]");
  run.step(0, {{1, gradient("b", NAN)}});
  core::JobEvent second = run.newest();
  second.phase = core::JobPhase::started;
  second.run.attempt = 2;
  run.settle(second, 0);
  ASSERT_EQ(run.rule.resolved().size(), 1U);
  EXPECT_EQ(run.rule.resolved()[0].resolution, core::Resolution::superseded);
  run.step(1, {{1, gradient("b", NAN)}});
  ASSERT_EQ(run.rule.firing().size(), 2U);
  EXPECT_EQ(run.rule.firing()[1].run.attempt, 2U);
  core::JobEvent old = second;
  old.run.attempt = 1;
  old.phase = core::JobPhase::ended;
  run.settle(old, 60);
  EXPECT_EQ(run.rule.resolved().size(), 1U) << "of a launch that is over";
}

// Its first records may come before the registry speaks of it.
TEST(Shards, WhatComesBehindTheEndIsTheNextLaunch) {
  Spread run(" [exploding_tensor]");
  run.step(0, {{1, gradient("b", NAN)}});
  run.end();
  run.settle(run.newest(), 60);
  ASSERT_EQ(run.rule.resolved().size(), 1U);
  FakeWorker& worker = run.ranks[0][1];
  worker.header.time += 100 * kSecond;
  ++worker.header.incarnation;
  run.rule.feed(worker.tensors(Mode::train, 0, {gradient("b", NAN)}));
  ASSERT_EQ(run.rule.firing().size(), 2U);
  EXPECT_EQ(run.rule.firing()[1].run.attempt, 2U);
}

}  // namespace
}  // namespace tocsin::rules
