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

/// One step of one loss call: what the ledger says of a batch of 32.
struct Outputs {
  double deviation = 1;  // of the outputs, by that of the targets
  double pairs = 14;     // with different targets, that an exchange changes
  double w = 0.9;        // of pairs
  double skill = 0.3;
  double answers = -1;  // share of the most frequent one; −1: quantities
  double labels = 0.5;  // share of the most frequent one
  double noise = 0.02;  // of the loss
  double crossed = 32;  // 0: no pair has different targets
  std::map<std::string, double> more = {};
};
constexpr double kBatch = 32;

Outputs flat() { return {.deviation = 0, .pairs = 0, .skill = 0}; }
Outputs one_answer(double w, double skill = 0) {
  return {.w = w, .skill = skill, .answers = 1, .labels = 0.8};
}
Outputs classes(double w, double skill) {
  return {.w = w, .skill = skill, .answers = 0.7, .labels = 0.6};
}

/// A training that sends its ledger.
struct OutputJob : SteppedJob {
  explicit OutputJob(std::uint64_t seed = 1, const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("collapse", with)}, chance(seed) {}

  void send(const std::map<std::string, double>& fields, const std::string& call = "loss",
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
  void rate(double value) {
    rule.feed(worker.dictionary({{core::DictionaryType::scalar, "learning_rate", Role::metric}}));
    rule.feed(worker.scalars(mode, {{"learning_rate", step, value, Role::metric}}));
  }
  void plan(double updates) { send({{"updates", updates}}, "plan"); }
  void batch(const Outputs& b, const std::string& call = "loss") {
    std::map<std::string, double> fields{
        {"samples", kBatch},
        {"calls", 1},
        {"loss", kBatch * (2 * (1 - b.skill) + chance.normal() * b.noise)},
        {"trivial", kBatch * 2},
        {"pairs", b.pairs},
        {"wins", chance.wins(b.w, static_cast<int>(b.pairs))},
        {"crossed", b.crossed},
        {"output_spread", kBatch * 4 * b.deviation * b.deviation},
        {"target_spread", kBatch * 4}};
    if (b.answers >= 0) {
      fields["answers"] = kBatch * b.answers;
      fields["labels"] = kBatch * b.labels;
      fields["right"] = kBatch * b.labels * b.answers;
    }
    for (const auto& [name, value] : b.more) fields[name] = value;
    send(fields, call);
  }
  OutputJob& go(int steps, const std::function<Outputs(double)>& at) {
    for (int i = 0; i < steps; ++i) {
      batch(at(static_cast<double>(i) / steps));
      end();
    }
    return *this;
  }
  OutputJob& go(int steps, const Outputs& b) {
    return go(steps, [&](double) { return b; });
  }
  /// A pass of evaluation behind the newest training step.
  void evaluate(int batches, const Outputs& b) {
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
      out += (out.empty() ? "" : " ") + issue.kind + "@" + std::to_string(issue.step.value_or(-1));
    }
    return out;
  }

  Noise chance;
  std::int64_t evaluated = 0;
};

// -------------------------------------------------------------------------------- faults

TEST(Collapse, OutputsThatBecomeTheSameAreToldAtTheThirdStep) {
  OutputJob job;
  job.go(20, Outputs{}).go(2, flat());
  EXPECT_EQ(job.kinds(), "");
  job.go(1, flat());
  ASSERT_EQ(job.kinds(), "constant@22");
  EXPECT_EQ(job.rule.firing()[0].summary,
            "The outputs of loss have become equal for all samples (up to train step 22): their "
            "deviation over the samples is 0 times that of the targets (limit 0.001).");
  job.go(3, Outputs{});
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

TEST(Collapse, AHeadThatIsDeadFromTheStartIsToldAt32Steps) {
  OutputJob job;
  job.go(31, flat());
  EXPECT_EQ(job.kinds(), "");
  job.go(9, flat());
  ASSERT_EQ(job.kinds(), "constant@31");
  EXPECT_NE(job.rule.firing()[0].summary.find("have been equal for all samples in every step"),
            std::string::npos);
  EXPECT_EQ(job.status(), "IssuesFound");
  EXPECT_NE(summed_up(job.rule).find(R"({"hit":{"loss train":{"kind":"constant","updates":40)"),
            std::string::npos)
      << summed_up(job.rule);
}

TEST(Collapse, OneClassAlwaysWithScoresWithoutAnOrder) {
  OutputJob job(2);
  job.go(520, one_answer(0.5));
  ASSERT_EQ(job.kinds().substr(0, 11), "one_answer@") << job.kinds();
  const core::Issue issue = job.rule.firing()[0];
  EXPECT_NE(issue.summary.find("the model gives one answer to 100 % of the samples of loss, but "
                               "only 80 % have one label. Its scores put "),
            std::string::npos)
      << issue.summary;
  EXPECT_LE(issue.step.value_or(999), 511);
}

TEST(Collapse, BackgroundEverywhereWithRarePositives) {
  OutputJob job(3);
  Outputs pixels = one_answer(0.5);
  pixels.labels = 0.97;
  pixels.pairs = 6;
  job.go(700, pixels);
  EXPECT_EQ(job.kinds().substr(0, 11), "one_answer@") << job.kinds();
}

TEST(Collapse, AModelThatKnewItsTargetsAndNowGivesOneAnswer) {
  OutputJob job(4);
  job.go(150, [](double at) { return classes(0.6 + 0.35 * at, 0.6 * at); });
  EXPECT_EQ(job.kinds(), "");
  job.go(400, one_answer(0.5, -0.1));
  ASSERT_EQ(job.kinds().substr(0, 11), "one_answer@") << job.kinds();
  EXPECT_LE(job.rule.firing()[0].step.value_or(999), 450) << "no look is waited for";
  EXPECT_NE(job.rule.firing()[0].summary.find("Before that they did better."), std::string::npos);
  job.go(20, classes(0.9, 0.4));
  EXPECT_EQ(job.rule.resolved().size(), 1U) << "its answers differ again";
}

TEST(Collapse, EvaluationThatIsConstantForHalfOfTheUpdates) {
  OutputJob job(5);
  for (int epoch = 0; epoch < 2; ++epoch) {
    job.go(50, classes(0.9, 0.5));
    EXPECT_EQ(job.kinds(), "");
    job.evaluate(5, flat());
  }
  job.go(1, classes(0.9, 0.5));
  ASSERT_EQ(job.kinds(), "constant@7") << "at the third batch of the second pass";
  EXPECT_EQ(job.rule.firing()[0].mode, Mode::eval);
}

TEST(Collapse, EvaluationInTheSecondHalfOfThePlanIsToldAtOnce) {
  OutputJob job(6);
  job.plan(100);
  job.go(60, classes(0.9, 0.5));
  job.evaluate(3, flat());
  EXPECT_EQ(job.status(), "IssuesFound");
  ASSERT_EQ(job.kinds(), "constant@2");
  EXPECT_EQ(job.rule.firing()[0].severity, core::Severity::error);
}

TEST(Collapse, EvaluationThatGivesOneAnswerInTwoPasses) {
  OutputJob job(7);
  for (int epoch = 0; epoch < 3; ++epoch) {
    job.go(60, classes(0.9, 0.3));
    job.evaluate(400, one_answer(0.5));
  }
  EXPECT_EQ(job.status(), "IssuesFound");
  EXPECT_EQ(job.kinds().substr(0, 11), "one_answer@") << job.kinds();
}

/// What the ledger says of 64 rows.
void embed(OutputJob& job, double cosine, double farthest, double directions, double loss = 1,
           double most_labels = 1) {
  job.send({{"rows", 64},
            {"alike", 64 * cosine},
            {"farthest", 64 * farthest},
            {"directions", 64 * directions}},
           "embedding/z");
  job.send({{"samples", 64}, {"calls", 1}, {"loss", 64 * loss}, {"labels", most_labels}});
  job.end();
}

TEST(Collapse, EmbeddingsThatPointIntoOneDirectionWhileTheLossFalls) {
  OutputJob job;
  for (int i = 0; i < 80; ++i) {
    const bool late = i > 15;
    embed(job, late ? 0.999 : 0.1, late ? 0.99 : -0.2, late ? 1.02 : 21, 2.0 / (i + 1), 8);
  }
  ASSERT_EQ(job.kinds(), "embedding@63");
  EXPECT_EQ(job.rule.firing()[0].summary,
            "After 64 updates the rows of embedding/z point in one direction: the mean cosine of "
            "two rows is 0.999 (at first 0.1), while the loss fell from 2 to 0.0312.");
  embed(job, 0.5, 0.1, 9);
  embed(job, 0.5, 0.1, 9);
  embed(job, 0.5, 0.1, 9);
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

TEST(Collapse, EmbeddingsOnALineWhereEachSampleIsAClass) {
  OutputJob job;
  for (int i = 0; i < 80; ++i) embed(job, 0.1, -0.9, i > 15 ? 1.05 : 12);
  ASSERT_EQ(job.kinds(), "embedding@63");
  EXPECT_NE(job.rule.firing()[0].summary.find(
                "lie on a line: their participation ratio is 1.05 (at first 12)"),
            std::string::npos);
}

// ------------------------------------------------------- healthy runs that look ill at first

TEST(CollapseTwins, AHeadThatStartsAtZeroAndAScalerThatSkipsItsFirstUpdates) {
  OutputJob job(11);
  job.go(20, flat());
  job.go(100, [](double at) { return Outputs{.deviation = 0.01 + at}; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(CollapseTwins, AZeroHeadUnderALongWarmUpOfTheRate) {
  OutputJob job(12);
  for (int i = 0; i < 300; ++i) {
    job.rate(1e-9 * (i + 1));
    Outputs b = flat();
    b.deviation = 2e-9 * i * i;
    job.batch(b);
    job.end();
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, OutputsThatGrowSlowlyTowardsUnnormalisedTargets) {
  OutputJob job(13);
  job.plan(20000);
  job.go(200, [](double at) {
    Outputs b = flat();
    b.deviation = 2e-5 * (1 + at);
    return b;
  });
  EXPECT_EQ(job.kinds(), "") << "1e-7 an update: 1e-3 is half of the plan away";
}

TEST(CollapseTwins, AMajorityAnswerWhoseScoresAreInOrder) {
  OutputJob job(14);
  job.go(1200, one_answer(0.7));
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(CollapseTwins, APlateauWithOneAnswerInALongPlan) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    OutputJob job(seed);
    job.plan(10000);
    job.go(600, one_answer(0.5));
    job.go(200, [](double at) { return classes(0.5 + 0.4 * at, 0.4 * at); });
    EXPECT_EQ(job.kinds(), "") << seed;
  }
}

TEST(CollapseTwins, BatchesSortedByClassHaveOneAnswerAndOneLabel) {
  OutputJob job(15);
  Outputs sorted = one_answer(0.5);
  sorted.labels = 1;
  sorted.pairs = 0;
  sorted.crossed = 0;
  sorted.more = {{"one_target", 1}, {"target_spread", 0}};
  job.go(400, sorted);
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, OneTargetForAllSamplesLeavesOutputsAlone) {
  OutputJob job(16);
  Outputs b = flat();
  b.crossed = 0;
  b.more = {{"one_target", 1}, {"target_spread", 0}};
  job.go(5, Outputs{}).go(200, b);
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, AdversarialCallsAreNotJudged) {
  OutputJob job(17);
  Outputs b = flat();
  b.more = {{"one_target", 1}, {"calls", 2}};
  job.go(5, Outputs{}).go(100, b);
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, SmallProbabilitiesHaveASmallVarianceAndDiffer) {
  OutputJob job(18);
  job.go(300, [](double) { return Outputs{.deviation = 1e-5, .w = 0.8, .skill = 0.1}; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(CollapseTwins, AFirstEvaluationBehindFewUpdatesOfItsStatistics) {
  OutputJob job(19);
  job.plan(1000);
  job.go(20, classes(0.7, 0.1));
  job.evaluate(100, one_answer(0.5, -3));
  job.go(20, classes(0.8, 0.2));
  job.evaluate(100, one_answer(0.5, -1));
  job.go(20, classes(0.9, 0.3));
  job.evaluate(100, classes(0.8, 0.2));
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, TargetsFarFromZeroMakeSmallExchangesOfSomePairs) {
  OutputJob job(21);
  job.go(60, [](double at) {
    Outputs b = flat();
    b.deviation = 7e-7 * (1 + 3 * at);
    if (static_cast<int>(at * 60) % 4 == 0) b.pairs = 1;
    return b;
  });
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, TwoClustersAreWhatTwoClassesAskFor) {
  OutputJob job(22);
  for (int i = 0; i < 140; ++i) embed(job, 0.4, 0.3, i > 15 ? 1.02 : 12, 1, 34);
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoIssuesFound");
}

TEST(CollapseTwins, ARareClassAmongEmbeddingsThatAreAlike) {
  OutputJob job(23);
  for (int i = 0; i < 140; ++i) {
    embed(job, i > 15 ? 0.985 : 0.3, i % 5 == 0 ? 0.97 : -0.8, 2, 1, 63);
  }
  EXPECT_EQ(job.kinds(), "");
}

TEST(CollapseTwins, EmbeddingsThatAreAlikeWithoutTraining) {
  OutputJob job(24);
  for (int i = 0; i < 140; ++i) embed(job, 0.99 - 0.0001 * i, 0.97, 6);
  EXPECT_EQ(job.kinds(), "") << "a deep net at its start";
}

TEST(CollapseTwins, EmbeddingsThatCrowdAtFirstAndSpread) {
  OutputJob job(25);
  for (int i = 0; i < 140; ++i) {
    embed(job, i < 3 ? 0.5 : 0.995 - 0.0004 * std::max(0, i - 30), 0.95, 4);
  }
  EXPECT_EQ(job.kinds(), "") << "a line leads out of it";
}

TEST(CollapseTwins, SanityPassesBeforeTrainingDoNotCount) {
  OutputJob job(20);
  job.evaluate(5, flat());
  job.go(50, classes(0.9, 0.5));
  job.evaluate(5, Outputs{});
  EXPECT_EQ(job.kinds(), "");
}

// ------------------------------------------------------------------------- boundaries, sums

TEST(Collapse, AVarianceAtTheLimitIsNotConstant) {
  const auto told = [](double deviation) {
    OutputJob job;
    Outputs b = flat();
    b.deviation = deviation;
    job.go(5, Outputs{}).go(5, b);
    return job.kinds();
  };
  EXPECT_EQ(told(0.0009), "constant@7");
  EXPECT_EQ(told(0.0011), "");
}

TEST(Collapse, ThreeTinyBatchesAreTooFewSamples) {
  OutputJob job;
  Outputs b = flat();
  b.more = {{"samples", 4}};
  job.go(5, Outputs{}).go(7, b);
  EXPECT_EQ(job.kinds(), "");
  job.go(1, b);
  EXPECT_EQ(job.kinds(), "constant@12") << "32 of them";
}

TEST(Collapse, OneStrayAnswerInAHundredLabelsChangesNothing) {
  const auto told = [](double strays) {
    OutputJob job(9);
    Outputs b = one_answer(0.5);
    b.answers = 1 - strays * 0.2;
    job.go(520, b);
    return job.kinds().substr(0, 11);
  };
  EXPECT_EQ(told(0.0099), "one_answer@");
  EXPECT_EQ(told(0.0101), "");
}

TEST(Collapse, WhatIsKnownSoFarIsToldAtDoubledUpdates) {
  OutputJob job;
  job.go(130, classes(0.9, 0.4));
  const auto sums = sums_of(job.rule);
  ASSERT_EQ(sums.size(), 2U) << "at 64 and 128 updates";
  EXPECT_NE(sums[0].told.find(R"({"ok":{"loss train":{"updates":64,"spread":1,"same_answer":0.)"),
            std::string::npos)
      << sums[0].told;
}

TEST(Collapse, TooLittleIsUndecidedAndSaysWhatIsMissing) {
  OutputJob job;
  job.go(20, flat());
  EXPECT_EQ(job.status(), "NoData");
  EXPECT_NE(summed_up(job.rule).find(R"("needs_steps":12)"), std::string::npos)
      << summed_up(job.rule);
}

TEST(Collapse, TwoWorkersWithHalfEachSayTheSame) {
  const auto told = [](bool split) {
    OutputJob job;
    if (split) job.worker = FakeWorker("digits", "same", 0, 2);
    FakeWorker second("digits", "same", 1, 2);
    for (int i = 0; i < 30; ++i) {
      const double at = i < 10 ? 1 : 0;
      std::map<std::string, double> fields{{"samples", 32},       {"output_spread", 64 * at},
                                           {"target_spread", 64}, {"pairs", 8 * at},
                                           {"wins", 8 * at},      {"crossed", 40}};
      if (split) {
        for (auto& [name, value] : fields) value /= 2;
        job.send(fields, "loss", &second);
        job.rule.feed(second.step_end(job.mode, job.step));
      }
      job.send(fields);
      job.end();
    }
    return job.kinds();
  };
  EXPECT_EQ(told(false), "constant@12");
  EXPECT_EQ(told(true), told(false));
}

TEST(Collapse, WithoutALedgerThereIsNothingToJudge) {
  OutputJob job;
  job.rate(0.1);
  job.end();
  EXPECT_EQ(job.status(), "NoData");
}

}  // namespace
}  // namespace tocsin::rules
