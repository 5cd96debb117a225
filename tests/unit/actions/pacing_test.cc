#include "actions/pacing.h"

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
  EXPECT_EQ(backoff(cfg, 3, 0.0), 0s);
}

TEST(ConfigurationWait, DoublesFromOneMinuteToTen) {
  EXPECT_EQ(configuration_wait(1), 1min);
  EXPECT_EQ(configuration_wait(2), 2min);
  EXPECT_EQ(configuration_wait(4), 8min);
  EXPECT_EQ(configuration_wait(5), 10min);
  EXPECT_EQ(configuration_wait(1'000'000), 10min);
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

TEST(Breaker, OpensAfterFailuresInARowAndProbesOnce) {
  Breaker breaker({3, 30s, 5min});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(breaker.ready(kStart));
    breaker.started(kStart);
    breaker.finished(false, kStart);
  }
  EXPECT_EQ(breaker.state(), Breaker::State::open);
  EXPECT_FALSE(breaker.ready(kStart + 30s - 1ns));
  EXPECT_EQ(breaker.next(kStart), kStart + 30s);
  ASSERT_TRUE(breaker.ready(kStart + 30s));
  breaker.started(kStart + 30s);
  EXPECT_FALSE(breaker.ready(kStart + 31s));  // one probe
  breaker.finished(true, kStart + 31s);
  EXPECT_EQ(breaker.state(), Breaker::State::closed);
  EXPECT_TRUE(breaker.ready(kStart + 31s));
}

TEST(Breaker, DoublesItsPauseWhileProbesFail) {
  Breaker breaker({1, 30s, 100s});
  breaker.finished(false, kStart);
  core::WallTime now = kStart;
  for (const auto pause : {30s, 60s, 100s, 100s}) {
    EXPECT_EQ(breaker.next(now), now + pause);
    now += pause;
    breaker.started(now);
    breaker.finished(false, now);
  }
}

TEST(Breaker, ASuccessBetweenStartsTheCountAnew) {
  Breaker breaker({3, 30s, 5min});
  for (const bool up : {false, false, true, false, false}) breaker.finished(up, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::closed);
}

TEST(Breaker, OpensWhenMostOfAMinuteFailed) {
  Breaker breaker({100, 30s, 5min});
  // 6 of 11: more than half of at least ten
  for (const bool up : {true, false, true, false, true, false, true, false, true, false}) {
    breaker.finished(up, kStart);
  }
  EXPECT_EQ(breaker.state(), Breaker::State::closed);
  breaker.finished(false, kStart);
  EXPECT_EQ(breaker.state(), Breaker::State::open);

  Breaker slow({100, 30s, 5min});
  for (int i = 0; i < 30; ++i) slow.finished(i % 3 == 0, kStart + i * 10s);
  EXPECT_EQ(slow.state(), Breaker::State::closed);  // never ten in a minute
}

}  // namespace
}  // namespace tocsin::actions
