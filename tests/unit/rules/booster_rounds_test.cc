// Rounds of a booster under chance_level: whole data sets, no pairs, metrics beside each other.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language

/// Skill of each `<data>-<metric>` at a round, 0 … 1 of the way.
using SkillOf = std::function<double(double)>;

struct Booster : SteppedJob {
  Booster() : SteppedJob{RuleHarness::of("chance_level", "{}")} {}

  Booster& go(int rounds, const std::map<std::string, SkillOf>& metrics) {
    for (int i = 0; i < rounds; ++i) {
      std::vector<Scalar> scalars;
      std::vector<Entry> entries;
      const auto send = [&](const std::string& name, double value) {
        scalars.push_back({"ledger/" + name, step, value, core::Role::ledger});
        entries.push_back({core::DictionaryType::scalar, scalars.back().name, core::Role::ledger});
      };
      for (const auto& [name, skill] : metrics) {
        const double loss = 0.2 * (1 - skill(static_cast<double>(i) / rounds));
        send(name + "/samples", 500);
        send(name + "/trivial", 500 * 0.2);
        send(name + "/loss", 500 * (loss + chance.normal() * 0.0005));
      }
      rule.feed(worker.dictionary(entries));
      rule.feed(worker.scalars(mode, scalars));
      end();
    }
    return *this;
  }
  std::string told() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) {
      out += (out.empty() ? "" : " ") + issue.labels.get("metric") + ":" + issue.kind;
    }
    return out;
  }

  Noise chance{7};
};

double learns(double at) { return 0.9 * at / (at + 0.05); }
double nothing(double) { return 0.0; }
double worse(double) { return -0.4; }

// ------------------------------------------------------------------------------------ faults

TEST(BoosterRounds, TrainingDataIsLearnedByHeart) {
  Booster job;
  job.go(130, {{"train-logloss", learns}, {"valid-logloss", nothing}});
  EXPECT_EQ(job.told(), "valid-logloss:memorised");
  const core::Issue issue = job.rule.firing()[0];
  EXPECT_EQ(issue.summary,
            "Over rounds 33 to 64 the loss of valid-logloss is 0.2; the best constant answer has "
            "0.2, and training at most half of that.");
}

TEST(BoosterRounds, NothingIsLearnedAtAll) {
  Booster job;
  job.go(130, {{"train-rmse", nothing}, {"valid-rmse", nothing}});
  EXPECT_EQ(job.told(), "train-rmse:nothing valid-rmse:nothing");
}

TEST(BoosterRounds, AllMetricsOfASetAreWorseThanAConstant) {
  Booster job;
  job.go(130, {{"train-logloss", learns}, {"valid-logloss", worse}, {"valid-auc", nothing}});
  EXPECT_EQ(job.told(), "valid-logloss:worse valid-auc:nothing");
}

TEST(BoosterRounds, WithoutTheTrainingSetTheEvaluationDecides) {
  Booster job;
  job.go(130, {{"held-rmse", nothing}});
  EXPECT_EQ(job.told(), "held-rmse:nothing");
}

// ------------------------------------------------------------------------------------- twins

TEST(BoosterRounds, ALogLossThatIsOverconfidentBesideAnOrderThatIsRight) {
  Booster job;
  job.go(130, {{"train-logloss", learns}, {"valid-logloss", worse}, {"valid-auc", learns}});
  EXPECT_EQ(job.told(), "");
}

TEST(BoosterRounds, AWeakSignalThatEvaluationShows) {
  Booster job;
  job.go(130, {{"train-rmse", learns}, {"valid-rmse", [](double) { return 0.05; }}});
  EXPECT_EQ(job.told(), "");
}

TEST(BoosterRounds, SlowTreesThatGetThere) {
  Booster job;
  job.go(130, {{"train-rmse", [](double at) { return 0.2 * at; }},
               {"valid-rmse", [](double at) { return 0.15 * at; }}});
  EXPECT_EQ(job.told(), "");
}

TEST(BoosterRounds, FewRoundsAreUndecidedAndSayWhatIsMissing) {
  Booster job;
  job.go(40, {{"train-rmse", learns}, {"valid-rmse", nothing}});
  EXPECT_EQ(job.told(), "");
  job.status();
  const std::string sum = summed_up(job.rule);
  EXPECT_NE(sum.find("needs_steps"), std::string::npos) << sum;
  EXPECT_EQ(sum.find("needs_pairs"), std::string::npos) << sum;
}

TEST(BoosterRounds, OneThatBeginsToLearnIsLeftAlone) {
  Booster job;
  job.go(70, {{"train-rmse", learns}, {"valid-rmse", nothing}});
  EXPECT_EQ(job.told(), "valid-rmse:memorised");
  job.go(250, {{"train-rmse", learns}, {"valid-rmse", learns}});
  EXPECT_EQ(job.rule.resolved().size(), 1U);
}

}  // namespace
}  // namespace tocsin::rules
