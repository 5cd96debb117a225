// How often a class that knows just enough is told of, and how soon one that knows nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>
#include <vector>

#include "rules/builtin/data/class_course.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules {
namespace {

using testing_support::Noise;

/// Looks of one call; thinned: so much of the samples is seen.
struct Stream {
  ClassBounds bounds;
  ClassCourse course;
  Noise chance;
  std::vector<double> w;
  bool hit = false;

  Stream(std::vector<double> shares, std::uint64_t seed, double alpha)
      : bounds{.alpha = alpha}, chance(seed), w(std::move(shares)) {}
  /// Returns the number of updates, or 0.
  double go(double thinned, double last) {
    double before = 0;
    for (double updates = 64; updates <= last; updates *= 2) {
      LedgerClasses all;
      all.senders = 1;
      const double each = 32 * (updates - before) * thinned / static_cast<double>(w.size());
      for (std::uint32_t c = 0; c < w.size(); ++c) {
        LedgerClass& one = all.classes[c];
        const int pairs = static_cast<int>(each * 0.9);
        one.sums = {each,
                    each,
                    0.8 * each,
                    0.3 * each,
                    static_cast<double>(pairs),
                    chance.wins(w[c], pairs),
                    0};
        one.senders = 1;
        all.samples += each;
        ++all.count;
      }
      course.train(all, updates, bounds);
      before = updates;
      if (course.kinds() != 0) return updates;
    }
    return 0;
  }
};

// Half of the classes have just what each must have: 0.5 + 0.33 * (0.9 - 0.5).
TEST(ClassStreams, NullStreamsOfClassesThatAreJustGoodEnough) {
  constexpr int kRuns = 300;
  constexpr double kAlpha = 0.05;
  for (const double thinned : {1.0, 0.1, 0.01}) {
    int alarms = 0;
    for (int run = 0; run < kRuns; ++run) {
      const double limit = 0.5 + 0.33 * 0.4;
      Stream stream({0.9, 0.9, 0.9, 0.9, 0.9, 0.9, limit, limit, limit, limit},
                    static_cast<std::uint64_t>(run) + 1, kAlpha);
      alarms += stream.go(thinned, 2048 / std::min(1.0, thinned * 4)) > 0 ? 1 : 0;
    }
    std::cout << "classes at the limit, " << thinned << " of the samples: " << alarms << " of "
              << kRuns << " runs\n";
    EXPECT_LE(alarms, kAlpha * kRuns + 3 * std::sqrt(kAlpha * kRuns));
  }
}

TEST(ClassStreams, PowerAgainstOneRandomClassOfTen) {
  constexpr int kRuns = 100;
  for (const auto& [w, most] : {std::pair{0.5, 1024.0}, {0.55, 2048.0}, {0.6, 16384.0}}) {
    int alarms = 0;
    double updates = 0;
    for (int run = 0; run < kRuns; ++run) {
      Stream stream({0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95, w},
                    static_cast<std::uint64_t>(run) + 1, 0.0005);
      const double at = stream.go(1, most);
      alarms += at > 0 ? 1 : 0;
      updates += at / kRuns;
    }
    std::cout << "w = " << w << ": " << alarms << " of " << kRuns << " by update " << most
              << ", on average at " << updates << '\n';
    EXPECT_GE(alarms, 95);
  }
}

TEST(ClassStreams, AllClassesShareOneChance) {
  // e-BH: of m = 4 with k named each needs m/(k alpha).
  const double alpha = std::log(0.01);
  EXPECT_EQ(named_from({std::log(399.0), 0, 0, 0}, 4, alpha), HUGE_VAL);
  EXPECT_DOUBLE_EQ(named_from({0, std::log(401.0), 0, 0}, 4, alpha), std::log(401.0));
  EXPECT_DOUBLE_EQ(named_from({std::log(201.0), std::log(202.0), 0, 0}, 4, alpha), std::log(201.0));
  EXPECT_EQ(named_from({}, 4, alpha), HUGE_VAL);
}

}  // namespace
}  // namespace tocsin::rules
