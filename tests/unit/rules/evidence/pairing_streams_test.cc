// Trainings that just reach the margin, by the hundred, and trainings that learn nothing: how often, and when, a loss call is
// said to know nothing, whatever part of the steps is measured. The end of the run is a look like others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>

#include "rules/builtin/shared/pairing_course.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr double kTrivial = 2.3;
constexpr int kRuns = 300;
constexpr int kSteps = 4000;

/// A batch of 32, 14 pairs of which differ. `skill` and `gain` in shares of the trivial loss.
LedgerCall batch_of(Noise& noise, double skill, double gain, double of_loss, double of_gain,
                    double w = 0.5) {
  constexpr double kSamples = 32;
  LedgerCall call;
  call.name = "cross_entropy";
  call.add(LedgerCall::samples, kSamples);
  call.add(LedgerCall::trivial, kSamples * kTrivial);
  call.add(LedgerCall::loss, kSamples * kTrivial * (1 - skill + of_loss * noise.normal()));
  call.add(LedgerCall::straight, kSamples * kTrivial);
  call.add(LedgerCall::crossed, kSamples * kTrivial * (1 + gain + of_gain * noise.normal()));
  call.add(LedgerCall::pairs, 14);
  call.add(LedgerCall::wins, noise.wins(w, 14));
  return call;
}

/// Updates at which it is said to know nothing; 0: never.
double told_at(std::uint64_t seed, double seen, double skill, double gain, double of_loss,
               double of_gain, const PairingBounds& bounds, int steps = kSteps) {
  Noise noise(seed);
  PairingCourse course;
  PairingRun run;
  for (int step = 0; step < steps; ++step) {
    run.updates = step + 1;
    if (noise.uniform() >= seen) continue;
    const LedgerCall call = batch_of(noise, skill, gain, of_loss, of_gain);
    course.count(call);
    course.train(call, run, bounds);
    if (course.standing == PairingCourse::kNothing) return run.updates;
  }
  run.over = 1;
  return course.end(run, bounds) ? run.updates : 0;
}

TEST(PairingStreams, ASkillThatJustReachesTheMarginIsHardlyEverRejected) {
  PairingBounds bounds;
  bounds.alpha = 0.01;
  const double most = bounds.alpha * kRuns + 3 * std::sqrt(bounds.alpha * kRuns);
  for (const double seen : {1.0, 0.1, 0.01}) {
    int alarms = 0;
    for (int run = 0; run < kRuns; ++run) {
      const auto seed = static_cast<std::uint64_t>(run) * 3 + 1;
      alarms += told_at(seed, seen, bounds.skill, bounds.skill, 0.05, 0.05, bounds) > 0 ? 1 : 0;
    }
    std::cout << "skill and gain at the margin, " << seen << " of the steps: " << alarms << " of "
              << kRuns << " runs\n";
    EXPECT_LE(alarms, most) << seen;
  }
}

TEST(PairingStreams, NothingIsToldAlmostAsSoonAsThePairsAllow) {
  const PairingBounds bounds;
  const double least = observations_needed(0.5, bounds.share, bounds.alpha) / 14;
  for (const double seen : {1.0, 0.5}) {
    double updates = 0;
    int never = 0;
    for (int run = 0; run < kRuns; ++run) {
      const double at =
          told_at(static_cast<std::uint64_t>(run) + 5, seen, 0, 0, 0.004, 0.004, bounds);
      never += at > 0 ? 0 : 1;
      updates += at / kRuns;
    }
    std::cout << "nothing, " << seen << " of the steps: told at update " << updates
              << " on average, pairs alone need " << least / seen << "\n";
    EXPECT_EQ(never, 0);
    EXPECT_LE(updates, 1.5 * least / seen);
  }
}

TEST(PairingStreams, WhatPairsSaveDecidesWhereTheLossIsNoisy) {
  const PairingBounds bounds;
  int told = 0;
  for (int run = 0; run < kRuns; ++run) {
    told += told_at(static_cast<std::uint64_t>(run) + 9, 1, -0.2, 0, 1, 0.001, bounds, 300) > 0;
  }
  std::cout << "noisy loss, nothing saved: " << told << " of " << kRuns << " runs\n";
  EXPECT_GE(told, 0.9 * kRuns);
}

TEST(PairingStreams, OneStepInSixteenIsLookedAtWhenUpdatesHaveDoubled) {
  const PairingBounds bounds;
  Noise noise(3);
  PairingCourse course;
  PairingRun run;
  for (int step = 0; step < 1024 && course.standing == PairingCourse::kOpen; step += 16) {
    run.updates = step + 1;
    // The rate is largest after 128 updates: before, nothing is expected.
    run.rate_at = std::min(run.updates, 128.0);
    const LedgerCall call = batch_of(noise, -0.01, 0, 0.003, 0.003);
    course.count(call);
    course.all.add(63, 126);  // pairs enough
    course.train(call, run, bounds);
  }
  EXPECT_EQ(course.standing, PairingCourse::kNothing);
  EXPECT_LE(run.updates, 528) << "64 steps would have come at update 1024";
}

TEST(PairingStreams, ARunThatLearnsInItsLastQuarterIsLeftAloneAtItsEnd) {
  const PairingBounds bounds;
  int told = 0;
  for (int seed = 0; seed < kRuns; ++seed) {
    Noise noise(static_cast<std::uint64_t>(seed) + 21);
    PairingCourse course;
    PairingRun run;
    for (int step = 0; step < 100; ++step) {
      run.updates = step + 1;
      const double learned = std::max(0.0, (step - 75) / 25.0);
      const LedgerCall call =
          batch_of(noise, 0.4 * learned, 0.5 * learned, 0.02, 0.02, 0.5 + 0.4 * learned);
      course.count(call);
      course.train(call, run, bounds);
    }
    run.over = 1;
    told += course.end(run, bounds) ? 1 : 0;
  }
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace tocsin::rules
