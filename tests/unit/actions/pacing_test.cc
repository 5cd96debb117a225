#include "actions/delivery/pacing.h"

#include <gtest/gtest.h>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;

TEST(Backoff, GrowsToItsBoundAndIsSpreadOverAllOfIt) {
  const RetryConfig cfg;  // 1 s, ×2, at most 2 min
  EXPECT_EQ(backoff(cfg, 1, 1.0), 1s);
  EXPECT_EQ(backoff(cfg, 2, 1.0), 2s);
  EXPECT_EQ(backoff(cfg, 5, 0.5), 8s);
  EXPECT_EQ(backoff(cfg, 8, 1.0), 2min);
  EXPECT_EQ(backoff(cfg, 4'000'000'000U, 1.0), 2min);
  EXPECT_EQ(backoff(cfg, 3, 0.0), kShortestWait);  // no chance makes a storm
}

TEST(ConfigurationWait, DoublesFromOneMinuteToTen) {
  EXPECT_EQ(configuration_wait(1), 1min);
  EXPECT_EQ(configuration_wait(2), 2min);
  EXPECT_EQ(configuration_wait(4), 8min);
  EXPECT_EQ(configuration_wait(5), 10min);
  EXPECT_EQ(configuration_wait(1'000'000), 10min);
}

TEST(ParkedWait, DoublesFromTenMinutesToAnHour) {
  const RetryConfig cfg;  // at most 2 min
  EXPECT_EQ(parked_wait(cfg, 1), 10min);
  EXPECT_EQ(parked_wait(cfg, 2), 20min);
  EXPECT_EQ(parked_wait(cfg, 4), 1h);
  EXPECT_EQ(parked_wait(cfg, 1'000'000), 1h);
}

TEST(LaneWidth, IsHalvedByAThrottleAndGrowsWithWhatArrives) {
  LaneWidth width(4);
  width.throttled();
  EXPECT_EQ(width.now(), 2U);
  for (int i = 0; i < 5; ++i) width.throttled();
  EXPECT_EQ(width.now(), 1U);
  for (int i = 0; i < 10; ++i) width.arrived();
  EXPECT_EQ(width.now(), 2U);
  for (int i = 0; i < 1000; ++i) width.arrived();
  EXPECT_EQ(width.now(), 4U);
}

TEST(TokenBucket, GivesItsBurstAndThenItsRate) {
  TokenBucket bucket({2, 1min, 3});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bucket.ready(kStart));
    bucket.take(kStart);
  }
  EXPECT_FALSE(bucket.ready(kStart));
  const auto next = bucket.next(kStart);
  EXPECT_GE(next, kStart + 30s);
  EXPECT_LE(next, kStart + 30s + 1us);
  EXPECT_FALSE(bucket.ready(kStart + 29s));
  EXPECT_TRUE(bucket.ready(next));
}

TEST(TokenBucket, NeverHoldsMoreThanItsBurst) {
  TokenBucket bucket({60, 1min, 2});
  bucket.take(kStart);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(bucket.ready(kStart + 1h));
    bucket.take(kStart + 1h);
  }
  EXPECT_FALSE(bucket.ready(kStart + 1h));
}

TEST(TokenBucket, WithoutARateIsAlwaysReady) {
  TokenBucket bucket(RateLimitConfig{});
  for (int i = 0; i < 100; ++i) bucket.take(kStart);
  EXPECT_TRUE(bucket.ready(kStart));
}

// Each failure by another message.
struct Failing {
  explicit Failing(const BreakerConfig& cfg) : breaker(cfg) {}
  void finished(bool up, core::WallTime now) {
    const std::string who = "m" + std::to_string(++count);
    breaker.started(who, now);
    breaker.finished(who, up, now);
  }
  Breaker breaker;
  int count = 0;
};

TEST(Breaker, OpensAfterFailuresInARowAndProbesOnce) {
  Failing far({3, 30s, 5min});
  Breaker& breaker = far.breaker;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(breaker.ready(kStart, false));
    far.finished(false, kStart);
  }
  EXPECT_EQ(breaker.state(), Breaker::State::open);
  EXPECT_FALSE(breaker.ready(kStart + 30s - 1ns, false));
  EXPECT_EQ(breaker.next(kStart, false), kStart + 30s);
  ASSERT_TRUE(breaker.ready(kStart + 30s, false));
  breaker.started("probe", kStart + 30s);
  EXPECT_FALSE(breaker.ready(kStart + 31s, true));     // one probe
  breaker.finished("an old one", true, kStart + 31s);  // says nothing new
  EXPECT_EQ(breaker.state(), Breaker::State::half_open);
  breaker.finished("probe", true, kStart + 31s);
  EXPECT_EQ(breaker.state(), Breaker::State::closed);
  EXPECT_TRUE(breaker.ready(kStart + 31s, false));
}

TEST(Breaker, OneMessageThatFailsDoesNotOpenIt) {
  Breaker breaker({3, 30s, 5min});
  for (int i = 0; i < 100; ++i) breaker.finished("poison", false, kStart + i * 1s);
  EXPECT_EQ(breaker.state(), Breaker::State::closed);
  breaker.finished("another", false, kStart + 100s);
  EXPECT_EQ(breaker.state(), Breaker::State::open);
}

TEST(Breaker, AMessageThatWasNeverTriedMayAskEarlier) {
  Failing far({3, 30s, 5min});
  Breaker& breaker = far.breaker;
  for (int i = 0; i < 3; ++i) far.finished(false, kStart);
  core::WallTime now = kStart;
  for (const auto step : {1s, 2s, 4s, 8s}) {
    EXPECT_FALSE(breaker.ready(now + step - 1ns, true));
    now += step;
    EXPECT_EQ(breaker.next(now - 1ns, true), now);
    EXPECT_FALSE(breaker.ready(now, false));
    far.finished(false, now);
    EXPECT_EQ(breaker.state(), Breaker::State::open);
  }
  EXPECT_EQ(breaker.next(now, true), kStart + 30s);  // no later than the pause ends
  EXPECT_EQ(breaker.next(now, false), kStart + 30s);
  far.finished(true, kStart + 30s);
  EXPECT_EQ(breaker.state(), Breaker::State::closed);
}

TEST(Breaker, DoublesItsPauseWhileProbesFail) {
  Failing far({1, 30s, 100s});
  far.finished(false, kStart);
  core::WallTime now = kStart;
  for (const auto pause : {30s, 60s, 100s, 100s}) {
    EXPECT_EQ(far.breaker.next(now, false), now + pause);
    now += pause;
    far.finished(false, now);
  }
}

TEST(Breaker, ASuccessBetweenStartsTheCountAnew) {
  Failing far({3, 30s, 5min});
  for (const bool up : {false, false, true, false, false}) far.finished(up, kStart);
  EXPECT_EQ(far.breaker.state(), Breaker::State::closed);
}

TEST(Breaker, OpensWhenMostOfAMinuteFailed) {
  Failing far({100, 30s, 5min});
  // 7 of 13, the last two in a row: more than half of at least ten
  for (const bool up : {true, false, true, false, true, false, true, false, true, false, true}) {
    far.finished(up, kStart);
  }
  far.finished(false, kStart);
  EXPECT_EQ(far.breaker.state(), Breaker::State::closed);
  far.finished(false, kStart);
  EXPECT_EQ(far.breaker.state(), Breaker::State::open);

  Failing slow({100, 30s, 5min});
  for (int i = 0; i < 30; ++i) slow.finished(i % 3 == 0, kStart + i * 10s);
  EXPECT_EQ(slow.breaker.state(), Breaker::State::closed);  // never ten in a minute
}

}  // namespace
}  // namespace tocsin::actions
