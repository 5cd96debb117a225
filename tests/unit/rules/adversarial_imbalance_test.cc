#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/rules/rule_bench.h"

namespace tocsin::rules {
namespace {

using core::Mode;
using core::Role;

/// A generator and a discriminator.
struct Game {
  SeriesBench rule;
  std::int64_t step = 0;
  explicit Game(const std::string& with = "{}") : rule("adversarial_imbalance", with) {}
  std::string play(double generator, double discriminator) {
    return rule.step(Mode::train, step++, {{"g_loss", generator}, {"d_loss", discriminator}});
  }
};

TEST(AdversarialImbalance, MediansFarApart) {
  Game game;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(game.play(1, 1), "losses: insufficient_data");
  EXPECT_EQ(game.play(1, 1), "losses: ok") << "five values of each";
  EXPECT_EQ(game.play(5, 0.01), "losses: ok");
  EXPECT_EQ(game.play(5, 0.01), "losses: ok");
  EXPECT_EQ(game.play(5, 0.01), "losses: hit") << "the medians have turned: 0.002";
  EXPECT_EQ(game.play(5, 0.01), "losses: hit");
  EXPECT_NEAR(game.rule.told[1].finding.observed.value, 0.002, 1e-15);
  EXPECT_EQ(game.rule.told[1].finding.first_step, 7);
  EXPECT_EQ(game.rule.told[1].finding.points, 2U);
  EXPECT_NE(game.rule.told[0].finding.summary.find("d_loss has nearly won"), std::string::npos);
}

TEST(AdversarialImbalance, TheLimitIsStrict) {
  Game at;
  for (int i = 0; i < 12; ++i) EXPECT_NE(at.play(1, 0.02), "losses: hit");
  Game below("{ratio_threshold: 0.02, balanced_first: false}");
  for (int i = 0; i < 4; ++i) below.play(1, 0.0199);
  EXPECT_EQ(below.play(1, 0.0199), "losses: hit");
}

TEST(AdversarialImbalance, LossesThatAreWeightedSoFromTheStart) {
  Game game;
  for (int i = 0; i < 4; ++i) game.play(100, 0.5);  // a reconstruction and a small penalty
  for (int i = 0; i < 6; ++i) EXPECT_EQ(game.play(100, 0.5), "losses: not_applicable");
}

TEST(AdversarialImbalance, OneLossIsNoGame) {
  SeriesBench rule("adversarial_imbalance");
  for (std::int64_t step = 0; step < 9; ++step) {
    EXPECT_EQ(rule.step(Mode::train, step, {{"loss", 1}, {"val_loss", 0.001}, {"auc", 0.5}}), "")
        << "an evaluation's and a metric that grows do not count";
  }
}

TEST(AdversarialImbalance, AnActorAndItsCriticAreNoAdversaries) {
  const auto hits = [](const std::string& actor, const std::string& critic) {
    SeriesBench rule("adversarial_imbalance");
    int count = 0;
    for (std::int64_t i = 0; i < 20; ++i) {
      const bool late = i >= 5;
      const std::string said =
          rule.step(Mode::train, i, {{actor, late ? 2.0 : 1.0}, {critic, late ? 0.01 : 1.0}});
      count += said == "losses: hit" ? 1 : 0;
    }
    return count;
  };
  EXPECT_GT(hits("generator_loss", "critic_loss"), 0) << "a Wasserstein critic is one";
  EXPECT_EQ(hits("actor_loss", "critic_loss"), 0);
  EXPECT_EQ(hits("train/policy_loss", "train/value_loss"), 0);
  EXPECT_GT(hits("valued_loss", "critic_loss"), 0) << "words, no parts of words";
}

TEST(AdversarialImbalance, NegativeAndBrokenLosses) {
  Game critic("{balanced_first: false}");
  for (int i = 0; i < 4; ++i) critic.play(3, -2);
  EXPECT_EQ(critic.play(3, -2), "losses: not_applicable");
  Game broken;
  for (int i = 0; i < 5; ++i) broken.play(1, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(broken.play(1, i == 0 ? std::nan("") : 1), "losses: insufficient_data") << i;
  }
  EXPECT_EQ(broken.play(1, 1), "losses: ok") << "it has left the window";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(broken.play(1, 0), "losses: ok");
  EXPECT_EQ(broken.play(1, 0), "losses: hit") << "a loss of 0 is the smallest there is";
}

TEST(AdversarialImbalance, IsToldAtTheThirdStep) {
  testing_support::RuleHarness rule = testing_support::RuleHarness::of("adversarial_imbalance");
  testing_support::FakeWorker worker;
  for (std::int64_t step = 0; step < 11; ++step) {
    const double small = step < 5 ? 1 : 0.001;
    rule.feed(worker.scalars(Mode::train, {{"g_loss", step, 1}, {"d_loss", step, small}}));
    rule.feed(worker.step_end(Mode::train, step));
  }
  ASSERT_EQ(rule.firing().size(), 1U);
  EXPECT_EQ(rule.firing()[0].step, 9) << "the medians have turned at 7";
}

TEST(AdversarialImbalance, ModesHaveMemoriesOfTheirOwn) {
  SeriesBench rule("adversarial_imbalance", "{balanced_first: false}");
  const std::vector<BenchValue> unequal{{"g_loss", 1}, {"d_loss", 0.001}};
  for (std::int64_t step = 0; step < 4; ++step) {
    rule.step(Mode::train, step, unequal);
    rule.step(Mode::global, step, unequal);
  }
  EXPECT_TRUE(rule.told.empty());
  EXPECT_EQ(rule.step(Mode::global, 4, unequal), "losses: hit") << "five values of its own";
  EXPECT_EQ(rule.pass(4, unequal), "");
}

}  // namespace
}  // namespace tocsin::rules
