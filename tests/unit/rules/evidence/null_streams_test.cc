// Runs that need nobody, by the thousand: how often evidence speaks against them, whatever part of
// the steps is seen. TOCSIN_NULL_RUNS (400) and TOCSIN_NULL_STEPS (4000) make it as long as you like; each
// line says what was counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "rules/evidence/doubled_looks.h"
#include "rules/evidence/share_evidence.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

constexpr double kAlpha = 0.01;
constexpr double kShare = 0.55;
constexpr double kMargin = 0.05;
constexpr std::array<double, 3> kSeen{1, 0.1, 0.01};  // of the steps
constexpr std::array<const char*, 5> kStreams{"independent", "alike neighbours", "epochs",
                                              "heavy tails", "drift"};

int number_of(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}
int runs() { return number_of("TOCSIN_NULL_RUNS", 400); }
int steps() { return number_of("TOCSIN_NULL_STEPS", 4000); }

/// The share of wins to come at each step: never below kShare.
class Shares {
 public:
  Shares(std::size_t kind, Noise& noise) : kind_(kind), noise_(noise) {
    for (int i = 0; i < 400; ++i) epoch_.push_back(i < 220 ? 1 : 0);
  }
  /// Of four pairs.
  double wins(double done) {
    constexpr int kPairs = 4;
    if (kind_ == 1) {
      if (noise_.uniform() < 0.25) high_ = !high_;  // correlation ½ of neighbours
      return noise_.wins(high_ ? 0.75 : kShare, kPairs);
    }
    if (kind_ == 2) {
      double out = 0;
      for (int i = 0; i < kPairs; ++i) {
        if (next_ == 0) noise_.shuffle(epoch_);
        out += epoch_[next_];
        next_ = (next_ + 1) % epoch_.size();
      }
      return out;
    }
    double share = kShare;
    if (kind_ == 3) share = std::min(1.0, kShare + 0.05 * std::fabs(noise_.heavy()));
    if (kind_ == 4) share = kShare + 0.3 * std::max(0.0, 1 - 4 * done);
    return noise_.wins(share, kPairs);
  }

 private:
  std::size_t kind_;
  Noise& noise_;
  std::vector<int> epoch_;
  std::size_t next_ = 0;
  bool high_ = false;
};

/// Differences whose mean is never below 0.
class Differences {
 public:
  Differences(std::size_t kind, Noise& noise) : kind_(kind), noise_(noise) {
    double sum = 0;
    for (int i = 0; i < 100; ++i) epoch_.push_back(noise.heavy());
    for (const double x : epoch_) sum += x / 100;
    for (double& x : epoch_) x -= sum;
  }
  double next(double done) {
    if (kind_ == 1) return before_ = 0.5 * before_ + noise_.normal();
    if (kind_ == 2) {
      if (at_ == 0) noise_.shuffle(epoch_);
      const double out = epoch_[at_];
      at_ = (at_ + 1) % epoch_.size();
      return out;
    }
    if (kind_ == 3) return noise_.heavy();
    return noise_.normal() + (kind_ == 4 ? 3 * std::max(0.0, 1 - 4 * done) : 0);
  }

 private:
  std::size_t kind_;
  Noise& noise_;
  std::vector<double> epoch_;
  std::size_t at_ = 0;
  double before_ = 0;
};

double most_alarms() {
  const double expected = kAlpha * runs();
  return expected + 3 * std::sqrt(expected * (1 - kAlpha));
}

TEST(NullStreams, SharesThatAreHighEnoughAreHardlyEverRejected) {
  for (std::size_t kind = 0; kind < kStreams.size(); ++kind) {
    std::array<int, kSeen.size()> alarms{};
    for (int run = 0; run < runs(); ++run) {
      Noise noise(static_cast<std::uint64_t>(run) * 10 + kind);
      Shares shares(kind, noise);
      std::array<ShareCounts, kSeen.size()> seen;
      std::array<bool, kSeen.size()> over{};
      for (int step = 0; step < steps(); ++step) {
        const double wins = shares.wins(static_cast<double>(step) / steps());
        const double draw = noise.uniform();
        for (std::size_t i = 0; i < kSeen.size() && draw < kSeen[i]; ++i) {
          seen[i].add(wins, 4);
          over[i] = over[i] || seen[i].against_at_least(kShare, kMargin) >= -std::log(kAlpha);
        }
      }
      for (std::size_t i = 0; i < kSeen.size(); ++i) alarms[i] += over[i] ? 1 : 0;
    }
    std::cout << "shares, " << kStreams[kind] << ": " << alarms[0] << ", " << alarms[1] << ", "
              << alarms[2] << " of " << runs() << " runs\n";
    for (const int number : alarms) EXPECT_LE(number, most_alarms()) << kStreams[kind];
  }
}

TEST(NullStreams, MeansThatAreHighEnoughAreHardlyEverRejected) {
  for (std::size_t kind = 0; kind < kStreams.size(); ++kind) {
    std::array<int, kSeen.size()> alarms{};
    for (int run = 0; run < runs(); ++run) {
      Noise noise(static_cast<std::uint64_t>(run) * 10 + 5 + kind);
      Differences differences(kind, noise);
      std::array<DoubledLooks, kSeen.size()> seen;
      std::array<bool, kSeen.size()> over{};
      for (int step = 0; step < steps(); ++step) {
        const double difference = differences.next(static_cast<double>(step) / steps());
        const double draw = noise.uniform();
        for (std::size_t i = 0; i < kSeen.size() && draw < kSeen[i]; ++i) {
          if (!seen[i].add(1, difference, 1, step)) continue;
          over[i] = over[i] || seen[i].mean(0).upper(kAlpha * std::exp2(-seen[i].looks)) < 0;
        }
      }
      for (std::size_t i = 0; i < kSeen.size(); ++i) alarms[i] += over[i] ? 1 : 0;
    }
    std::cout << "means, " << kStreams[kind] << ": " << alarms[0] << ", " << alarms[1] << ", "
              << alarms[2] << " of " << runs() << " runs\n";
    for (const int number : alarms) EXPECT_LE(number, most_alarms()) << kStreams[kind];
  }
}

// What a share that is 1, 2, 4 or 8 margins too low takes, beside the least that any test needs.
TEST(NullStreams, AShareThatIsTooLowIsToldAlmostAsSoonAsPossible) {
  for (const double effect : {1.0, 2.0, 4.0, 8.0}) {
    const double w = kShare - effect * kMargin;
    double pairs = 0;
    const int number = runs();
    for (int run = 0; run < number; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 77);
      ShareCounts counts;
      while (counts.against_at_least(kShare, kMargin) < -std::log(0.001)) {
        counts.add(noise.wins(w, 1), 1);
      }
      pairs += counts.pairs / number;
    }
    const double least = observations_needed(w, kShare, 0.001);
    std::cout << "share " << w << ": " << pairs << " pairs on average, ln(1/alpha)/KL " << least
              << "\n";
    EXPECT_LE(pairs, 1.5 * least) << w;
  }
}

// A mean that is too low by so many errors of one step is told at a look that is at most twice as far
// as where a single test with 31 degrees of freedom would have nine in ten.
TEST(NullStreams, AMeanThatIsTooLowIsToldAtTheNextDoubling) {
  for (const double effect : {0.25, 0.5, 1.0, 2.0}) {
    double entries = 0;
    const int number = std::min(runs(), 400);
    for (int run = 0; run < number; ++run) {
      Noise noise(static_cast<std::uint64_t>(run) + 99);
      DoubledLooks looks;
      double step = 0;
      for (bool over = false; !over; ++step) {
        if (!looks.add(1, noise.normal() - effect, 1, step)) continue;
        over = looks.mean(0).upper(0.001 * std::exp2(-looks.looks)) < 0;
      }
      entries += step / number;
    }
    const double single = std::pow((student_quantile(0.001, 31) + 1.3) / effect, 2);
    std::cout << "mean " << -effect << ": " << entries << " entries on average, single test "
              << single << "\n";
    EXPECT_LE(entries, std::max(64.0, 4 * single)) << effect;  // the window is half of them
  }
}

}  // namespace
}  // namespace tocsin::rules
