// Returns of agents that gain just enough, by the hundred: how often it is said that they gain too little; and how many
// episodes it takes where they gain nothing. TOCSIN_NULL_RUNS (200) makes it as long as you like.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "rules/builtin/losses/return_course.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr int kEpisodes = 6000;
constexpr double kReturnAlpha = 0.01;
constexpr std::array<double, 3> kReturnsSeen{1, 0.1, 0.01};  // of the episodes

int number_of_runs() {
  const char* const text = std::getenv("TOCSIN_NULL_RUNS");
  return text == nullptr ? 200 : std::atoi(text);
}
double most_told(int runs) {
  const double expected = kReturnAlpha * runs;
  return expected + 3 * std::sqrt(expected * (1 - kReturnAlpha));
}

/// Deviations of 1 about `mean`.
class ReturnStream {
 public:
  ReturnStream(int kind, Noise& noise) : kind_(kind), noise_(noise) {}
  double next(double mean) {
    if (kind_ == 1) return mean + noise_.heavy() / std::sqrt(3.0);
    if (kind_ == 2) return noise_.uniform() < 0.5 ? mean - 1 : mean + 1;  // all or nothing
    if (kind_ == 3) {  // levels that come again for a while
      before_ = 0.5 * before_ + std::sqrt(0.75) * noise_.normal();
      return mean + before_;
    }
    if (kind_ == 4) {  // the mean of the last ten, which deviates by 1
      newest_[at_++ % newest_.size()] = noise_.normal();
      double sum = 0;
      for (const double one : newest_) sum += one;
      return mean + sum / std::sqrt(static_cast<double>(newest_.size()));
    }
    return mean + noise_.normal();
  }

 private:
  int kind_;
  Noise& noise_;
  double before_ = 0;
  std::array<double, 10> newest_{};
  std::size_t at_ = 0;
};

constexpr std::array<const char*, 5> kReturnKinds{"normal", "heavy tails", "all or nothing",
                                                  "alike neighbours", "means of ten"};

// The mean rises by the margin as soon as the first episodes are over, and by nothing more.
TEST(ReturnCourse, AgentsThatGainTheMarginAreHardlyEverTold) {
  const int runs = number_of_runs();
  RewardBounds bounds;
  bounds.alpha = kReturnAlpha;
  for (int kind = 0; kind < 5; ++kind) {
    std::array<int, kReturnsSeen.size()> alarms{};
    for (int i = 0; i < runs; ++i) {
      Noise noise(static_cast<std::uint64_t>(i) * 10 + static_cast<std::uint64_t>(kind));
      ReturnStream returns(kind, noise);
      std::array<ReturnCourse, kReturnsSeen.size()> seen;
      std::array<bool, kReturnsSeen.size()> told{};
      RewardRun run;
      run.planned = kEpisodes;
      for (int episode = 0; episode < kEpisodes; ++episode) {
        run.updates = episode + 1;
        // A twentieth of the way: what stands for the trivial policy at the last look.
        const double value = returns.next(episode < kEpisodes / 20 ? 0 : bounds.margin);
        const double draw = noise.uniform();
        for (std::size_t s = 0; s < kReturnsSeen.size() && draw < kReturnsSeen[s]; ++s) {
          seen[s].add(1, value, value * value, false, run, bounds);
          // The gain is not there yet in the first looks.
          told[s] = told[s] || (episode > kEpisodes / 8 && seen[s].told != 0);
        }
      }
      for (std::size_t s = 0; s < kReturnsSeen.size(); ++s) alarms[s] += told[s] ? 1 : 0;
    }
    std::cout << "returns, " << kReturnKinds[static_cast<std::size_t>(kind)] << ": " << alarms[0]
              << ", " << alarms[1] << ", " << alarms[2] << " of " << runs << " runs\n";
    for (const int number : alarms)
      EXPECT_LE(number, most_told(runs)) << kReturnKinds[static_cast<std::size_t>(kind)];
  }
}

// Agents that gain nothing are seldom said to be better.
TEST(ReturnCourse, AgentsThatGainNothingAreHardlyEverFoundBetter) {
  const int runs = number_of_runs();
  RewardBounds bounds;
  bounds.alpha = kReturnAlpha;
  for (int kind = 0; kind < 5; ++kind) {
    int better = 0;
    for (int i = 0; i < runs; ++i) {
      Noise noise(static_cast<std::uint64_t>(i) * 10 + static_cast<std::uint64_t>(kind) + 5);
      ReturnStream returns(kind, noise);
      ReturnCourse course;
      RewardRun run;
      for (int episode = 0; episode < kEpisodes; ++episode) {
        run.updates = episode + 1;
        const double value = returns.next(0);
        course.add(1, value, value * value, false, run, bounds);
      }
      better += course.better != 0 ? 1 : 0;
    }
    std::cout << "no gain, " << kReturnKinds[static_cast<std::size_t>(kind)] << ": " << better
              << " of " << runs << " runs found better\n";
    EXPECT_LE(better, most_told(runs)) << kReturnKinds[static_cast<std::size_t>(kind)];
  }
}

// Answers become three times as long as soon as the first are over, and no longer.
TEST(LengthCourse, AnswersOfThriceTheLengthAreHardlyEverTold) {
  const int runs = number_of_runs();
  RewardBounds bounds;
  bounds.alpha = kReturnAlpha;
  for (int kind = 0; kind < 5; ++kind) {
    std::array<int, kReturnsSeen.size()> alarms{};
    for (int i = 0; i < runs; ++i) {
      Noise noise(static_cast<std::uint64_t>(i) * 10 + static_cast<std::uint64_t>(kind) + 7);
      ReturnStream lengths(kind, noise);
      std::array<LengthCourse, kReturnsSeen.size()> seen;
      std::array<bool, kReturnsSeen.size()> told{};
      RewardRun run;
      for (int step = 0; step < kEpisodes; ++step) {
        run.updates = step + 1;
        const double value = lengths.next(step < kEpisodes / 20 ? 5 : 3 * 5);
        const double draw = noise.uniform();
        for (std::size_t s = 0; s < kReturnsSeen.size() && draw < kReturnsSeen[s]; ++s) {
          seen[s].add(value, run, bounds);
          told[s] = told[s] || seen[s].grown != 0;
        }
      }
      for (std::size_t s = 0; s < kReturnsSeen.size(); ++s) alarms[s] += told[s] ? 1 : 0;
    }
    std::cout << "lengths, " << kReturnKinds[static_cast<std::size_t>(kind)] << ": " << alarms[0]
              << ", " << alarms[1] << ", " << alarms[2] << " of " << runs << " runs\n";
    for (const int number : alarms)
      EXPECT_LE(number, most_told(runs)) << kReturnKinds[static_cast<std::size_t>(kind)];
  }
}

// Five times the length, with deviations of a fifth: 500 less three times 100 is 200. The error of that is 23 (15 of the newest 64
// entries, 17 of three times the first 20, which may be alike), and t is 5.2 with 11 degrees of freedom.
TEST(LengthCourse, AnswersOfFiveTimesTheLengthAreToldAtTheSecondLook) {
  const RewardBounds bounds;
  int told = 0;
  for (int i = 0; i < 40; ++i) {
    Noise noise(static_cast<std::uint64_t>(i) + 700);
    LengthCourse course;
    RewardRun run;
    for (int step = 0; step < 128; ++step) {
      run.updates = step + 1;
      course.add((step < 20 ? 100 : 500) * (1 + noise.normal() / 5), run, bounds);
    }
    told += course.grown != 0 ? 1 : 0;
  }
  std::cout << told << " of 40 told at 128 entries\n";
  EXPECT_GE(told, 30);
}

// With the rule's own alpha. A fall is told as soon as there are enough first episodes to compare with.
TEST(ReturnCourse, EpisodesThatItTakes) {
  const RewardBounds bounds;
  struct Case {
    double gain;
    double most;
  };
  for (const Case& one : {Case{0, 4096}, Case{-0.5, 2048}, Case{-1, 512}, Case{-2, 256}}) {
    std::vector<double> needed;
    for (int i = 0; i < 40; ++i) {
      Noise noise(static_cast<std::uint64_t>(i) + 900);
      ReturnCourse course;
      RewardRun run;
      int episode = 0;
      for (; episode < 40000 && course.told == 0; ++episode) {
        run.updates = episode + 1;
        const double value = noise.normal() + (episode < 20 ? 0 : one.gain);
        course.add(1, value, value * value, true, run, bounds);
      }
      needed.push_back(episode);
    }
    std::sort(needed.begin(), needed.end());
    std::cout << "gain " << one.gain << ": " << needed[20] << " episodes in the middle\n";
    EXPECT_LE(needed[20], one.most) << one.gain;
  }
}

}  // namespace
}  // namespace tocsin::rules
