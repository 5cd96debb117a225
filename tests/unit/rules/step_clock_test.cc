// The step clock against the plain loop over all workers that it replaces.
#include "rules/engine/memory/step_clock.h"

#include <gtest/gtest.h>

#include <random>

namespace tocsin::rules {
namespace {

constexpr std::int64_t kNever = StepClock::kNever;

/// The slow version: everything is looked up anew.
struct Plain {
  std::vector<StepClock::Presence> all;

  [[nodiscard]] bool takes_part(const StepClock::Presence& one, std::size_t mode) const {
    return one.counted && (one.active & (1U << mode)) != 0;
  }
  [[nodiscard]] std::int64_t watermark(std::size_t mode) const {
    std::int64_t least = LeastOf::kNone;
    for (const auto& one : all) {
      if (takes_part(one, mode)) least = std::min(least, one.mark[mode]);
    }
    return least;
  }
  [[nodiscard]] std::int64_t open_pass(std::size_t mode) const {
    std::int64_t least = LeastOf::kNone;
    for (const auto& one : all) {
      if (takes_part(one, mode)) least = std::min<std::int64_t>(least, one.pass);
    }
    return least;
  }
  [[nodiscard]] std::int64_t newest(std::size_t mode) const {
    std::int64_t most = kNever;
    for (const auto& one : all) {
      if (one.present) most = std::max(most, one.seen[mode]);
    }
    return most;
  }
};

TEST(StepClock, SaysNothingOfNobody) {
  const StepClock clock;
  EXPECT_FALSE(clock.waiting(1));
  EXPECT_EQ(clock.watermark(1), LeastOf::kNone);
  EXPECT_EQ(clock.newest(1), kNever);
  EXPECT_FALSE(clock.anyone());
}

TEST(StepClock, IsWhatTheLoopOverAllWorkersSays) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const std::size_t workers = 1 + random() % 70;
    StepClock clock;
    Plain plain;
    plain.all.resize(workers);
    for (int step = 0; step < 600; ++step) {
      const std::size_t who = random() % workers;
      StepClock::Presence& one = plain.all[who];
      one.present = upto(20) != 0;
      one.gone = upto(5) == 0;
      one.counted = one.present && !one.gone && upto(6) != 0;
      one.active = static_cast<std::uint8_t>(upto(16));
      one.pass = static_cast<std::uint32_t>(upto(4));
      const auto mode = static_cast<std::size_t>(upto(4));
      one.mark[mode] = upto(10) == 0 ? kNever : upto(50);
      one.seen[mode] = upto(10) == 0 ? kNever : upto(50);
      clock.update(who, one);
      std::size_t present = 0;
      std::size_t gone = 0;
      bool anyone = false;
      for (const auto& each : plain.all) {
        present += each.present ? 1 : 0;
        gone += each.present && each.gone ? 1 : 0;
        anyone = anyone || (each.counted && each.active != 0);
      }
      ASSERT_EQ(clock.present(), present);
      ASSERT_EQ(clock.gone(), gone);
      ASSERT_EQ(clock.anyone(), anyone);
      for (std::size_t m = 0; m < StepClock::kModes; ++m) {
        ASSERT_EQ(clock.watermark(m), plain.watermark(m)) << seed << ' ' << step << ' ' << m;
        ASSERT_EQ(clock.newest(m), plain.newest(m));
        ASSERT_EQ(clock.open_pass(m), plain.open_pass(m));
      }
    }
  }
}

TEST(StepClock, StandsTheEndsOfTheRange) {
  StepClock clock;
  StepClock::Presence one;
  one.present = one.counted = true;
  one.active = 2;
  one.mark[1] = INT64_MIN;
  one.seen[1] = INT64_MAX;
  clock.update(3, one);
  EXPECT_EQ(clock.watermark(1), INT64_MIN);
  EXPECT_EQ(clock.newest(1), INT64_MAX);
  EXPECT_EQ(clock.trainers(1), 1U);
}

}  // namespace
}  // namespace tocsin::rules
