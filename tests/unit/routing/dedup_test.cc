// Events count once: what is remembered, how it is written, when it is forgotten.
#include "routing/tables/dedup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr core::WallTime kFirstSeen = core::WallTime{} + std::chrono::hours(24 * 365 * 56);

bool seen(Dedup& dedup, int number, core::WallTime now) {
  return dedup.seen("/c1", "iss_" + std::to_string(number), now);
}

std::vector<StateRecord> taken(Dedup& dedup) {
  std::vector<StateRecord> out;
  dedup.take(out);
  return out;
}

TEST(Dedup, WhatComesBetweenTwoTakesIsOneRecord) {
  Dedup dedup(24h, 100);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(seen(dedup, i, kFirstSeen + 1ms * i));
  EXPECT_TRUE(seen(dedup, 3, kFirstSeen + 1s));
  EXPECT_THAT(taken(dedup), SizeIs(1));
  EXPECT_THAT(taken(dedup), IsEmpty());
  EXPECT_FALSE(seen(dedup, 10, kFirstSeen));  // in the instant of the first
  const auto next = taken(dedup);
  ASSERT_THAT(next, SizeIs(1));
  std::vector<StateRecord> all;
  dedup.snapshot(all);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[1].key, next[0].key);
  EXPECT_EQ(all[1].value, next[0].value);
}

TEST(Dedup, ARestartForgetsNothing) {
  Dedup before(24h, 100);
  std::map<std::string, std::string> log;
  for (int i = 0; i < 9; ++i) {
    seen(before, i, kFirstSeen + 1h * i);
    if (i % 3 != 2) continue;
    for (const auto& record : taken(before)) log[record.key] = *record.value;
  }
  Dedup after(24h, 100);
  for (const auto& [key, value] : log) ASSERT_TRUE(after.restore(key.substr(5), value));
  after.restored();
  EXPECT_THAT(taken(after), IsEmpty());
  EXPECT_EQ(after.size(), 9U);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(seen(after, i, kFirstSeen + 9h)) << i;
  EXPECT_FALSE(seen(after, 9, kFirstSeen + 9h));
  // A batch goes when the last of its events does.
  after.forget(kFirstSeen + 2h + 24h);
  EXPECT_EQ(after.size(), 8U);
  (void)taken(after);
  after.forget(kFirstSeen + 2h + 24h + 1ns);
  const auto gone = taken(after);
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].value, std::nullopt);
  EXPECT_EQ(gone[0].key, log.begin()->first);
}

TEST(Dedup, RecordsComeInAnyOrderAndBesideWhatIsNew) {
  std::vector<StateRecord> written;
  Dedup before(24h, 1000);
  for (int i = 0; i < 200; ++i) {
    seen(before, i, kFirstSeen + 1s * i);
    if (i % 10 == 9) before.take(written);
  }
  std::reverse(written.begin(), written.end());
  Dedup after(24h, 1000);
  EXPECT_FALSE(seen(after, 500, kFirstSeen + 300s)) << "before anything is restored";
  for (const auto& record : written) {
    ASSERT_TRUE(after.restore(std::string_view(record.key).substr(5), *record.value));
    EXPECT_TRUE(seen(after, 500, kFirstSeen + 300s));
  }
  after.restored();
  EXPECT_EQ(after.size(), 201U);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(seen(after, i, kFirstSeen + 300s)) << i;
  EXPECT_TRUE(seen(after, 500, kFirstSeen + 300s));
  after.forget(kFirstSeen + 100s + 24h);
  EXPECT_EQ(after.size(), 101U) << "the oldest go first";
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(seen(after, i, kFirstSeen + 100s + 24h), i >= 100) << i;
  }
}

TEST(Dedup, WhatWasNeverWrittenIsNotTakenBack) {
  Dedup dedup(24h, 2);
  for (int i = 0; i < 5; ++i) seen(dedup, i, kFirstSeen);
  EXPECT_EQ(dedup.size(), 2U);
  EXPECT_EQ(dedup.evicted(), 3U);
  dedup.forget(kFirstSeen + 48h);
  EXPECT_EQ(dedup.size(), 0U);
  EXPECT_THAT(taken(dedup), IsEmpty());
}

TEST(Dedup, AnEventThatComesAgainAfterTheWindowIsNewAndRememberedAnew) {
  Dedup dedup(1h, 100);
  EXPECT_FALSE(seen(dedup, 1, kFirstSeen));
  EXPECT_FALSE(seen(dedup, 1, kFirstSeen + 2h));
  EXPECT_TRUE(seen(dedup, 1, kFirstSeen + 3h));
  EXPECT_EQ(dedup.size(), 1U);
}

TEST(Dedup, SaysWhatItCannotRead) {
  Dedup dedup(1h, 100);
  const std::string half =
      R"({"seen":[["aaaaaaaaaaaaaaaaaaaaaaaaaa",5],["aaaa!aaaaaaaaaaaaaaaaaaaaa",6]]})";
  for (const std::string& value :
       {std::string(), std::string("12x"), std::string("12"), std::string("{}"),
        std::string(R"({"seen":[]})"), std::string(R"({"seen":7})"), std::string("{"), half}) {
    EXPECT_FALSE(dedup.restore("a", value)) << value;
  }
  EXPECT_EQ(dedup.size(), 0U);
}

}  // namespace
}  // namespace tocsin::routing
