#include "rules/evidence/mean_evidence.h"

#include <gtest/gtest.h>

#include <iostream>

#include "rules/builtin/data/answer_course.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr double kHigh = 0.55;

TEST(MeanEvidence, IsTheMeanOfFourProducts) {
  MeanEvidence seen;
  seen.against_at_least(0.5, kHigh);
  seen.against_at_least(1.0, kHigh);
  double mean = 0;
  for (const double bet : {0.1, 0.2, 0.45, 0.9}) {
    mean += (1 + bet * 0.05 / 0.45) * (1 - bet) / 4;
  }
  EXPECT_NEAR(seen.evidence(), std::log(mean), 1e-12);
  EXPECT_DOUBLE_EQ(seen.mean(), 0.75);
  EXPECT_DOUBLE_EQ(MeanEvidence{}.evidence(), 0);
}

TEST(MeanEvidence, AMeanAtTheLimitIsNoEvidenceForAnySide) {
  for (const bool low : {true, false}) {
    MeanEvidence seen;
    for (int i = 0; i < 1000; ++i) {
      low ? seen.against_at_least(kHigh, kHigh) : seen.against_at_most(kHigh, kHigh);
    }
    EXPECT_NEAR(seen.evidence(), 0, 1e-9);
  }
}

/// Shares of a step's wins, 0.55 on average given the past.
class StepShares {
 public:
  static constexpr std::array<const char*, 4> kKinds{"independent pairs", "pairs of one image",
                                                     "epochs", "one pair"};
  StepShares(std::size_t kind, std::uint64_t seed) : kind_(kind), noise_(seed * 7 + kind) {
    for (int i = 0; i < 400; ++i) epoch_.push_back(i < 220 ? 1 : 0);
  }
  double next(int pairs) {
    if (kind_ == 0) return noise_.wins(kHigh, pairs) / pairs;
    if (kind_ == 1) return noise_.uniform() < kHigh ? 1 : 0;  // all of them win, or none
    if (kind_ == 3) return noise_.wins(kHigh, 1);
    double wins = 0;
    for (int i = 0; i < pairs; ++i) {
      if (at_ == 0) noise_.shuffle(epoch_);
      wins += epoch_[at_];
      at_ = (at_ + 1) % epoch_.size();
    }
    return wins / pairs;
  }
  double uniform() { return noise_.uniform(); }

 private:
  std::size_t kind_;
  Noise noise_;
  std::vector<double> epoch_;
  std::size_t at_ = 0;
};

// What is seen of the steps, 1, 1/10 or 1/100, changes nothing.
TEST(MeanEvidence, SharesThatAreHighEnoughAreHardlyEverRejected) {
  constexpr int kRuns = 1000;
  constexpr double kAlpha = 0.01;
  for (std::size_t kind = 0; kind < StepShares::kKinds.size(); ++kind) {
    std::array<int, 3> alarms{};
    for (int run = 0; run < kRuns; ++run) {
      StepShares shares(kind, static_cast<std::uint64_t>(run));
      std::array<MeanEvidence, 3> seen;
      std::array<bool, 3> over{};
      for (int step = 0; step < 3000; ++step) {
        const double share = shares.next(16);
        const double draw = shares.uniform();
        for (std::size_t i = 0; i < 3 && draw < std::pow(0.1, static_cast<double>(i)); ++i) {
          seen[i].against_at_least(share, kHigh);
          over[i] = over[i] || seen[i].evidence() >= -std::log(kAlpha);
        }
      }
      for (std::size_t i = 0; i < 3; ++i) alarms[i] += over[i] ? 1 : 0;
    }
    std::cout << "means, " << StepShares::kKinds[kind] << ": " << alarms[0] << ", " << alarms[1]
              << ", " << alarms[2] << " of " << kRuns << " runs\n";
    for (const int number : alarms) EXPECT_LE(number, 20) << StepShares::kKinds[kind];
  }
}

// Whole courses that always give one answer, cost what a constant costs, and whose scores are barely in order.
TEST(MeanEvidence, MajorityAnswersInOrderAreHardlyEverToldAsOneAnswer) {
  constexpr int kRuns = 1000;
  PairingBounds bounds;
  bounds.alpha = 0.01;
  for (std::size_t kind = 0; kind < StepShares::kKinds.size(); ++kind) {
    std::array<int, 3> alarms{};
    for (int run = 0; run < kRuns; ++run) {
      StepShares shares(kind, static_cast<std::uint64_t>(run) + 5000);
      std::array<AnswerCourse, 3> seen;
      std::array<bool, 3> over{};
      PairingRun at;
      for (int step = 0; step < 1100; ++step) {
        const double pairs = kind == 3 ? 1 : 16;
        LedgerCall call;
        call.add(LedgerCall::samples, 32);
        call.add(LedgerCall::pairs, pairs);
        call.add(LedgerCall::wins, pairs * shares.next(16));
        call.add(LedgerCall::answers, 32);
        call.add(LedgerCall::labels, 24);
        call.add(LedgerCall::loss, 32);
        call.add(LedgerCall::trivial, 32);
        at.updates = step + 1;
        const double draw = shares.uniform();
        for (std::size_t i = 0; i < 3 && draw < std::pow(0.1, static_cast<double>(i)); ++i) {
          seen[i].train(call, at, bounds);
          over[i] = over[i] || seen[i].standing != 0;
        }
      }
      for (std::size_t i = 0; i < 3; ++i) alarms[i] += over[i] ? 1 : 0;
    }
    std::cout << "one answer, " << StepShares::kKinds[kind] << ": " << alarms[0] << ", "
              << alarms[1] << ", " << alarms[2] << " of " << kRuns << " runs\n";
    for (const int number : alarms) EXPECT_LE(number, 20) << StepShares::kKinds[kind];
  }
}

// Beside the bet that would have been the best of all.
TEST(MeanEvidence, AShareThatIsTooLowIsToldAlmostAsSoonAsPossible) {
  for (const int pairs : {1, 4, 16, 64, 256}) {
    double steps = 0;
    constexpr int kRuns = 200;
    std::array<double, 90> growth{};  // of single bets, per step
    for (int run = 0; run < kRuns; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 31);
      MeanEvidence seen;
      while (seen.evidence() < -std::log(0.001)) {
        const double share = noise.wins(0.5, pairs) / pairs;
        seen.against_at_least(share, kHigh);
        for (std::size_t i = 0; i < growth.size(); ++i) {
          const double bet = 0.01 * static_cast<double>(i + 1);
          growth[i] += std::log1p(bet * (kHigh - share) / (1 - kHigh));
        }
      }
      steps += seen.number;
    }
    const double best = *std::max_element(growth.begin(), growth.end()) / steps;
    const double least = -std::log(0.001) / best;
    std::cout << pairs << " pairs a step: " << steps / kRuns << " steps on average, ln(1/alpha) by "
              << "the best bet " << least << "\n";
    EXPECT_LE(steps / kRuns, 1.5 * least) << pairs;
  }
}

}  // namespace
}  // namespace tocsin::rules
