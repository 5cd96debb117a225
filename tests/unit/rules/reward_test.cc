#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rules/builtin/shared/reward_names.h"
#include "tests/support/rule_harness.h"
#include "tests/unit/rules/reward_agent.h"

namespace tocsin::rules {
namespace {

using namespace reward_support;  // NOLINT: the harness is this file's language

// ------------------------------------------------------------------------------------- names

TEST(RewardNames, TypicalNamesAreRead) {
  const std::map<std::string, RewardSignal> expected{
      {"reward", RewardSignal::reward},
      {"train/reward", RewardSignal::reward},
      {"return", RewardSignal::returns},
      {"episode_return", RewardSignal::returns},
      {"charts/episodic_return", RewardSignal::returns},
      {"rollout/ep_rew_mean", RewardSignal::returns},
      {"episode_reward", RewardSignal::returns},
      {"mean_reward", RewardSignal::returns},
      {"Episode Reward", RewardSignal::returns},
      {"advantage", RewardSignal::advantage},
      {"losses/entropy", RewardSignal::entropy},
      {"train/entropy_loss", RewardSignal::entropy},
      {"train/explained_variance", RewardSignal::explained},
      {"priorities", RewardSignal::priority},
      {"importance_weights", RewardSignal::weight},
      {"epsilon", RewardSignal::exploration},
      {"rollout/exploration_rate", RewardSignal::exploration},
      {"eval/mean_reward", RewardSignal::none},
      {"reward_std", RewardSignal::none},
      {"return_max", RewardSignal::none},
      {"ent_coef", RewardSignal::none},
      {"entropy_coef", RewardSignal::none},
      {"target_entropy", RewardSignal::none},
      {"cross_entropy", RewardSignal::none},
      {"reward_model_loss", RewardSignal::none},
      {"running_reward", RewardSignal::none},
      {"returns", RewardSignal::none},
      {"ledger/reward/returns", RewardSignal::none},
      {"completions/mean_length", RewardSignal::length},
      {"response_length/mean", RewardSignal::length},
      {"response_length/clip_ratio", RewardSignal::none},
      {"completions/mean_terminated_length", RewardSignal::none},
      {"completions/max_length", RewardSignal::none},
      {"rollout/ep_len_mean", RewardSignal::none},
      {"episode_length", RewardSignal::none},
      {"weight_norm", RewardSignal::none},
      {"loss", RewardSignal::none},
  };
  for (const auto& [name, signal] : expected) EXPECT_EQ(reward_signal(name), signal) << name;
}

// -------------------------------------------------------------------------------- no_better

constexpr const char* kAtOnce = "{updates: 64}";

TEST(Reward, ReturnsThatFellAreTold) {  // the reward's sign is wrong
  Agent job(1, kAtOnce);
  job.go(600, [&](double at) {
    return Values{{"episode_return", job.noisy(-3 * std::min(1.0, 4 * at))}};
  });
  EXPECT_EQ(job.kinds(), "no_better");
  EXPECT_NE(job.summary().find("the mean of episode_return is -"), std::string::npos)
      << job.summary();
  EXPECT_NE(job.summary().find("Over the first "), std::string::npos) << job.summary();
}

TEST(Reward, ReturnsThatStayThoughActionsWereRandomAreTold) {
  Agent job(2, kAtOnce);
  job.go(9000, [&](double) { return Values{{"episode_return", job.noisy(10)}, {"epsilon", 1}}; });
  EXPECT_EQ(job.kinds(), "no_better");
}

TEST(Reward, ReturnsThatStayUnderAPolicyThatStaysUndecidedAreTold) {
  Agent job(3, kAtOnce);
  job.go(17000, [&](double) {
    return Values{{"episode_return", job.noisy(10)}, {"entropy", job.noisy(1.09, 0.005)}};
  });
  EXPECT_EQ(job.kinds(), "no_better");
  EXPECT_NE(summed_up(job.rule).find("gain_low"), std::string::npos) << summed_up(job.rule);
}

TEST(Reward, CountedEpisodesAreJudgedLikeLoggedOnes) {
  Agent job(4, kAtOnce);
  job.go(400, [&](double at) {
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 5; ++i) {
      const double one = job.noisy(at < 0.1 ? 0 : -2);
      sum += one;
      squares += one * one;
    }
    return reward_ledger({{"episodes", 5}, {"returns", sum}, {"squares", squares}});
  });
  EXPECT_EQ(job.kinds(), "no_better");
  EXPECT_NE(job.summary().find("episode returns"), std::string::npos) << job.summary();
}

TEST(Reward, APolicyThatLearnsIsFine) {
  Agent job(5);
  job.go(600, [&](double at) { return Values{{"episode_return", job.noisy(3 * at)}}; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_NE(summed_up(job.rule).find(R"({"ok":{"episode_return":)"), std::string::npos)
      << summed_up(job.rule);
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(Reward, ReturnsAreJudgedWhenHalfOfThePlanIsOver) {
  Agent job;
  int number = 0;
  const auto one = [&](double) {
    return Values{{"episode_return", job.noisy(number++ < 20 ? 0 : -3, 0.1)},
                  {"ledger/plan/updates", 600}};
  };
  job.go(299, one);
  EXPECT_EQ(job.kinds(), "")
      << "agents that begin to trust what they know may do worse than chance";
  job.go(1, one);
  EXPECT_EQ(job.kinds(), "no_better");
}

TEST(Reward, WithoutAPlanReturnsAreJudgedWhenTheRunIsOver) {
  Agent job;
  job.go(300, [&](double at) {
    return Values{{"episode_return", job.noisy(-3 * std::min(1.0, 4 * at))}};
  });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "IssuesFound");
  Agent late;  // the newest look, at 256, has not seen that it learned at last
  late.go(500, [&](double at) {
    return Values{{"episode_return", late.noisy(at < 0.52 ? (at < 0.1 ? 0 : -3) : 3)}};
  });
  EXPECT_NE(late.status(), "IssuesFound") << late.summary();
}

// Healthy runs whose returns look ill for a while, or all the time.
TEST(Reward, HealthyReturnsAreQuiet) {
  const std::map<std::string, std::function<void(Agent&)>> healthy{
      {"random actions until late, and then what was learned",
       [](Agent& job) {
         job.go(3000, [&](double at) {
           const double epsilon = std::max(0.05, 1 - at / 0.7);
           return Values{{"episode_return", job.noisy(at < 0.6 ? 0 : 4 * (at - 0.6))},
                         {"epsilon", epsilon}};
         });
       }},
      {"a plateau of two fifths of the plan",
       [](Agent& job) {
         job.go(3000, [&](double at) {
           return Values{{"episode_return", job.noisy(10 * std::max(0.0, at - 0.4))},
                         {"entropy", job.noisy(1 - 0.3 * at, 0.01)},
                         {"ledger/plan/updates", 3000}};
         });
       }},
      {"a bandit that knew its best arms after a dozen pulls",
       [](Agent& job) {
         int pull = 0;
         job.go(6000, [&](double) {
           return Values{{"reward_mean", job.chance.wins(pull++ < 12 ? 0.5 : 0.9, 1)}};
         });
       }},
      {"a policy at its optimum from the first episode",
       [](Agent& job) {
         job.go(6000, [&](double) { return Values{{"episode_return", job.noisy(200)}}; });
       }},
      {"worse than chance as soon as it trusts what it has learned, and then better",
       [](Agent& job) {
         job.go(9000, [&](double at) {
           const double mean = at < 0.03 ? 0 : at < 0.4 ? -2 : 20 * (at - 0.45);
           return Values{{"episode_return", job.noisy(mean)},
                         {"epsilon", std::max(0.05, 1 - 30 * at)}};
         });
       }},
      {"learned once, then harder levels",
       [](Agent& job) {
         job.go(4000, [&](double at) {
           const double mean = at < 0.2 ? 20 * at : 4 - 8 * (at - 0.2);
           return Values{{"episode_return", job.noisy(mean)}, {"epsilon", 1 - at}};
         });
       }},
      {"a mean over the last hundred episodes", [](Agent& job) {
         double sum = 0;
         std::vector<double> all;
         job.go(3000, [&](double at) {
           all.push_back(job.noisy(at < 0.5 ? 0 : 3 * (at - 0.5), 1));
           sum += all.back();
           if (all.size() > 100) sum -= all[all.size() - 101];
           return Values{
               {"ep_rew_mean", sum / static_cast<double>(std::min<std::size_t>(all.size(), 100))},
               {"entropy", 1.0 - 0.5 * at}};
         });
       }}};
  for (const auto& [name, run] : healthy) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Agent job(seed);
      run(job);
      EXPECT_EQ(job.kinds(), "") << name << ", " << seed << ": " << job.summary();
      EXPECT_NE(job.status(), "IssuesFound") << name;
    }
  }
}

TEST(Reward, AnAgentMayActInItsEvalState) {
  Agent job(9, kAtOnce);
  std::int64_t acted = 0;
  for (int i = 0; i < 400; ++i) {
    job.say({{"loss", 1}});
    const std::int64_t trained = job.step;
    job.mode = Mode::eval;
    job.step = acted;
    const double mean = i < 40 ? 0 : -3;
    job.say(reward_ledger(
        {{"episodes", 4}, {"returns", 4 * mean + 1}, {"squares", 4 * (mean * mean + 1)}}));
    job.say({{"episode_return", i}});  // of a true evaluation: it says nothing here
    acted = job.step;
    job.mode = Mode::train;
    job.step = trained;
  }
  EXPECT_EQ(job.kinds(), "no_better");
  EXPECT_NE(job.summary().find("After 128 updates the mean of episode returns"), std::string::npos)
      << job.summary();
}

// ------------------------------------------------------------------------------------ value

TEST(Reward, ValuesThatPredictWorseThanAConstantAreTold) {
  Agent job(6);
  job.go(64, [&](double) { return Values{{"train/explained_variance", job.noisy(-0.8, 0.1)}}; });
  EXPECT_EQ(job.kinds(), "value");
  EXPECT_EQ(job.summary().find("From update 33"), 0U) << job.summary();
}

TEST(Reward, ValuesThatBeginBadlyAreQuiet) {
  Agent job(7);
  job.go(64, [&](double at) {
    return Values{{"explained_variance", job.noisy(at < 0.3 ? -3 : at - 0.5, 0.1)}};
  });
  EXPECT_EQ(job.kinds(), "");
  Agent nothing(8);  // values that are one constant explain nothing, and cost nothing
  nothing.go(600, [&](double) { return Values{{"explained_variance", nothing.noisy(0, 0.01)}}; });
  EXPECT_EQ(nothing.kinds(), "");
}

// ------------------------------------------------------------------------------------ length

constexpr const char* kAnswerLength = "completions/mean_length";

TEST(Reward, AnswersThatGrowWithTheRewardAreTold) {
  Agent job;
  job.go(1100, [&](double at) {
    const double grown = std::clamp(3 * (at - 0.1), 0.0, 1.0);
    return Values{{"reward", job.noisy(3 * grown, 0.5)},
                  {kAnswerLength, job.noisy(100 + 600 * grown, 20)}};
  });
  EXPECT_EQ(job.kinds(), "length");
  ASSERT_EQ(job.rule.firing().size(), 1U);
  EXPECT_EQ(job.rule.firing()[0].severity, core::Severity::info);
  EXPECT_NE(job.summary().find("it may pay for length"), std::string::npos) << job.summary();
}

TEST(Reward, AnswersOfOtherLengthsAreQuiet) {
  const std::map<std::string, std::function<Values(Agent&, double)>> healthy{
      {"they double",
       [](Agent& job, double at) {
         return Values{{"reward", job.noisy(3 * at)},
                       {kAnswerLength, job.noisy(100 + 100 * at, 20)}};
       }},
      {"they become short",
       [](Agent& job, double at) {
         return Values{{"reward", job.noisy(3 * at)},
                       {kAnswerLength, job.noisy(500 - 400 * at, 20)}};
       }},
      {"the reward does not grow",
       [](Agent& job, double at) {
         return Values{{"reward", job.noisy(1)}, {kAnswerLength, job.noisy(100 + 600 * at, 20)}};
       }},
      {"episodes of a pole grow with their return",
       [](Agent& job, double at) {
         const double length = std::max(1.0, job.noisy(20 + 180 * at, 5));
         return Values{{"episode_return", length}, {"episode_length", length}};
       }},
  };
  for (const auto& [why, at] : healthy) {
    Agent job;
    job.go(1100, [&, &at = at](double part) { return at(job, part); });
    EXPECT_EQ(job.kinds(), "") << why;
  }
}

TEST(Reward, RewardsWithoutReturnsAskForReturns) {
  Agent job;
  job.go(128, [&](double) { return Values{{"reward", job.noisy(1)}}; });
  EXPECT_NE(summed_up(job.rule).find("needs_episodes"), std::string::npos) << summed_up(job.rule);
}

// ------------------------------------------------------------------------------- the card

TEST(Reward, TheCardSaysWhatIsMissing) {
  Agent job;
  job.go(70, [&](double) { return Values{{"episode_return", job.noisy(0)}, {"reward", 1}}; });
  const std::string told = summed_up(job.rule);
  EXPECT_NE(told.find(R"("undecided":{"episode_return":{"episodes":64)"), std::string::npos)
      << told;
  EXPECT_NE(told.find("needs_entries"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("reward":{"seen":64,"changes":0,"needs":936})"), std::string::npos)
      << told;
}

TEST(Reward, WithoutReturnsThereIsNoData) {
  Agent job;
  job.go(10, [](double) { return Values{{"loss", 1}}; });
  EXPECT_EQ(job.status(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
