#include <gtest/gtest.h>

#include <array>
#include <cmath>
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

/// How a class of a job stands, and its share of the samples.
struct OneClass {
  double w = 0.95;
  double right = 0.85;
  double skill = 0.7;  // 1 - loss / that of guessing by class frequency
  double share = 1;    // against the other classes
  double trained = 1;  // share of it among the targets of training, against `share`
  bool answered = true;
};

/// A job of several classes, which sends sums of its classes as the hook does: training when the updates have
/// doubled, evaluation per pass.
struct Classes : SteppedJob {
  explicit Classes(std::size_t classes, std::uint64_t seed = 1, const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("left_out_class", with)}, of(classes), chance(seed) {}

  std::vector<OneClass> of;
  Noise chance;
  double batch = 32;
  double seen = 0;  // targets of training
  std::int64_t evaluated = 0;

  [[nodiscard]] double whole() const {
    double out = 0;
    for (const OneClass& one : of) out += one.share;
    return out;
  }
  double number(double mean) {
    return std::max(0.0, std::round(mean + std::sqrt(mean) * chance.normal()));
  }
  std::map<std::string, double> sums(double samples, bool evaluation) {
    std::map<std::string, double> out{{"count", 0}};
    double sum = 0;
    for (std::size_t c = 0; c < of.size(); ++c) {
      const OneClass& one = of[c];
      const double share = one.share / whole();
      const double labels = number(samples * share * (evaluation ? 1 : one.trained));
      const double pairs = std::round(labels * (1 - share));
      const auto put = [&](const char* field, double value) {
        if (value != 0) out[std::string(field) + "/" + std::to_string(c)] = value;
      };
      put("labels", labels);
      put("answers", one.answered ? labels : 0);
      put("right", one.answered ? chance.wins(one.right, static_cast<int>(labels)) : 0);
      put("loss", labels * (1 - one.skill) * -std::log(share));
      put("pairs", pairs);
      put("wins", chance.wins(one.w, static_cast<int>(pairs)));
      if (evaluation) put("trained", std::round(seen * share * one.trained));
      sum += labels;
      out["count"] += labels > 0 ? 1 : 0;
    }
    out["samples"] = sum;
    if (evaluation) out["trained"] = seen;
    return out;
  }
  void send(const std::map<std::string, double>& fields, FakeWorker* from = nullptr,
            const std::string& call = "cross_entropy") {
    FakeWorker& sender = from == nullptr ? worker : *from;
    std::vector<Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [field, value] : fields) {
      const std::string name = "ledger/" + call + "/class_" + field;
      scalars.push_back({name, step, value, Role::ledger});
      entries.push_back({core::DictionaryType::scalar, name, Role::ledger});
    }
    rule.feed(sender.dictionary(entries));
    rule.feed(sender.scalars(mode, scalars));
  }
  /// Trains up to so many updates, a power of two times 64.
  Classes& train(std::int64_t updates) {
    for (std::int64_t look = 64; look <= updates; look *= 2) {
      if (look <= step) continue;
      const double samples = batch * static_cast<double>(look - std::max<std::int64_t>(step, 0));
      step = look - 1;
      seen += samples;
      send(sums(samples, false));
      end();
    }
    return *this;
  }
  Classes& evaluate(double samples) {
    const std::int64_t trained = step;
    mode = Mode::eval;
    step = evaluated;
    send(sums(samples, true));
    end();
    evaluated = step;
    mode = Mode::train;
    step = trained;
    return *this;
  }
  std::string kinds() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) {
      if (out.find(issue.kind) != std::string::npos) continue;
      out += (out.empty() ? "" : " ") + issue.kind;
    }
    return out;
  }
  /// Of a run that is over: an evaluation is judged when something follows it.
  std::string kinds_at_the_end() {
    status();
    return kinds();
  }
  std::string said() {
    const auto issues = rule.firing();
    return issues.empty() ? "" : issues[0].summary;
  }
};

// -------------------------------------------------------------------------------- faults

// The specification's example: w = 0.95, 0.93, 0.96, 0.94, 0.52.
TEST(LeftOutClass, AClassWhoseLabelsAreRandomIsNamed) {
  Classes job(5);
  const std::array<double, 5> w{0.95, 0.93, 0.96, 0.94, 0.52};
  for (std::size_t c = 0; c < w.size(); ++c) job.of[c].w = w[c];
  job.train(512);
  EXPECT_EQ(job.kinds(), "random_class");
  EXPECT_NE(job.said().find("cross_entropy does not tell class 4 from the other classes: in "),
            std::string::npos)
      << job.said();
  EXPECT_EQ(job.rule.firing()[0].severity, core::Severity::warning);
  EXPECT_NE(
      summed_up(job.rule).find(R"({"hit":{"cross_entropy train":{"kind":"random_class: class 4")"),
      std::string::npos)
      << summed_up(job.rule);
}

TEST(LeftOutClass, OneLookIsNotEnough) {
  Classes job(5);
  job.of[4].w = 0.5;
  job.train(64);
  EXPECT_EQ(job.kinds(), "");
  job.of[4].w = 0.95;
  job.train(256);
  EXPECT_EQ(job.kinds(), "");
}

TEST(LeftOutClass, AClassThatIsLearntLaterIsNotToldAnyMore) {
  Classes job(5);
  job.of[2].w = 0.5;
  job.train(1024);
  EXPECT_EQ(job.kinds(), "random_class");
  job.of[2].w = 0.97;
  job.train(16384);
  EXPECT_EQ(job.rule.resolved().size(), 1U);
  EXPECT_NE(summed_up(job.rule).find(R"({"ok":{"cross_entropy train":{"updates":16384)"),
            std::string::npos)
      << summed_up(job.rule);
}

TEST(LeftOutClass, AClassThatIsMissingInTrainingIsToldAtTheFirstPass) {
  Classes job(10);
  job.of[3].trained = 0;
  job.train(64).evaluate(1000);
  EXPECT_EQ(job.kinds_at_the_end(), "never_seen");
  EXPECT_NE(
      job.said().find(" evaluation samples are of class 3, but none of 2048 training targets."),
      std::string::npos)
      << job.said();
}

TEST(LeftOutClass, OfTwoClassesTheMissingOneIsTold) {
  Classes job(2);
  job.of[1].trained = 0;
  job.train(64).evaluate(200);
  EXPECT_EQ(job.kinds_at_the_end(), "never_seen");
}

TEST(LeftOutClass, AClassThatIsNeverTheAnswerAndCostsAsMuchAsGuessing) {
  Classes job(6);
  job.of[1] = {.w = 0.8, .right = 0, .skill = -0.5, .answered = false};
  job.train(512);
  EXPECT_EQ(job.kinds(), "never_answered");
  EXPECT_NE(job.said().find("cross_entropy never predicts class 1. "), std::string::npos)
      << job.said();
}

TEST(LeftOutClass, AClassMostOfWhoseLabelsBecameOthersInTraining) {
  Classes job(10);
  job.of[7].trained = 0.1;
  job.of[7].right = 0.2;
  job.train(256).evaluate(1000);
  EXPECT_EQ(job.kinds(), "");
  job.train(512).evaluate(1000);
  EXPECT_EQ(job.kinds_at_the_end(), "rarely_seen");
  EXPECT_EQ(job.rule.firing()[0].severity, core::Severity::info);
  EXPECT_NE(job.said().find("% of the training targets are of class 7"), std::string::npos);
}

TEST(LeftOutClass, EvaluationIsJudgedWhenTheUpdatesHaveDoubled) {
  Classes job(5);
  job.train(256);
  for (int i = 0; i < 3; ++i) {
    job.of[4].w = 0.5;
    job.evaluate(2000);
    EXPECT_EQ(job.kinds(), "") << "the same pass goes on, or the next one without training";
    job.of[4].w = 0.95;
  }
  job.train(512);
  job.of[4].w = 0.5;
  job.evaluate(8000);
  EXPECT_EQ(job.kinds_at_the_end(), "random_class");
}

TEST(LeftOutClass, WhatIsThinnedIsAddedUpUntilItIsEnough) {
  Classes job(10);
  job.of[3].w = 0.45;
  job.batch = 2;  // 13 samples of a class at the first look
  job.train(256);
  EXPECT_EQ(job.kinds(), "");
  job.train(8192);
  EXPECT_EQ(job.kinds(), "random_class");
}

TEST(LeftOutClass, RowsOfSeveralWorkersAddUp) {
  Classes job(5);
  FakeWorker other("digits", "exploding", 1, 2);
  for (const std::int64_t look : {63, 127, 255}) {
    job.step = look;
    job.of[4].w = 0.5;
    job.batch = 4;
    // Of one worker some 38 samples of a class: too few.
    job.send(job.sums(64.0 * 3, false));
    job.send(job.sums(64.0 * 3, false), &other);
    job.rule.feed(job.worker.step_end(Mode::train, look));
    job.rule.feed(other.step_end(Mode::train, look));
  }
  job.rule.feed(job.worker.end());
  job.rule.feed(other.end());
  EXPECT_EQ(job.status(), "NoIssuesFound");
  EXPECT_NE(summed_up(job.rule).find(R"("judged":)"), std::string::npos) << summed_up(job.rule);
}

// -------------------------------------------------------------------------- healthy twins

TEST(LeftOutClass, AHardClassIsNone) {
  Classes job(10);
  job.of[3] = {.w = 0.72, .right = 0.3, .skill = 0.2};
  job.train(4096).evaluate(2000);
  EXPECT_EQ(job.kinds_at_the_end(), "");
}

TEST(LeftOutClass, TwoClassesThatLookAlikeAreNone) {
  Classes job(10);
  // Answers are always the other one of both, and still it costs half a guess.
  job.of[3] = {.w = 0.93, .right = 0, .skill = 0.6, .answered = false};
  job.train(4096);
  EXPECT_EQ(job.kinds(), "");
}

TEST(LeftOutClass, WhileNothingIsKnownNothingIsTold) {
  Classes job(10);
  for (OneClass& one : job.of) one = {.w = 0.6, .right = 0.1, .skill = 0};
  job.of[3] = {.w = 0.5, .right = 0, .skill = -0.1, .answered = false};
  job.train(4096);
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoData");
}

TEST(LeftOutClass, ARareClassWaitsForItsSamples) {
  Classes job(10);
  job.of[9] = {.w = 0.5, .right = 0, .skill = -0.1, .share = 0.06, .answered = false};
  job.train(1024);
  EXPECT_EQ(job.kinds(), "") << "190 samples; the usual class had needed 215";
  job.of[9].share = 0.04;  // less than a twentieth
  job.train(8192);
  EXPECT_EQ(job.kinds(), "");
}

TEST(LeftOutClass, RareClassesThatComeLaterAreNone) {
  Classes job(10);
  job.of[9] = {.w = 0.5, .right = 0, .skill = 0, .share = 0.1, .answered = false};
  job.train(256);
  EXPECT_EQ(job.kinds(), "");
  job.of[9] = {.w = 0.9, .right = 0.5, .skill = 0.5, .share = 0.1};
  job.train(4096);
  EXPECT_EQ(job.kinds(), "");
}

TEST(LeftOutClass, OfTwoClassesNobodyIsLeftOut) {
  Classes job(2);
  job.of[1] = {.w = 0.5, .right = 0, .skill = -0.1, .answered = false};
  job.train(2048);
  EXPECT_EQ(job.kinds(), "");
}

TEST(LeftOutClass, ALongTailInEvaluationIsNone) {
  Classes job(100);
  for (std::size_t c = 0; c < 100; ++c) {
    const double rank = static_cast<double>(c) + 1;
    job.of[c] = {.w = 0.95 - 0.002 * rank,
                 .right = 0.8 / std::sqrt(rank / 10 + 1),
                 .skill = 0.3,
                 .share = 1 / rank};
  }
  job.train(4096).evaluate(5000);
  EXPECT_EQ(job.kinds_at_the_end(), "");
}

TEST(LeftOutClass, ABalancedEvaluationOfFewRareOnesThatAreKnownIsNone) {
  Classes job(10);
  job.of[7].trained = 0.1;
  job.train(64).evaluate(1000).train(256).evaluate(1000);
  EXPECT_EQ(job.kinds_at_the_end(), "") << "it is right as often as the others";
}

}  // namespace
}  // namespace tocsin::rules
