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
using core::Mode;
using core::Role;

/// One step of one loss call, per sample: what the ledger says of a batch.
struct Batch {
  double samples = 32;
  double loss = 2.3;
  double trivial = 2.3;
  double w = 0.5;       // of pairs
  double pairs = 14;    // with different targets, that an exchange changes
  double noise = 0.02;  // of the loss
  std::map<std::string, double> more = {};
  std::string call = "cross_entropy";
};

/// A training that sends its ledger.
struct Ledger : SteppedJob {
  explicit Ledger(std::uint64_t seed = 1, const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("chance_level", with)}, chance(seed) {}

  void send(const std::map<std::string, double>& fields, const std::string& call,
            FakeWorker* from = nullptr) {
    FakeWorker& sender = from == nullptr ? worker : *from;
    std::vector<Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [field, value] : fields) {
      const std::string name = "ledger/" + call + "/" + field;
      scalars.push_back({name, step, value, Role::ledger});
      entries.push_back({core::DictionaryType::scalar, name, Role::ledger});
    }
    rule.feed(sender.dictionary(entries));
    rule.feed(sender.scalars(mode, scalars));
  }
  void batch(const Batch& b) {
    const double noisy = b.loss + chance.normal() * b.noise;
    std::map<std::string, double> fields{
        {"samples", b.samples},      {"calls", 1},
        {"loss", b.samples * noisy}, {"trivial", b.samples * b.trivial},
        {"pairs", b.pairs},          {"wins", chance.wins(b.w, static_cast<int>(b.pairs))},
        {"crossed", b.samples},      {"labels", b.samples / 4}};
    for (const auto& [name, value] : b.more) fields[name] = value;
    std::erase_if(fields, [](const auto& field) { return std::isnan(field.second); });
    send(fields, b.call);
  }
  void plan(double updates) { send({{"updates", updates}}, "plan"); }
  void rate(double value) {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "learning_rate", Role::metric}}));
    rule.feed(worker.scalars(mode, {{"learning_rate", step, value, Role::metric}}));
  }
  /// Steps as `at` says of each, 0 … 1 of the way through them.
  Ledger& go(int steps, const std::function<Batch(double)>& at) {
    for (int i = 0; i < steps; ++i) {
      batch(at(static_cast<double>(i) / steps));
      end();
    }
    return *this;
  }
  /// A pass of evaluation behind the newest training step.
  void evaluate(int batches, const Batch& b) {
    const std::int64_t trained = step;
    mode = Mode::eval;
    step = evaluated;
    for (int i = 0; i < batches; ++i) {
      batch(b);
      end();
    }
    evaluated = step;
    mode = Mode::train;
    step = trained;
  }
  std::string kinds() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) {
      const std::string kind = issue.kind + "@" + std::to_string(issue.step.value_or(-1));
      if (out.find(issue.kind + "@") == std::string::npos) out += (out.empty() ? "" : " ") + kind;
    }
    return out;
  }

  Noise chance;
  std::int64_t evaluated = 0;
};

Batch knows(double skill, double w) { return {.loss = 2.3 * (1 - skill), .w = w}; }
Batch nothing(double) { return {}; }

// -------------------------------------------------------------------------------- faults

TEST(ChanceLevel, BatchesOfAPassThatIsOneStepAreAddedUp) {
  Ledger job;
  job.go(200, [](double) { return knows(0.8, 0.95); });
  job.mode = Mode::eval;
  job.step = 0;
  for (int i = 0; i < 200; ++i) job.batch({});  // 14 pairs of a batch say nothing, 2800 do
  job.end();
  EXPECT_EQ(job.status(), "IssuesFound");
}

TEST(ChanceLevel, LabelsThatWereShuffledAreToldWithinTheFirstLooks) {
  Ledger job;
  job.go(300, nothing);
  const auto issues = job.rule.firing();
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues[0].kind, "nothing");
  EXPECT_EQ(issues[0].step, 255);
  EXPECT_EQ(issues[0].severity, core::Severity::warning);
  EXPECT_NE(issues[0].summary.find(
                "updates the loss of cross_entropy is 2.3; guessing by class frequency has 2.3. "
                "The outputs fit their own targets better than another sample's in "),
            std::string::npos)
      << issues[0].summary;
  EXPECT_EQ(job.status(), "IssuesFound");
  EXPECT_NE(
      summed_up(job.rule).find(R"({"hit":{"cross_entropy train":{"kind":"nothing","updates":300)"),
      std::string::npos)
      << summed_up(job.rule);
}

TEST(ChanceLevel, ARunThatLosesAllItKnewHasForgotten) {
  Ledger job(2);
  job.go(200, [](double at) { return knows(0.6 * at, 0.5 + 0.4 * at); });
  EXPECT_EQ(job.kinds(), "");
  job.go(400, nothing);
  EXPECT_EQ(job.kinds().substr(0, 7), "forgot@");
  const auto issues = job.rule.firing();
  ASSERT_FALSE(issues.empty());
  EXPECT_TRUE(issues[0].summary.find("Before that the model was better.") != std::string::npos)
      << issues[0].summary;
  job.go(100, [](double) { return knows(0.5, 0.9); });
  EXPECT_EQ(job.rule.resolved().size(), 1U) << "and knows it again";
}

TEST(ChanceLevel, ALossFarAboveOneConstantAnswerIsWorse) {
  Ledger job(3);
  job.go(140, [](double) { return knows(-0.5, 0.7); });
  EXPECT_EQ(job.kinds(), "worse@63");
}

TEST(ChanceLevel, TrainingThatLearnsWhatEvaluationDoesNotKnowIsMemorised) {
  Ledger job(4);
  for (int epoch = 0; epoch < 10; ++epoch) {
    job.go(50, [&](double) { return knows(0.08 * epoch, 0.95); });
    job.evaluate(50, {.loss = 3, .w = 0.5});
  }
  const auto issues = job.rule.firing();
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues[0].kind, "memorised");
  EXPECT_EQ(issues[0].mode, Mode::eval);
}

TEST(ChanceLevel, NoTargetsThatCountInThreeStepsInARow) {
  Ledger job;
  const std::map<std::string, double> bare{{"samples", 0}, {"no_targets", 1}, {"calls", 1}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(job.kinds(), "");
    job.send(bare, "cross_entropy");
    job.end();
  }
  EXPECT_EQ(job.kinds(), "no_targets@2");
}

TEST(ChanceLevel, NoTargetsInMoreThanAFifthOfTheSteps) {
  Ledger job;
  const std::map<std::string, double> bare{{"samples", 0}, {"no_targets", 1}, {"calls", 1}};
  for (int i = 0; i < 24; ++i) {
    i % 4 == 0 ? job.send(bare, "cross_entropy") : job.batch(knows(0.3, 0.9));
    job.end();
  }
  EXPECT_EQ(job.kinds(), "no_targets@19") << "five of twenty";
}

TEST(ChanceLevel, OutputsThatAreTheSameForAllSamplesKnowNothing) {
  Ledger job(5);
  job.go(200, [](double) { return Batch{.pairs = 0, .noise = 0.005}; });
  ASSERT_EQ(job.kinds(), "nothing@63");
  EXPECT_NE(job.rule.firing()[0].summary.find("The outputs are the same for all samples"),
            std::string::npos);
}

TEST(ChanceLevel, HalfThroughThePlanItIsAnError) {
  Ledger job;
  job.plan(400);
  job.go(300, nothing);
  ASSERT_FALSE(job.rule.firing().empty());
  EXPECT_EQ(job.rule.firing()[0].severity, core::Severity::error);
}

// ------------------------------------------------------- healthy runs that look ill at first

TEST(ChanceLevelTwins, APlateauThatCreepsAndLearnsAtHalfOfThePlan) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Ledger job(seed);
    job.plan(600);
    job.go(300, [](double at) { return knows(0.012 * at, 0.5 + 0.02 * at); });
    job.go(300, [](double at) { return knows(0.012 + 0.5 * at, 0.52 + 0.4 * at); });
    EXPECT_EQ(job.kinds(), "") << seed;
    EXPECT_EQ(job.status(), "NoIssuesFound");
  }
}

TEST(ChanceLevelTwins, AShortPlateauInALongPlan) {
  Ledger job(6);
  job.plan(10000);
  job.go(600, nothing);
  job.go(200, [](double at) { return knows(0.5 * at, 0.5 + 0.4 * at); });
  EXPECT_EQ(job.kinds(), "") << "600 of 10000 updates do not say that it will not arrive";
}

TEST(ChanceLevelTwins, RarePositivesInOrderWhoseLossIsThatOfAConstant) {
  Ledger job(7);
  job.go(1200, [](double) {
    return Batch{.loss = 0.135, .trivial = 0.135, .w = 0.75, .pairs = 2, .noise = 0.01};
  });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(ChanceLevelTwins, AHeadThatStartsAtZeroHasTiesAtFirst) {
  Ledger job(8);
  job.go(20, [](double) { return Batch{.pairs = 0, .noise = 0}; });
  job.go(300, [](double at) { return knows(0.4 * at, 0.6 + 0.3 * at); });
  EXPECT_EQ(job.kinds(), "");
}

TEST(ChanceLevelTwins, AdversarialCallsAreNotJudged) {
  Ledger job(9);
  job.go(400, [](double) {
    return Batch{
        .loss = 0.69, .trivial = 0.69, .w = 0.5, .more = {{"calls", 2}, {"one_target", 1}}};
  });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoData");
}

TEST(ChanceLevelTwins, AFineTuneThatIsFinishedDoesNotFallAnyMore) {
  Ledger job(10);
  job.go(600, [](double) { return knows(0.9, 0.97); });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
  EXPECT_EQ(summed_up(job.rule).substr(0, 29), R"({"ok":{"cross_entropy train":)");
}

TEST(ChanceLevelTwins, TinyDataDecidesNothing) {
  Ledger job(11);
  job.go(40, [](double) { return Batch{.samples = 4, .pairs = 1}; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoData");
  const std::string told = summed_up(job.rule);
  EXPECT_NE(told.find(R"("undecided":{"cross_entropy train":)"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("needs_steps":24)"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("needs_pairs":1486)"), std::string::npos) << told;
}

TEST(ChanceLevelTwins, AWarmUpOfTheRateIsNoPlateau) {
  Ledger job(12);
  for (int i = 0; i < 200; ++i) {
    job.rate(0.001 * (i + 1));
    job.batch({});
    job.end();
  }
  job.go(200, [](double at) { return knows(0.5 * at, 0.5 + 0.4 * at); });
  EXPECT_EQ(job.kinds(), "");
}

TEST(ChanceLevelTwins, ASecondLossKnowsItsTargets) {
  Ledger job(13);
  for (int i = 0; i < 300; ++i) {
    job.batch({});
    Batch other = knows(0.5, 0.9);
    other.call = "mse_loss";
    job.batch(other);
    job.end();
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(ChanceLevelTwins, AnOverfittedEvaluationThatStillKnowsItsTargets) {
  Ledger job(14);
  for (int epoch = 0; epoch < 10; ++epoch) {
    job.go(50, [&](double) { return knows(0.08 * epoch, 0.95); });
    job.evaluate(50, {.loss = 2.3 + 0.3 * epoch, .w = 0.7});
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(ChanceLevelTwins, ASmallEvaluationSetIsNoEvidenceTwice) {
  Ledger job(15);
  for (int epoch = 0; epoch < 60; ++epoch) {
    job.go(20, [&](double) { return knows(0.6, 0.95); });
    job.evaluate(1, {.samples = 64, .loss = 2, .w = 0.45, .pairs = 30});
  }
  EXPECT_EQ(job.kinds(), "") << "the same thirty pairs in each pass";
}

TEST(ChanceLevelTwins, ABadStartThatFallsTowardsAConstant) {
  Ledger job(16);
  job.go(120, [](double at) { return knows(-0.8 + 0.6 * at, 0.5); });
  EXPECT_EQ(job.kinds(), "");
}

// ------------------------------------------------------------------------- metamorphic

/// Each step of the same course, sent in other ways.
std::string told(const std::function<void(Ledger&, const std::map<std::string, double>&)>& send,
                 int workers = 1) {
  Ledger job(21);
  job.worker = FakeWorker("digits", "same", 0, static_cast<std::uint32_t>(workers));
  Noise chance(5);
  for (int i = 0; i < 260; ++i) {
    const double wins = chance.wins(0.5, 20);
    send(job, {{"samples", 64},
               {"loss", 64 * (2.25 + 0.015625 * std::round(chance.normal()))},
               {"trivial", 144},
               {"pairs", 20},
               {"wins", wins},
               {"calls", 1}});
  }
  return job.kinds() + " " + (job.rule.firing().empty() ? "" : job.rule.firing()[0].summary);
}

TEST(ChanceLevelSame, TwoWorkersWithHalfEachAndBatchesInParts) {
  const std::string once = told([](Ledger& job, const auto& fields) {
    job.send(fields, "loss");
    job.end();
  });
  EXPECT_EQ(once.substr(0, 8), "nothing@");
  FakeWorker second("digits", "same", 1, 2);
  const auto split = [&](Ledger& job, std::map<std::string, double> fields, bool backwards) {
    std::map<std::string, double> rest;
    for (auto& [name, value] : fields) {
      if (name == "calls") continue;
      rest[name] = std::floor(value / 2);
      value -= rest[name];
    }
    rest["calls"] = 1;
    for (int i = 0; i < 2; ++i) {
      (i == 0) != backwards ? job.send(fields, "loss") : job.send(rest, "loss", &second);
    }
    job.rule.feed(backwards ? second.step_end(job.mode, job.step)
                            : job.worker.step_end(job.mode, job.step));
    job.rule.feed(backwards ? job.worker.step_end(job.mode, job.step)
                            : second.step_end(job.mode, job.step));
    ++job.step;
  };
  EXPECT_EQ(told([&](Ledger& job, const auto& fields) { split(job, fields, false); }, 2), once);
  second = FakeWorker("digits", "same", 1, 2);
  EXPECT_EQ(told([&](Ledger& job, const auto& fields) { split(job, fields, true); }, 2), once);
}

TEST(ChanceLevelSame, TargetsOnAnotherScale) {
  const auto scaled = [](double by) {
    return told([by](Ledger& job, std::map<std::string, double> fields) {
             fields["loss"] *= by;
             fields["trivial"] *= by;
             job.send(fields, "loss");
             job.end();
           })
        .substr(0, 12);
  };
  EXPECT_EQ(scaled(1).substr(0, 8), "nothing@");
  EXPECT_EQ(scaled(1024), scaled(1));
  EXPECT_EQ(scaled(1.0 / 4096), scaled(1));
}

TEST(ChanceLevel, WithoutALedgerThereIsNothingToJudge) {
  Ledger job;
  job.rate(0.1);
  job.end();
  EXPECT_EQ(job.status(), "NoData");
}

TEST(ChanceLevel, ALossThatIsNotKnownOfAllWorkersIsNotCompared) {
  Ledger job;
  job.worker = FakeWorker("digits", "same", 0, 2);
  FakeWorker second("digits", "same", 1, 2);
  for (int i = 0; i < 140; ++i) {
    job.send({{"samples", 32}, {"loss", 90}, {"trivial", 64}}, "loss");
    job.send({{"samples", 32}, {"loss", 90}}, "loss", &second);
    job.rule.feed(job.worker.step_end(job.mode, job.step));
    job.rule.feed(second.step_end(job.mode, job.step++));
  }
  EXPECT_EQ(job.kinds(), "") << "twice the loss of one trivial";
}

}  // namespace
}  // namespace tocsin::rules
