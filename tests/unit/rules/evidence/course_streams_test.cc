// Losses of trainings that need nobody, by the hundred, whatever part of their values is seen; and how many values it takes where one is
// needed. TOCSIN_NULL_RUNS (120) and TOCSIN_NULL_STEPS (20000) make it as long as you like; each line says what was counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "rules/builtin/losses/evaluation_turn.h"
#include "rules/builtin/losses/loss_levels.h"
#include "rules/builtin/losses/loss_looks.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr std::array<double, 3> kThinned{1, 0.1, 0.01};  // of the values
constexpr std::array<const char*, 4> kNoises{"independent", "alike neighbours", "epochs",
                                             "heavy tails"};

int course_number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}
int course_runs() { return course_number("TOCSIN_NULL_RUNS", 120); }
int course_steps() { return course_number("TOCSIN_NULL_STEPS", 20000); }

/// Deviation 1, mean 0.
class LossNoise {
 public:
  LossNoise(std::size_t kind, Noise& noise) : kind_(kind), noise_(noise) {
    double sum = 0;
    for (int i = 0; i < 100; ++i) epoch_.push_back(noise.heavy() / std::sqrt(3));
    for (const double x : epoch_) sum += x / 100;
    for (double& x : epoch_) x -= sum;
  }
  double next() {
    if (kind_ == 1) return before_ = 0.5 * before_ + std::sqrt(0.75) * noise_.normal();
    if (kind_ == 3) return noise_.heavy() / std::sqrt(3);
    if (kind_ == 0) return noise_.normal();
    if (at_ == 0) noise_.shuffle(epoch_);
    const double out = epoch_[at_];
    at_ = (at_ + 1) % epoch_.size();
    return out;
  }

 private:
  std::size_t kind_;
  Noise& noise_;
  std::vector<double> epoch_;
  std::size_t at_ = 0;
  double before_ = 0;
};

/// Losses in units of their noise, `done` from 0 to 1.
struct HealthyLoss {
  const char* name;
  double (*level)(double done);
};
constexpr HealthyLoss kHealthy[] = {
    {"nothing gained", [](double) { return 10.0; }},
    {"gained little", [](double done) { return 10 + 2 * std::exp(-30 * done); }},
    {"gained much", [](double done) { return 2 + 20 * std::exp(-30 * done); }},
    {"crosses zero", [](double done) { return -5 + 10 * std::exp(-30 * done); }},
    // Up to four tenths of what was gained are given back: less than half.
    {"drifts",
     [](double done) { return 2 + 20 * std::exp(-30 * done) + 8 * std::max(0.0, 2 * done - 1); }},
};

// H₀ of rise, lost, spike and spread: each kind at most α of the runs, three errors of the count allowed.
TEST(CourseStreams, LossesThatKeepTheirGainAreHardlyEverTold) {
  CourseBounds bounds;
  bounds.alpha = 0.01;
  const double expected = bounds.alpha * course_runs();
  const double most = expected + 3 * std::sqrt(expected);
  for (const HealthyLoss& healthy : kHealthy) {
    for (std::size_t kind = 0; kind < kNoises.size(); ++kind) {
      std::array<std::array<int, LossLevels::kKinds>, kThinned.size()> alarms{};
      for (int run = 0; run < course_runs(); ++run) {
        Noise noise(static_cast<std::uint64_t>(run) * 16 + kind);
        LossNoise scatter(kind, noise);
        std::array<LossLevels, kThinned.size()> seen;
        std::array<unsigned, kThinned.size()> told{};
        for (int step = 0; step < course_steps(); ++step) {
          const double loss =
              healthy.level(static_cast<double>(step) / course_steps()) + scatter.next();
          const double draw = noise.uniform();
          for (std::size_t i = 0; i < kThinned.size() && draw < kThinned[i]; ++i) {
            if (!seen[i].take(loss)) continue;
            CourseMoment now;
            now.step = step;
            now.updates = step + 1;
            now.end = course_steps();
            told[i] |= seen[i].judge(now, bounds);
          }
        }
        for (std::size_t i = 0; i < told.size(); ++i) {
          for (unsigned one = 0; one < LossLevels::kKinds; ++one)
            alarms[i][one] += told[i] >> one & 1U ? 1 : 0;
        }
      }
      std::cout << healthy.name << ", " << kNoises[kind] << " (rise lost spike spread):";
      for (const auto& counts : alarms) {
        std::cout << " |";
        for (const int count : counts) {
          std::cout << ' ' << count;
          EXPECT_LE(count, most) << healthy.name << ", " << kNoises[kind];
        }
      }
      std::cout << " of " << course_runs() << " runs\n";
    }
  }
}

// H₀ of stuck: a line that gets to the target with the last update.
TEST(CourseStreams, LossesThatArriveAreHardlyEverStuck) {
  CourseBounds bounds;
  bounds.alpha = 0.01;
  const double most = bounds.alpha * course_runs() + 3 * std::sqrt(bounds.alpha * course_runs());
  for (std::size_t kind = 0; kind < kNoises.size(); ++kind) {
    std::array<int, kThinned.size()> alarms{};
    for (int run = 0; run < course_runs(); ++run) {
      Noise noise(static_cast<std::uint64_t>(run) * 16 + 8 + kind);
      LossNoise scatter(kind, noise);
      std::array<LossLooks, kThinned.size()> seen;
      std::array<bool, kThinned.size()> told{};
      for (int step = 0; step < course_steps(); ++step) {
        const double loss = 2.3 * (1 - 0.02 * step / course_steps()) + 0.1 * scatter.next();
        const double draw = noise.uniform();
        for (std::size_t i = 0; i < kThinned.size() && draw < kThinned[i]; ++i) {
          seen[i].take(loss, step + 1, {2.3 * 0.98, 2.3 * 0.02, true}, 0, course_steps(), bounds);
          told[i] = told[i] || seen[i].short_of != 0;
        }
      }
      for (std::size_t i = 0; i < told.size(); ++i) alarms[i] += told[i] ? 1 : 0;
    }
    std::cout << "arrives, " << kNoises[kind] << ": " << alarms[0] << ", " << alarms[1] << ", "
              << alarms[2] << " of " << course_runs() << " runs\n";
    for (const int number : alarms) EXPECT_LE(number, most) << kNoises[kind];
  }
}

// The bound holds for any scatter, so the least is what the best of its bets needs: ln(1/α) by its mean growth.
TEST(CourseStreams, ARiseIsToldSoon) {
  constexpr double kEnough = 15;
  for (const double mean : {1.0, 2.0, 4.0, 8.0}) {
    double least = HUGE_VAL;
    double number = 0;
    for (double bet = 0.02; bet < 1.2; bet += 0.02) {
      Noise noise(3);
      double growth = 0;
      for (int i = 0; i < 4000; ++i) {
        growth +=
            (bet * std::min(mean + noise.normal(), RiseEvidence::kMost) - RiseEvidence::cost(bet)) /
            4000;
      }
      if (growth > 0) least = std::min(least, kEnough / growth);
    }
    constexpr int kRuns = 400;
    for (int run = 0; run < kRuns; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 11);
      RiseEvidence evidence;
      int count = 0;
      while (evidence.evidence() < kEnough) {
        evidence.add(mean + noise.normal());
        ++count;
      }
      number += static_cast<double>(count) / kRuns;
    }
    std::cout << "rise of " << mean << " errors: " << number << " chunks, ln(1/alpha)/growth "
              << least << "\n";
    EXPECT_LE(number, 1.5 * least + 1) << mean;
    EXPECT_GE(number, 0.8 * least) << mean;
  }
}

// A loss that stands above its target by `margins` of its margin is told at the first look whose error is small enough.
TEST(CourseStreams, ALossThatStandsIsToldAtTheLookThatTheoryGives) {
  const CourseBounds bounds;
  for (const double margins : {1.0, 2.0, 4.0}) {
    constexpr double kSigma = 0.2;
    const double above = margins * 0.046;
    double values = 0;
    constexpr int kRuns = 60;
    for (int run = 0; run < kRuns; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 77);
      LossLooks looks;
      int count = 0;
      while (looks.short_of == 0 && count < 100000) {
        ++count;
        looks.take(2.254 + above + kSigma * noise.normal(), count, {2.254, 0.046, true}, 0,
                   2 * count, bounds);
      }
      values += static_cast<double>(count) / kRuns;
    }
    // It must not reach the target by twice the updates: the line's error there is √(1 + 12·2.5²) errors of the mean of half
    // the values, widened by what correlation of the blocks cannot be excluded; with a chance of 0.8.
    double least = 64;
    for (int look = 1; look < 30; ++look) {
      const double t = student_quantile(LossLooks::kArrival * std::exp2(-look), 30) + 0.85;
      least = 32 * std::exp2(look);
      const double error = kSigma * std::sqrt(1.3 * (1 + 12 * 2.5 * 2.5) / (least / 2));
      if (above > t * error) break;
    }
    std::cout << "stands " << margins << " margins above: " << values << " values, theory " << least
              << "\n";
    EXPECT_LE(values, 1.5 * least) << margins;
  }
}

// Evaluations of the same data that scatter about where they stand, and that fall.
TEST(CourseStreams, EvaluationsThatStandAreHardlyEverSaidToTurn) {
  const int runs = 20 * course_runs();
  for (std::size_t kind = 0; kind < kNoises.size(); ++kind) {
    int standing = 0;
    int falling = 0;
    for (int run = 0; run < runs; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) * 16 + 4 + kind);
      LossNoise scatter(kind, noise);
      EvaluationTurn still;
      EvaluationTurn falls;
      bool told_still = false;
      bool told_falls = false;
      for (int pass = 0; pass < 40; ++pass) {
        const double wobble = scatter.next();
        told_still = told_still ||
                     still.take(pass, 1 + 4 * std::exp(-pass) + 0.1 * wobble, {2, 1.0 - pass}, 0.1);
        told_falls =
            told_falls || falls.take(pass, 5 - 0.05 * pass + 0.1 * wobble, {2, 1.0 - pass}, 0.1);
      }
      standing += told_still ? 1 : 0;
      falling += told_falls ? 1 : 0;
    }
    std::cout << "evaluations, " << kNoises[kind] << ": standing " << standing << ", falling "
              << falling << " of " << runs << "\n";
    EXPECT_LE(standing, 0.01 * runs + 3 * std::sqrt(0.01 * runs)) << kNoises[kind];
    EXPECT_LE(falling, 0.01 * runs + 3 * std::sqrt(0.01 * runs)) << kNoises[kind];
  }
}

}  // namespace
}  // namespace tocsin::rules
