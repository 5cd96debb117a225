#include "rules/builtin/tensors/movement_course.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr std::array<double, 3> kLookedAt{1, 0.1, 0.01};  // of the updates

int movement_runs(int otherwise) {
  const char* const text = std::getenv("TOCSIN_NULL_RUNS");
  return text == nullptr ? otherwise : std::atoi(text);
}

// Cosines of ±1 with this mean; ln(1/α)/KL of a coin with it against a fair one is the least that any test needs.
TEST(MovementStreams, UpdatesThatGoUpAreToldSoon) {
  const MovementBounds bounds;
  for (const double mean : {0.1, 0.2, 0.4, 0.8, 1.0}) {
    double looks = 0;
    const int runs = std::min(movement_runs(200), 400);
    for (int run = 0; run < runs; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 5);
      MovementCourse course;
      while (!course.goes_up(bounds)) {
        const double along = noise.uniform() < (1 + mean) / 2 ? 1 : -1;
        course.add({.looks = 1, .stands_for = 1, .along = along, .gradient = 1, .update = 1},
                   bounds);
      }
      looks += course.looks / runs;
    }
    const double p = (1 + mean) / 2;
    const double kl = p * std::log(2 * p) + (p < 1 ? (1 - p) * std::log(2 - 2 * p) : 0);
    const double least = -std::log(bounds.alpha) / kl;
    std::cout << "mean " << mean << ": " << looks << " looks, ln(1/alpha)/KL " << least << "\n";
    EXPECT_LE(looks, 1.5 * least) << mean;
  }
}

// At the limit exactly: the rates of MeanEvidence (mean_evidence_test.cc) hold for cosines.
TEST(MovementStreams, CosinesOfMeanZeroAreHardlyEverSaidToGoUp) {
  MovementBounds bounds;
  bounds.alpha = 0.01;
  const int runs = movement_runs(1000);
  std::array<int, kLookedAt.size()> alarms{};
  for (int run = 0; run < runs; ++run) {
    Noise noise(static_cast<std::uint64_t>(run) * 7);
    std::array<MovementCourse, kLookedAt.size()> seen;
    std::array<bool, kLookedAt.size()> over{};
    for (int step = 0; step < 1000; ++step) {
      const double along = noise.uniform() < 0.5 ? 1 : -1;
      const double draw = noise.uniform();
      for (std::size_t i = 0; i < kLookedAt.size() && draw < kLookedAt[i]; ++i) {
        seen[i].add({.looks = 1, .stands_for = 1, .along = along, .gradient = 1, .update = 1},
                    bounds);
        over[i] = over[i] || seen[i].goes_up(bounds);
      }
    }
    for (std::size_t i = 0; i < kLookedAt.size(); ++i) alarms[i] += over[i] ? 1 : 0;
  }
  std::cout << alarms[0] << ", " << alarms[1] << ", " << alarms[2] << " of " << runs << " runs\n";
  const double expected = bounds.alpha * runs;
  for (const int number : alarms) EXPECT_LE(number, expected + 3 * std::sqrt(expected));
}

/// An optimizer on a quadratic of many curvatures with gradients of noise: products of gradient and way.
class Optimizer {
 public:
  enum Kind { kPlain, kHeavy, kAdam, kKinds };
  Optimizer(Kind kind, double momentum, double noise, std::uint64_t seed)
      : kind_(kind), momentum_(momentum), noise_(noise), chance_(seed) {
    for (std::size_t i = 0; i < kSize; ++i) x_[i] = chance_.normal();
  }
  MovementSaid next(double rate) {
    MovementSaid out{.looks = 1, .stands_for = 1};
    ++steps_;
    for (std::size_t i = 0; i < kSize; ++i) {
      const double curvature = std::exp2(-static_cast<double>(i % 8));
      const double g = curvature * x_[i] + noise_ * chance_.heavy();
      way_[i] = momentum_ * way_[i] + (kind_ == kAdam ? 1 - momentum_ : 1) * g;
      second_[i] = 0.999 * second_[i] + 0.001 * g * g;
      double way = kind_ == kPlain ? -g : -way_[i];
      if (kind_ == kAdam) {
        way /= (1 - std::pow(momentum_, steps_)) *
               (std::sqrt(second_[i] / (1 - std::pow(0.999, steps_))) + 1e-8);
      }
      x_[i] += rate * way;
      out.along += g * way;
      out.gradient += g * g;
      out.update += way * way;
    }
    return out;
  }

 private:
  static constexpr std::size_t kSize = 16;
  Kind kind_;
  double momentum_;
  double noise_;
  Noise chance_;
  double steps_ = 0;
  std::array<double, kSize> x_{};
  std::array<double, kSize> way_{};
  std::array<double, kSize> second_{};
};

// Not one of these makes gradients whose mean cosine is at most 0 whatever came before: momentum goes up
// for hundreds of updates. The sum of the products says so.
TEST(MovementStreams, OptimizersThatGoDownAreHardlyEverSaidToGoUp) {
  const MovementBounds bounds;
  const int runs = std::min(movement_runs(5), 200);
  int alarms = 0;
  int number = 0;
  int climbed = 0;
  for (int kind = 0; kind < Optimizer::kKinds; ++kind) {
    for (const double momentum : {0.9, 0.99, 0.999}) {
      for (const double noise : {0.0, 0.1, 3.0}) {
        for (int run = 0; run < runs; ++run, ++number) {
          Optimizer optimizer(static_cast<Optimizer::Kind>(kind), momentum, noise,
                              static_cast<std::uint64_t>(run) * 3 + 1);
          Noise draw(static_cast<std::uint64_t>(run) + 1000);
          std::array<MovementCourse, kLookedAt.size()> seen;
          std::array<double, kLookedAt.size()> gaps{};
          std::array<bool, kLookedAt.size()> over{};
          for (int step = 0; step < 2000; ++step) {
            MovementSaid said = optimizer.next(kind == Optimizer::kHeavy ? 1e-3 : 1e-2);
            const double at = draw.uniform();
            for (std::size_t i = 0; i < kLookedAt.size(); ++i) {
              ++gaps[i];
              if (at >= kLookedAt[i] && step >= 64) continue;
              said.stands_for = gaps[i];
              gaps[i] = 0;
              seen[i].add(said, bounds);
              over[i] = over[i] || seen[i].goes_up(bounds);
              if (i == 0 && seen[i].climbed > 0) ++climbed;
            }
          }
          for (const bool one : over) alarms += one ? 1 : 0;
        }
      }
    }
  }
  std::cout << alarms << " alarms in " << number << " runs at three paces\n";
  EXPECT_EQ(climbed, 0) << "the sum over all updates of momentum and of Adam is never above zero";
  EXPECT_LE(alarms, 3 * number * bounds.alpha + 3 * std::sqrt(3 * number * bounds.alpha));
}

}  // namespace
}  // namespace tocsin::rules
