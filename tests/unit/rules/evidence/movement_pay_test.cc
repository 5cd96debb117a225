// Descents whose updates pay, by the dozen: how often it is said that they do not; and how many looks it takes where the
// loss that is logged is not the loss that is trained. TOCSIN_NULL_RUNS makes it as long as you like.
#include "rules/builtin/tensors/movement_pay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr std::array<double, 3> kPaceSeen{1, 0.1, 0.01};  // of the updates
constexpr double kPayAlpha = 0.01;
constexpr int kPayUpdates = 13000;

/// Gradient descent with gradients of noise, and what it says of its loss.
class Descent {
 public:
  enum Kind { kConverged, kFalling, kSlow, kSaddle, kMomentum, kHeavy, kKinds };
  Descent(Kind kind, std::uint64_t seed) : kind_(kind), chance_(seed) {
    const double start = kind == kConverged ? 0.05 : kind == kSaddle ? 1e-3 : 1;
    for (double& x : x_) x = start * chance_.normal();
  }
  struct Said {
    double loss = 0;
    double pay = 0;      // this gradient · the change before
    double falsely = 0;  // the gradient that it was made of · the change
  };
  Said next() {
    Said out;
    const double rate = kind_ == kSlow ? 1e-5 : kind_ == kMomentum ? 1e-3 : 1e-2;
    for (std::size_t i = 0; i < kSize; ++i) {
      const double h = std::exp2(-static_cast<double>(i));
      const double slope = kind_ == kSaddle ? h * (x_[i] * x_[i] * x_[i] - x_[i]) : h * x_[i];
      const double noise = kind_ == kHeavy ? chance_.heavy() / 2 : chance_.normal();
      const double g = slope + 0.5 * noise;
      out.loss += kind_ == kSaddle ? h * (std::pow(x_[i], 4) / 4 - x_[i] * x_[i] / 2)
                                   : h * x_[i] * x_[i] / 2;
      out.pay += g * moved_[i];
      way_[i] = (kind_ == kMomentum ? 0.9 : 0) * way_[i] + g;
      moved_[i] = -rate * way_[i];
      out.falsely += g * moved_[i];
      x_[i] += moved_[i];
    }
    out.loss += 0.1 * (kind_ == kHeavy ? chance_.heavy() : chance_.normal());
    return out;
  }

 private:
  static constexpr std::size_t kSize = 4;
  Kind kind_;
  Noise chance_;
  std::array<double, kSize> x_{};
  std::array<double, kSize> way_{};
  std::array<double, kSize> moved_{};
};

int pay_runs(int otherwise) {
  const char* const text = std::getenv("TOCSIN_NULL_RUNS");
  return text == nullptr ? otherwise : std::atoi(text);
}

TEST(PayCourse, DescentsThatPayAreHardlyEverToldAtAnyThinning) {
  const int runs = pay_runs(60);
  for (int kind = 0; kind < Descent::kKinds; ++kind) {
    std::array<int, kPaceSeen.size()> alarms{};
    int naive = 0;
    for (int run = 0; run < runs; ++run) {
      const auto seed = static_cast<std::uint64_t>(run) * 100 + static_cast<std::uint64_t>(kind);
      Descent descent(static_cast<Descent::Kind>(kind), seed);
      Noise draw(seed + 50);
      std::array<PayCourse, kPaceSeen.size()> seen;
      std::array<bool, kPaceSeen.size()> told{};
      PayCourse same;  // as if the gradient that made the change said it
      bool naively = false;
      for (int step = 0; step < kPayUpdates; ++step) {
        const Descent::Said said = descent.next();
        const double at = draw.uniform();
        for (std::size_t i = 0; i < kPaceSeen.size() && at < kPaceSeen[i]; ++i) {
          seen[i].add(said.loss, said.pay, step, kPayAlpha);
          told[i] = told[i] || seen[i].unpaid != 0;
        }
        same.add(said.loss, said.falsely, step, kPayAlpha);
        naively = naively || same.unpaid != 0;
      }
      for (std::size_t i = 0; i < kPaceSeen.size(); ++i) alarms[i] += told[i] ? 1 : 0;
      naive += naively ? 1 : 0;
    }
    std::cout << "descent " << kind << ": " << alarms[0] << ", " << alarms[1] << ", " << alarms[2]
              << " of " << runs << " runs; " << naive << " by a product of one batch\n";
    const double expected = kPayAlpha * runs;
    for (const int number : alarms) EXPECT_LE(number, expected + 3 * std::sqrt(expected)) << kind;
    if (kind == Descent::kConverged) {
      EXPECT_EQ(naive, runs) << "noise alone looks like descent";
    }
  }
}

/// The first look at which the promise, less its own error, exceeds ten errors of a line through the noise of the loss.
int look_that_theory_needs(double promise, double noise, double alpha) {
  const double alike = 1.0 / 32 + DoubledLooks::kError / std::sqrt(32.0);
  const double widened = std::sqrt((1 + alike) / (1 - alike));
  for (int look = 1;; ++look) {
    const double window = 32 * std::exp2(look - 1);
    const double t = student_quantile(alpha * std::exp2(-look), 31);
    const double promised = promise * window * (1 - t * widened / std::sqrt(window));
    if (promised > std::max(10.0, 2 * t) * std::sqrt(12.0) * noise * widened / std::sqrt(window)) {
      return static_cast<int>(2 * window);
    }
  }
}

// A loss that stays has a line that rises as often as it falls: so at each look from that one on, half of the runs are told.
TEST(PayCourse, ALossThatIsNotTrainedIsToldWithinOneLookOfTheory) {
  constexpr double kNoise = 0.3;
  for (const double promise : {0.1, 0.01, 0.001}) {
    std::vector<double> needed;
    for (int run = 0; run < 40; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 3);
      PayCourse course;
      int step = 0;
      for (; step < 100000 && course.unpaid == 0; ++step) {
        course.add(2.3 + kNoise * noise.normal(), -promise * (1 + noise.normal()), step, 0.0005);
      }
      needed.push_back(step);
    }
    std::sort(needed.begin(), needed.end());
    const int theory = look_that_theory_needs(promise, kNoise, 0.0005);
    std::cout << "promise " << promise << ": " << needed[20] << " looks, theory " << theory << "\n";
    EXPECT_LE(needed[20], 2 * theory) << promise;
    EXPECT_GE(needed[0], theory / 2) << promise;
  }
}

TEST(PayCourse, ALossThatFallsAsPromisedPays) {
  Noise noise(4);
  PayCourse course;
  for (int step = 0; step < 4096; ++step) {
    course.add(5 - 0.001 * step + 0.1 * noise.normal(), -0.001 * (1 + noise.normal()), step,
               0.0005);
  }
  EXPECT_EQ(course.known, 1U);
  EXPECT_EQ(course.unpaid, 0U);
  EXPECT_NEAR(course.fallen / course.promised, 1, 0.2);
}

}  // namespace
}  // namespace tocsin::rules
