#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Role;

/// What the hook says of an update.
struct Update {
  double cosine = -0.5;  // of gradient and way
  double turned = 0.1;   // of this gradient and the one before
  double gradient = 1;
  double stands_for = 1;
};

/// A training that sends what its updates did.
struct MovingJob : SteppedJob {
  explicit MovingJob(const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("movement", with)} {}

  void send(const std::map<std::string, double>& fields, Role role = Role::ledger) {
    std::vector<testing_support::Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [name, value] : fields) {
      scalars.push_back({name, step, value, role});
      entries.push_back({core::DictionaryType::scalar, name, role});
    }
    rule.feed(worker.dictionary(entries));
    rule.feed(worker.scalars(mode, scalars));
  }
  void update(const Update& u) {
    send({{"ledger/movement/stands_for", u.stands_for},
          {"ledger/movement/along", u.cosine * std::sqrt(u.gradient) * 2},
          {"ledger/movement/gradient", u.gradient},
          {"ledger/movement/update", 4},
          {"ledger/movement/turned", u.turned}});
  }
  void loss(double samples, double value, double trivial) {
    send({{"ledger/cross_entropy/samples", samples},
          {"ledger/cross_entropy/calls", 1},
          {"ledger/cross_entropy/loss", samples * value},
          {"ledger/cross_entropy/trivial", samples * trivial},
          {"ledger/cross_entropy/crossed", samples}});
  }
  void parameters(double zero, double without = 0, const std::vector<std::string>& names = {}) {
    std::map<std::string, double> fields{{"ledger/movement/trainable", 10},
                                         {"ledger/movement/without", without},
                                         {"ledger/movement/zero", zero},
                                         {"ledger/movement/trainable_elements", 1000},
                                         {"ledger/movement/zero_elements", 100 * zero}};
    for (const std::string& name : names) fields["ledger/movement/never/" + name] = 100;
    send(fields);
  }
  MovingJob& go(int updates, const std::function<Update(int)>& at) {
    for (int i = 0; i < updates; ++i) {
      update(at(i));
      end();
    }
    return *this;
  }
  std::string kinds() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) {
      if (out.find(issue.kind) == std::string::npos) out += (out.empty() ? "" : " ") + issue.kind;
    }
    return out;
  }
};

// ------------------------------------------------------------------------------- faults

TEST(Movement, UpdatesAlongTheGradientAreToldWithinTwentyLooks) {
  MovingJob job;
  job.go(40, [](int) { return Update{.cosine = 1}; });
  const auto issues = job.rule.firing();
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues[0].kind, "uphill");
  EXPECT_LE(issues[0].step.value_or(-1), 20);
  EXPECT_EQ(issues[0].severity, core::Severity::warning);
  EXPECT_NE(issues[0].summary.find("Updates raise the loss"), std::string::npos)
      << issues[0].summary;
  EXPECT_EQ(job.status(), "IssuesFound");
}

TEST(Movement, NoiseHidesTheDirectionForAWhile) {
  Noise chance(1);
  MovingJob job;
  job.go(200, [&](int) { return Update{.cosine = std::tanh(0.2 + 0.1 * chance.normal())}; });
  EXPECT_EQ(job.kinds(), "uphill");
}

TEST(Movement, ARateBelowZeroIsToldAtOnce) {
  MovingJob job;
  job.go(50, [](int) { return Update{}; });
  EXPECT_EQ(job.kinds(), "");
  job.send({{"learning_rate", -0.01}}, Role::metric);
  job.update({.cosine = 0.5});
  job.end();
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "uphill");
  EXPECT_EQ(issues[0].summary,
            "The learning rate is -0.01 at train step 50: updates raise the loss.");
}

TEST(Movement, ParametersWithGradientsOfZeroAreNamed) {
  MovingJob job;
  job.go(199, [](int) { return Update{}; });
  job.parameters(2, 1, {"a.weight", "b.weight"});
  job.end();
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "never");
  EXPECT_EQ(issues[0].summary,
            "Of 10 trainable parameters, 2 (20 % of the elements) had a zero gradient at each of "
            "the last 200 updates or more, up to train step 199: a.weight, b.weight.");
}

TEST(Movement, WhatMovesAfterAllIsResolved) {
  MovingJob job("{clear_after: 1}");
  job.parameters(1, 0, {"a"});
  job.end();
  EXPECT_EQ(job.rule.firing().size(), 1U);
  job.parameters(0);
  job.end();
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

TEST(Movement, GradientsThatTurnRoundWhileNothingIsLearnedAreTold) {
  Noise chance(2);
  MovingJob job;
  for (int i = 0; i < 300; ++i) {
    job.loss(32, 2.5 + 0.05 * chance.normal(), 2.3);
    job.update({.cosine = -1, .turned = -0.9});
    job.end();
  }
  EXPECT_EQ(job.kinds(), "oscillates");
  EXPECT_NE(summed_up(job.rule).find(R"("hit":{"successive gradients")"), std::string::npos)
      << summed_up(job.rule);
}

TEST(Movement, GradientsThatHardlyTurnWhileNothingIsLearnedAreTold) {
  Noise chance(3);
  MovingJob job;
  for (int i = 0; i < 600; ++i) {
    job.loss(32, 2.35 + 0.01 * chance.normal(), 2.3);
    job.update({.cosine = -1, .turned = 0.999});
    job.end();
  }
  EXPECT_EQ(job.kinds(), "crawls");
}

/// How far tensors went beside others of their role.
void say_slow(MovingJob& job, double compared, const std::map<std::string, double>& slow) {
  std::map<std::string, double> fields{{"ledger/movement/compared", compared},
                                       {"ledger/movement/directed", 1.5},
                                       {"ledger/movement/directed_updates", 16}};
  for (const auto& [name, share] : slow) fields["ledger/movement/slow/" + name] = share;
  job.send(fields);
  job.update({});
  job.end();
}

TEST(Movement, ATensorThatStandsStillBesideItsRoleIsToldAtTheThirdDoubling) {
  MovingJob job;
  for (int word = 0; word < 3; ++word) {
    EXPECT_EQ(job.kinds(), "") << word;
    say_slow(job, 6, {{"layers.3.weight", 1e-5}, {"layers.2.weight", 0.005}});
  }
  EXPECT_EQ(job.kinds(), "still");
  ASSERT_EQ(job.rule.firing().size(), 1U);
  EXPECT_NE(job.rule.firing()[0].summary.find("layers.3.weight moves 1e-05 times as far"),
            std::string::npos)
      << job.rule.firing()[0].summary;
}

TEST(Movement, ATensorThatMovesAgainIsQuiet) {
  MovingJob job;
  for (int word = 0; word < 8; ++word) {
    say_slow(job, 6, {{"layers.3.weight", word % 3 == 2 ? 0.5 : 1e-5}});
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, TheCardTellsHowFarGradientsHaveADirection) {
  MovingJob job;
  say_slow(job, 6, {});
  EXPECT_EQ(job.status(), "NoIssuesFound");
  const std::string told = summed_up(job.rule);
  EXPECT_NE(told.find(R"("direction":0.0333)"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("way of tensors":{"compared":6,"still":0})"), std::string::npos) << told;
}

/// Gradients say that updates went down by so much each, and the loss is what it is.
void go_paid(MovingJob& job, int updates, double pay, const std::function<double(int)>& loss) {
  for (int i = 0; i < updates; ++i) {
    job.loss(32, loss(i), 2.3);
    job.send({{"ledger/movement/pays", -pay}});
    job.update({});
    job.end();
  }
}

TEST(Movement, UpdatesThatDoNotPayWhileNothingIsLearnedAreTold) {
  Noise chance(7);
  MovingJob job;
  go_paid(job, 600, 0.05, [&](int) { return 2.31 + 0.02 * chance.normal(); });
  EXPECT_EQ(job.kinds(), "no_pay");
  EXPECT_NE(summed_up(job.rule).find(R"("hit":{"pay of updates")"), std::string::npos)
      << summed_up(job.rule);
}

// ------------------------------------------------------------- twins: healthy, and look ill

TEST(Movement, HeavyMomentumGoesUpForHalfOfItsTime) {
  // A damped swing: x'' + 2γx' + x = 0. Gradient x, way x'.
  MovingJob job;
  double x = 1;
  double v = 0;
  for (int i = 0; i < 3000; ++i) {
    v = 0.999 * v - 1e-4 * x;
    const double along = x * v;
    job.send({{"ledger/movement/stands_for", 1},
              {"ledger/movement/along", along},
              {"ledger/movement/gradient", x * x},
              {"ledger/movement/update", v * v},
              {"ledger/movement/turned", 1}});
    x += v;
    job.end();
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, AGradientThatFirstFallsByThousandsIsNoReason) {
  Noise chance(4);
  MovingJob job;
  job.go(500, [&](int i) {
    return Update{.cosine = std::tanh(-0.1 + 0.2 * chance.normal()),
                  .gradient = std::exp(-0.05 * i)};
  });
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, FullBatchesAtTheEdgeOfStabilityLearn) {
  Noise chance(5);
  MovingJob job;
  for (int i = 0; i < 400; ++i) {
    job.loss(32, 2.3 * std::exp(-i / 100.0) + 0.02 * chance.normal(), 2.3);
    job.update({.cosine = -1, .turned = -0.8});
    job.end();
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, SmoothDescentOfFullBatchesLearns) {
  MovingJob job;
  for (int i = 0; i < 600; ++i) {
    job.loss(32, 2.3 - 0.003 * i, 2.3);
    job.update({.cosine = -1, .turned = 0.9999});
    job.end();
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, AGanStandsWhereItIsWhileBothSidesLearn) {
  MovingJob job;
  for (int i = 0; i < 600; ++i) {
    job.loss(64, 0.69, 0.69);
    job.send({{"ledger/cross_entropy/one_target", 2}, {"ledger/cross_entropy/calls", 1}});
    job.update({.cosine = -0.4, .turned = 0.99});
    job.end();
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, UpdatesThatPayOrBelongToAModelThatKnowsAreQuiet) {
  const std::map<std::string, std::function<double(int)>> losses{
      {"it falls", [](int i) { return 2.3 - 0.003 * i; }},
      {"a new task comes whenever one is learned", [](int i) { return 2.0 - 0.01 * (i % 100); }},
      {"the answers of a teacher become sharper", [](int) { return 1.5; }}};
  for (const auto& [why, loss] : losses) {
    Noise chance(8);
    MovingJob job;
    const auto& at = loss;
    go_paid(job, 600, 0.003, [&](int i) { return at(i) + 0.005 * chance.normal(); });
    EXPECT_EQ(job.kinds(), "") << why;
  }
}

TEST(Movement, OfSeveralLossesNobodyKnowsWhichIsPaidFor) {
  Noise chance(9);
  MovingJob job;
  for (int i = 0; i < 600; ++i) {
    job.send({{"ledger/mse_loss/samples", 32}, {"ledger/mse_loss/loss", 32 - 0.05 * i}});
    go_paid(job, 1, 0.05, [&](int) { return 2.31 + 0.02 * chance.normal(); });
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(Movement, PartsThatNobodyUsesStandInTheCardAlone) {
  MovingJob job;
  job.go(300, [](int) { return Update{}; });
  job.parameters(0, 3);
  job.end();
  EXPECT_EQ(job.status(), "NoIssuesFound");
  EXPECT_NE(summed_up(job.rule).find(R"("without_gradient":3)"), std::string::npos)
      << summed_up(job.rule);
}

TEST(Movement, WithoutALossNobodyKnowsWhetherTurningGradientsHarm) {
  MovingJob job;
  job.go(400, [](int) { return Update{.cosine = -1, .turned = -0.9}; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_NE(summed_up(job.rule).find(R"("undecided":{"successive gradients")"), std::string::npos)
      << summed_up(job.rule);
}

TEST(Movement, UpdatesThatWereLeftOutSayNothing) {
  MovingJob job;
  job.go(100, [](int) { return Update{.gradient = 0}; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(summed_up(job.rule).find("way of updates"), std::string::npos) << summed_up(job.rule);
}

// ------------------------------------------------------------------------------- the card

TEST(Movement, TheCardTellsWhatIsMissing) {
  Noise chance(6);
  MovingJob job;
  job.go(70, [&](int) {
    return Update{.cosine = std::tanh(-0.1 + 0.02 * chance.normal()), .turned = 0};
  });
  const auto sums = sums_of(job.rule);
  ASSERT_FALSE(sums.empty()) << "at 64 updates";
  EXPECT_NE(sums[0].told.find(R"("undecided":{"way of updates":{"looks":64,)"), std::string::npos)
      << sums[0].told;
  EXPECT_NE(sums[0].told.find(R"("needs_looks")"), std::string::npos) << sums[0].told;
  job.go(400, [](int) { return Update{.cosine = -0.5, .turned = 0}; });
  EXPECT_EQ(job.status(), "NoIssuesFound");
  const std::string told = summed_up(job.rule);
  EXPECT_NE(told.find(R"("ok":{"way of updates":{"looks":470,)"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("successive gradients":{"looks":470,)"), std::string::npos) << told;
}

}  // namespace
}  // namespace tocsin::rules
