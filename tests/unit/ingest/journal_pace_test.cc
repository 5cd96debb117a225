// When a reader of the journal looks for records.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <vector>

#include "ingest/journal/pace.h"

namespace tocsin::ingest {
namespace {

using namespace std::chrono_literals;
using Time = JournalPace::Time;

/// A reader that is asked again and again and finds nothing; returns when it looked.
std::vector<Time> looks(JournalPace& pace, Time from, Time until, std::chrono::nanoseconds asked,
                        bool signs) {
  std::vector<Time> out;
  Time next_ask = from;
  for (Time now = from; now < until;) {
    const bool is_asked = now >= next_ask;
    if (is_asked) next_ask = now + asked;
    if (pace.due(now, is_asked)) {
      out.push_back(now);
      pace.looked(0, signs, now);
    }
    now = std::max(now + 50us, std::min(next_ask, pace.next()));
  }
  return out;
}

const Time kStart = Time{} + 1h;

TEST(JournalPace, WhereNothingHappensItHardlyLooks) {
  JournalPace pace;
  looks(pace, kStart, kStart + 10s, 100ms, true);
  EXPECT_LE(looks(pace, kStart + 10s, kStart + 70s, 100ms, true).size(), 61U);
}

TEST(JournalPace, WhereNoSignsComeItLooksTwentyTimesASecond) {
  JournalPace pace;
  looks(pace, kStart, kStart + 10s, 1s, false);
  const auto times = looks(pace, kStart + 10s, kStart + 11s, 1s, false);
  EXPECT_GE(times.size(), 20U);
  EXPECT_LE(times.size(), 22U);
}

TEST(JournalPace, AfterASignItLooksAtOnceAndSoonAgain) {
  JournalPace pace;
  looks(pace, kStart, kStart + 10s, 10s, true);
  const Time sign = kStart + 10s;
  pace.changed();
  const auto times = looks(pace, sign, sign + 5s, 10s, true);
  ASSERT_GE(times.size(), 6U);
  EXPECT_EQ(times[0], sign);
  EXPECT_EQ(times[1] - sign, 200us);
  EXPECT_EQ(times[2] - times[1], 1ms);
  // However long the commit takes, it is seen within twice its time.
  for (std::size_t i = 3; i < times.size() && times[i] - sign < 900ms; ++i) {
    EXPECT_LE(times[i] - sign, 2 * (times[i - 1] - sign) + 1ms) << i;
  }
  EXPECT_LE(times.size(), 16U);
}

/// How often it looks while somebody writes without a pause. `found`: by the look of that number.
int looks_beside_writing(JournalPace& pace, Time from, Time until,
                         const std::function<std::size_t(int)>& found) {
  int count = 0;
  for (Time now = from; now < until; now += 10us) {
    if (now >= pace.deaf_until()) pace.changed();
    if (!pace.due(now, false)) continue;
    pace.looked(found(count), true, now);
    ++count;
  }
  return count;
}

TEST(JournalPace, WhileOthersWriteOnItIsDeafForAMillisecondAndForEightWhenItNeverFinds) {
  JournalPace pace;
  const auto nothing = [](int) { return std::size_t{0}; };
  const int first = looks_beside_writing(pace, kStart, kStart + 15ms, nothing);
  EXPECT_GE(first, 14);
  EXPECT_LE(first, 18);
  const int later = looks_beside_writing(pace, kStart + 30ms, kStart + 830ms, nothing);
  EXPECT_GE(later, 95);
  EXPECT_LE(later, 101);
}

TEST(JournalPace, WhoIsPatientLooksLessOftenBesideOthersAndAtOnceWhenSomethingIsForHim) {
  JournalPace pace(250ms);
  const auto nothing = [](int) { return std::size_t{0}; };
  looks_beside_writing(pace, kStart, kStart + 30ms, nothing);
  const int later = looks_beside_writing(pace, kStart + 30ms, kStart + 2030ms, nothing);
  EXPECT_GE(later, 8);
  EXPECT_LE(later, 9);
  const Time deaf = kStart + 2030ms;
  EXPECT_FALSE(pace.hears(deaf, true));
  EXPECT_TRUE(pace.hears(pace.deaf_until(), false));
  EXPECT_TRUE(JournalPace().hears(deaf, true));
  pace.looked(1, true, kStart + 2100ms);
  const auto mine = [](int) { return std::size_t{1}; };
  EXPECT_GE(looks_beside_writing(pace, kStart + 2100ms, kStart + 2101ms, mine), 50);
}

TEST(JournalPace, WhoFindsNowAndThenIsNeverDeafForLong) {
  JournalPace pace;
  const auto each_tenth = [](int look) { return look % 10 == 9 ? std::size_t{1} : 0; };
  EXPECT_GE(looks_beside_writing(pace, kStart, kStart + 100ms, each_tenth), 90);
}

TEST(JournalPace, AfterAStormOfOthersASignIsHeardAtOnce) {
  JournalPace pace;
  looks_beside_writing(pace, kStart, kStart + 1s, [](int) { return std::size_t{0}; });
  looks(pace, kStart + 1s, kStart + 11s, 10s, true);
  const Time sign = kStart + 11s;
  pace.changed();
  const auto times = looks(pace, sign, sign + 50ms, 10s, true);
  ASSERT_GE(times.size(), 3U);
  EXPECT_EQ(times[0], sign);
  EXPECT_EQ(times[1] - sign, 200us);
  EXPECT_EQ(times[2] - times[1], 1ms);
}

TEST(JournalPace, WhoAsksWhileAChangeIsAboutGetsALook) {
  JournalPace pace;
  looks(pace, kStart, kStart + 10s, 10s, true);
  EXPECT_FALSE(pace.due(kStart + 10s, true));
  pace.changed();
  pace.looked(0, true, kStart + 10s);
  EXPECT_FALSE(pace.due(kStart + 10s, false));
  EXPECT_TRUE(pace.due(kStart + 10s, true));
}

TEST(JournalPace, WhatIsFoundWithoutASignEndsTheTrustInSigns) {
  JournalPace pace;
  Time now = kStart;
  const auto find = [&] {
    looks(pace, now, now + 10s, 10s, true);
    now += 11s;
    ASSERT_TRUE(pace.due(now, false));
    pace.looked(1, true, now);
  };
  find();
  find();
  pace.changed();  // they do come
  find();          // announced
  EXPECT_FALSE(pace.distrusts());
  find();
  find();
  find();
  EXPECT_TRUE(pace.distrusts());
  looks(pace, now, now + 10s, 10s, true);
  EXPECT_GE(looks(pace, now + 10s, now + 11s, 10s, true).size(), 20U);
  pace.changed();
  EXPECT_FALSE(pace.distrusts());
}

TEST(JournalPace, AnotherWishIsLookedForAtOnce) {
  JournalPace pace;
  looks(pace, kStart, kStart + 10s, 10s, true);
  EXPECT_FALSE(pace.due(kStart + 10s, false));
  pace.wanted();  // a seek, a resume
  EXPECT_TRUE(pace.due(kStart + 10s, false));
  for (int i = 0; i < 5; ++i) pace.looked(1, true, kStart + 10s);
  EXPECT_FALSE(pace.distrusts()) << "what was wanted needs no sign";
}

}  // namespace
}  // namespace tocsin::ingest
