// The rule `reward` on what the hook counts: rewards and signals that never vary, target networks, memories.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/rules/reward_agent.h"

namespace tocsin::rules {
namespace {

using namespace reward_support;  // NOLINT: the harness is this file's language

// ------------------------------------------------------------------------------------- flat

TEST(Reward, ARewardThatIsAlwaysZeroIsToldWhenHalfOfThePlanIsOver) {
  Agent job;
  job.go(99, [](double) {
    Values out = constant_reward(50, 10, 0);
    out["ledger/plan/updates"] = 200;
    return out;
  });
  EXPECT_EQ(job.kinds(), "") << "sparse, perhaps";
  job.say(constant_reward(50, 10, 0));
  EXPECT_EQ(job.kinds(), "flat");
  EXPECT_EQ(
      job.summary(),
      "transition/reward was the same all 5000 times, and all 500 episodes had the same return.");
}

TEST(Reward, WithoutAPlanItIsToldWhenTheRunIsOver) {
  Agent job;
  job.go(100, [](double) { return constant_reward(50, 10, 0); });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "IssuesFound");
  EXPECT_EQ(job.rule.firing().size(), 1U);
}

TEST(Reward, ASparseRewardThatComesAtLastIsFine) {
  Agent job;
  job.go(90, [](double) {
    Values out = constant_reward(50, 10, 0);
    out["ledger/plan/updates"] = 200;
    return out;
  });
  job.go(60, [](double) {
    return reward_ledger({{"transitions", 50},
                          {"episodes", 5},
                          {"returns", 1},
                          {"squares", 1},
                          {"seen/reward", 50},
                          {"changes/reward", 2}});
  });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(Reward, ARewardOfOnePerStepIsByDesignWhereEpisodesDiffer) {  // a pole is balanced
  Agent job;
  job.go(400, [&](double) {
    const double first = std::floor(20 + 10 * job.chance.uniform());
    const double second = std::floor(20 + 10 * job.chance.uniform());
    return reward_ledger({{"transitions", first + second},
                          {"episodes", 2},
                          {"returns", first + second},
                          {"squares", first * first + second * second},
                          {"seen/reward", first + second},
                          {"changes/reward", 0}});
  });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_NE(job.status(), "IssuesFound");
}

TEST(Reward, AnEndThatIsNeverOrAlwaysMarkedIsTold) {
  Agent never;
  never.go(40, [](double) {
    return reward_ledger({{"transitions", 50},
                          {"episodes", 1},
                          {"ends", 1},
                          {"returns", 5},
                          {"squares", 25},
                          {"seen/done", 50},
                          {"ones/done", 0}});
  });
  EXPECT_EQ(never.kinds(), "flat");
  EXPECT_EQ(never.summary(),
            "None of 1000 transitions is marked as the end of an episode, but 20 episodes ended.");
  Agent always;
  always.go(40, [](double) {
    return reward_ledger({{"transitions", 50},
                          {"episodes", 1},
                          {"ends", 1},
                          {"returns", 5},
                          {"squares", 25},
                          {"seen/done", 50},
                          {"ones/done", 50}});
  });
  EXPECT_EQ(always.kinds(), "flat");
}

TEST(Reward, EndsThatAreRightAreQuiet) {
  const std::map<std::string, Values> healthy{{"only the limit of time ends an episode",
                                               {{"transitions", 50},
                                                {"episodes", 1},
                                                {"ends", 0},
                                                {"returns", 5},
                                                {"squares", 25},
                                                {"seen/done", 50},
                                                {"ones/done", 0}}},
                                              {"a bandit: each pull is an episode",
                                               {{"transitions", 50},
                                                {"episodes", 50},
                                                {"ends", 50},
                                                {"returns", 25},
                                                {"squares", 25},
                                                {"seen/done", 50},
                                                {"ones/done", 50},
                                                {"seen/observation", 50},
                                                {"changes/observation", 0}}},
                                              {"both",
                                               {{"transitions", 50},
                                                {"episodes", 1},
                                                {"ends", 1},
                                                {"returns", 5},
                                                {"squares", 26},
                                                {"seen/done", 50},
                                                {"ones/done", 1}}}};
  for (const auto& [name, fields] : healthy) {
    Agent job;
    job.go(100, [&told = fields](double) { return reward_ledger(told); });
    EXPECT_EQ(job.kinds(), "") << name;
  }
}

TEST(Reward, SignalsThatNeverVaryAreTold) {
  Agent stuck;
  stuck.go(20, [](double) {
    return reward_ledger(
        {{"transitions", 50}, {"seen/observation", 50}, {"changes/observation", 0}});
  });
  EXPECT_EQ(stuck.kinds(), "flat");
  EXPECT_EQ(stuck.summary(), "transition/observation was the same all 1000 times.");
  Agent priorities;
  priorities.go(999, [](double) { return Values{{"priority", 1}}; });
  EXPECT_EQ(priorities.kinds(), "");
  priorities.say({{"priority", 1}});
  EXPECT_EQ(priorities.kinds(), "flat");
  EXPECT_EQ(priorities.summary(), "priority was the same (1) all 1000 times.");
  Agent weights;
  weights.go(1100, [&](double) {
    return Values{{"priority", weights.noisy(1)}, {"importance_weight", 1}};
  });
  EXPECT_EQ(weights.kinds(), "flat");
  Agent advantages;
  advantages.go(1100, [&](double) {
    return Values{
        {"advantage", 0}, {"episode_return", advantages.noisy(0)}, {"ledger/plan/updates", 2000}};
  });
  EXPECT_EQ(advantages.kinds(), "flat");
}

TEST(Reward, SignalsThatAreConstantByDesignAreQuiet) {
  Agent uniform;  // weights of a memory that is drawn from evenly
  uniform.go(1100, [](double) { return Values{{"importance_weight", 1}}; });
  EXPECT_EQ(uniform.kinds(), "");
  Agent gauss;  // the spread of the actions is no parameter
  gauss.go(1100, [&](double at) {
    return Values{{"entropy", 1.4189},
                  {"episode_return", gauss.noisy(4 * at)},
                  {"ledger/plan/updates", 1200}};
  });
  EXPECT_EQ(gauss.kinds(), "");
  Agent once;  // every batch is used once, so old and new policy are the same
  once.go(40, [](double) {
    return reward_ledger({{"seen/ratio", 50}, {"changes/ratio", 0}, {"ones/ratio", 50}});
  });
  EXPECT_EQ(once.kinds(), "");
}

// -------------------------------------------------------------------------------------- lag

TEST(Reward, ATargetNetworkThatNeverChangesIsToldAtHalfOfThePlan) {
  Agent job;
  job.go(63, [](double) {
    Values out = target_ledger(4, 4, 0, 1);
    out["ledger/plan/updates"] = 128;
    return out;
  });
  EXPECT_EQ(job.kinds(), "");
  job.say(target_ledger(4, 4, 0, 1));
  EXPECT_EQ(job.kinds(), "lag");
  EXPECT_EQ(
      job.summary(),
      "target_net began as a copy of the trained network and has not changed in 256 updates.");
}

TEST(Reward, WithoutAPlanATargetNetworkHasTwentyThousandUpdatesOrTheRun) {
  Agent job;
  job.go(100, [](double) { return target_ledger(199, 199, 0, 1); });
  EXPECT_EQ(job.kinds(), "") << "some wait for 10000 updates";
  job.say(target_ledger(100, 100, 0, 0));
  EXPECT_EQ(job.kinds(), "lag");
  Agent brief;
  brief.go(100, [](double) { return target_ledger(6, 6, 0, 1); });
  EXPECT_EQ(brief.kinds(), "");
  EXPECT_EQ(brief.status(), "IssuesFound");
}

TEST(Reward, ATargetNetworkThatIsTheTrainedOneIsTold) {
  Agent job;
  job.go(4, [](double) { return target_ledger(16, 16, 16, 16); });
  EXPECT_EQ(job.kinds(), "lag");
  EXPECT_NE(job.summary().find("it does not lag behind"), std::string::npos) << job.summary();
}

TEST(Reward, ATargetNetworkThatStopsToFollowIsTold) {
  Agent job;
  job.go(10, [](double) { return target_ledger(100, 100, 2, 2); });
  job.go(4, [](double) { return target_ledger(100, 100, 0, 0); });
  EXPECT_EQ(job.kinds(), "") << "eight intervals";
  job.go(1, [](double) { return target_ledger(100, 100, 0, 0); });
  EXPECT_EQ(job.kinds(), "lag");
}

TEST(Reward, TargetNetworksThatLagAreQuiet) {
  Agent rarely;
  for (int i = 0; i < 60; ++i) {
    rarely.say(target_ledger(1000, 1000, i % 10 == 9 ? 1 : 0, i % 10 == 0 ? 1 : 0));
  }
  EXPECT_EQ(rarely.kinds(), "");
  Agent softly;
  softly.go(60, [](double) { return target_ledger(1000, 1000, 1000, 0); });
  EXPECT_EQ(softly.kinds(), "");
  Agent still;  // nothing is trained yet
  still.go(60, [](double) { return target_ledger(1000, 0, 0, 1000); });
  EXPECT_EQ(still.kinds(), "");
  EXPECT_NE(still.status(), "IssuesFound");
  Agent other;  // a network of the same shape that never was a copy
  other.go(60, [](double) { return target_ledger(1000, 1000, 0, 0); });
  EXPECT_EQ(other.kinds(), "");
  EXPECT_NE(other.status(), "IssuesFound");
}

// ------------------------------------------------------------------------------------ fresh

TEST(Reward, AMemoryThatGetsNothingNewIsTold) {
  Agent job;
  job.go(32, [](double at) {
    return reward_ledger({{"made", 64}, {"drawn", 64}, {"fresh", at == 0 ? 60.0 : 1.0}});
  });
  EXPECT_EQ(job.kinds(), "fresh");
  EXPECT_NE(job.summary().find("were sampled for the first time, but"), std::string::npos)
      << job.summary();
}

TEST(Reward, MemoriesThatAreRefreshedAreQuiet) {
  struct Memory {
    std::string name;
    std::size_t size;
    std::size_t made;
    std::size_t drawn;
  };
  const std::vector<Memory> healthy{{"small", 50, 1, 32},
                                    {"as large as the run", 1000000, 4, 64},
                                    {"many draws of each", 1000000, 1, 256},
                                    {"few draws", 1000000, 64, 4},
                                    {"a set that is given", 1000, 0, 64}};
  for (const Memory& memory : healthy) {
    Agent job(11);
    std::vector<std::uint64_t> held;
    std::map<std::uint64_t, bool> seen;
    std::uint64_t born = 0;
    if (memory.made == 0) {
      while (born < memory.size) held.push_back(born++);
    }
    for (int step = 0; step < 2000; ++step) {
      for (std::size_t i = 0; i < memory.made; ++i) {
        if (held.size() < memory.size) held.push_back(0);
        held[born % std::min(memory.size, held.size())] = born;
        if (held.size() < memory.size || born < memory.size) held.back() = born;
        ++born;
      }
      double fresh = 0;
      for (std::size_t i = 0; i < memory.drawn; ++i) {
        bool& was = seen[held[job.chance.bits() % held.size()]];
        fresh += was ? 0 : 1;
        was = true;
      }
      job.say(reward_ledger({{"made", static_cast<double>(memory.made)},
                             {"drawn", static_cast<double>(memory.drawn)},
                             {"fresh", fresh}}));
      if (!job.kinds().empty()) break;
    }
    EXPECT_EQ(job.kinds(), "") << memory.name << ": " << job.summary();
  }
}

}  // namespace
}  // namespace tocsin::rules
