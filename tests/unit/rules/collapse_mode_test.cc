// Generators whose samples are less diverse than the data, and those that are not: the kind `mode` of collapse.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "rules/builtin/data/sample_course.h"
#include "tests/support/rule_harness.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Role;

struct Generator : SteppedJob {
  Generator() : SteppedJob{RuleHarness::of("collapse", "{}")}, chance(1) {}

  void say(double made, double data) {
    std::vector<Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [name, value] : std::map<std::string, double>{
             {"ledger/samples/g/made", made}, {"ledger/samples/g/data", data}}) {
      scalars.push_back({name, step, value, Role::ledger});
      entries.push_back({core::DictionaryType::scalar, name, Role::ledger});
    }
    rule.feed(worker.dictionary(entries));
    rule.feed(worker.scalars(mode, scalars));
    end();
  }
  /// Shares of the directions of the data, of which there are some ten.
  Generator& go(int steps, const std::function<double(double)>& share) {
    for (int i = 0; i < steps; ++i) {
      const double data = 10 * std::exp(0.1 * chance.normal());
      say(std::max(1.0,
                   10 * share(static_cast<double>(i) / steps) * std::exp(0.1 * chance.normal())),
          data);
    }
    return *this;
  }
  std::string kinds() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) out += issue.kind + " ";
    return out;
  }
  Noise chance;
};

TEST(CollapseMode, SamplesOfAFewKindsAreToldAtTheFirstLook) {
  Generator job;
  job.go(70, [](double) { return 0.2; });
  const auto issues = job.rule.firing();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].kind, "mode");
  EXPECT_EQ(issues[0].step.value_or(-1), 63);
  EXPECT_NE(issues[0].summary.find("After 64 updates, samples/g have 0."), std::string::npos)
      << issues[0].summary;
  EXPECT_NE(summed_up(job.rule).find(R"("hit":{"samples/g train":{"kind":"mode")"),
            std::string::npos)
      << summed_up(job.rule);
}

TEST(CollapseMode, DiversityThatIsLostLaterIsTold) {
  Generator job;
  job.go(600, [](double at) { return at < 0.3 ? 0.9 : 0.15; });
  EXPECT_EQ(job.kinds(), "mode ");
}

TEST(CollapseMode, HealthyGeneratorsAreQuiet) {
  const std::map<std::string, std::function<double(double)>> healthy{
      {"nearly as diverse as the data", [](double) { return 0.8; }},
      {"a little more than half of it", [](double) { return 0.6; }},
      {"noise at first, more directions than the data", [](double at) { return 3 - 2.2 * at; }},
      {"few at first, and more and more", [](double at) { return 0.1 + 0.9 * at; }},
      {"it swings between kinds",
       [](double at) { return std::exp(0.5 * std::sin(60 * at)) * 0.8; }},
  };
  for (const auto& [why, share] : healthy) {
    Generator job;
    job.go(600, share);
    EXPECT_EQ(job.kinds(), "") << why;
  }
}

TEST(CollapseMode, TheCardSaysHowManyWordsAreMissing) {
  Generator job;
  job.go(40, [](double) { return 0.2; });
  EXPECT_EQ(job.kinds(), "");
  EXPECT_EQ(job.status(), "NoData");
  EXPECT_NE(summed_up(job.rule).find(R"("needs_words":24)"), std::string::npos)
      << summed_up(job.rule);
}

// ------------------------------------------------------------------------------- streams

constexpr std::array<double, 3> kWordsSeen{1, 0.1, 0.01};
constexpr double kModeAlpha = 0.01;

// At half of the directions exactly: normal, alike neighbours, heavy tails.
TEST(CollapseMode, HalfOfTheDirectionsIsHardlyEverToldAtAnyThinning) {
  const char* const text = std::getenv("TOCSIN_NULL_RUNS");
  const int runs = text == nullptr ? 300 : std::atoi(text);
  for (int kind = 0; kind < 3; ++kind) {
    std::array<int, kWordsSeen.size()> alarms{};
    for (int i = 0; i < runs; ++i) {
      Noise noise(static_cast<std::uint64_t>(i) * 3 + static_cast<std::uint64_t>(kind));
      std::array<SampleCourse, kWordsSeen.size()> seen;
      std::array<bool, kWordsSeen.size()> told{};
      double level = 0;
      for (int step = 0; step < 13000; ++step) {
        level = 0.5 * level + std::sqrt(0.75) * noise.normal();
        const double off = kind == 0 ? noise.normal() : kind == 1 ? level : noise.heavy() / 2;
        const SampleStep word{.made = std::log(5.0) + 0.3 * off,
                              .data = std::log(10.0),
                              .made_words = 1,
                              .data_words = 1};
        PairingRun run;
        run.updates = step + 1;
        const double draw = noise.uniform();
        for (std::size_t s = 0; s < kWordsSeen.size() && draw < kWordsSeen[s]; ++s) {
          seen[s].train(word, run, kModeAlpha);
          told[s] = told[s] || seen[s].standing != 0;
        }
      }
      for (std::size_t s = 0; s < kWordsSeen.size(); ++s) alarms[s] += told[s] ? 1 : 0;
    }
    std::cout << "half, " << kind << ": " << alarms[0] << ", " << alarms[1] << ", " << alarms[2]
              << " of " << runs << " runs\n";
    const double expected = kModeAlpha * runs;
    for (const int number : alarms) EXPECT_LE(number, expected + 3 * std::sqrt(expected)) << kind;
  }
}

// The first look at which both bounds are below one half: of the mean, by Student's t at what that look may spend; and of a line
// at the end of the plan, one and a half times the length of the window behind its middle.
TEST(CollapseMode, FewerDirectionsAreToldAtTheLookThatTheoryNeeds) {
  constexpr double kSpread = 0.5;
  constexpr double kAlpha = 0.001;
  const double alike = 1.0 / 32 + DoubledLooks::kError / std::sqrt(32.0);
  const double widened = std::sqrt((1 + alike) / (1 - alike));
  for (const double share : {0.45, 0.4, 0.3, 0.15}) {
    int theory = 64;
    for (int look = 1;; ++look, theory *= 2) {
      const double error = kSpread * widened / std::sqrt(theory / 2.0);
      const double line = std::hypot(1, 1.5 * std::sqrt(12.0));
      const double most = std::max(student_quantile(kAlpha * std::exp2(-look), 31),
                                   student_quantile(SampleCourse::kArrival, 30) * line);
      if (most * error < std::log(0.5 / share)) break;
    }
    std::vector<int> needed;
    for (int i = 0; i < 40; ++i) {
      Noise noise(static_cast<std::uint64_t>(i) + 80);
      SampleCourse course;
      PairingRun run;
      run.planned = 100000;
      int step = 0;
      for (; step < 100000 && course.standing == 0; ++step) {
        run.updates = step + 1;
        run.planned = 1.5 * run.updates;
        const SampleStep word{.made = std::log(10 * share) + kSpread * noise.normal(),
                              .data = std::log(10.0),
                              .made_words = 1,
                              .data_words = 1};
        course.train(word, run, kAlpha);
      }
      needed.push_back(step);
    }
    std::sort(needed.begin(), needed.end());
    std::cout << "share " << share << ": " << needed[20] << " words, theory " << theory << "\n";
    EXPECT_LE(needed[20], 1.5 * theory) << share;
    EXPECT_GE(needed[20], theory / 4) << share;
  }
}

}  // namespace
}  // namespace tocsin::rules
