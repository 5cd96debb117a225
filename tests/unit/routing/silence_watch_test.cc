// Silences that end by themselves, recur, remind, and match something or nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const core::Labels kNan{{"rule", "nan"}, {"job", "digits"}, {"severity", "error"}};
const core::Labels kSlow{{"rule", "slow"}, {"job", "digits"}, {"severity", "error"}};
const core::Labels kOtherJob{{"rule", "nan"}, {"job", "words"}, {"severity", "error"}};

class SilenceWatchTest : public ::testing::Test {
 protected:
  SilenceWatchTest() {
    h.options.suppressors.clear();  // that of the harness has every group looked at each time
    h.open();
  }

  static Silence of_digits(core::Duration to) {
    Silence out;
    out.id = "sil_one";
    out.matchers = "{job=\"digits\"}";
    out.starts_at = kStart;
    out.ends_at = kStart + to;
    out.created_at = out.updated_at = kStart;
    out.comment = "known";
    out.version = 1;
    return out;
  }
  void add(const Silence& silence) {
    ASSERT_TRUE(h.router().on_control("silence/" + silence.id, silence_json(silence), h.now()));
    h.commit();
  }
  /// What the router has asked for comes back as a record of the topic.
  std::vector<Silence> read_back() {
    std::vector<Silence> out;
    for (const StateRecord& record : std::exchange(h.control, {})) {
      EXPECT_TRUE(h.router().on_control(record.key, *record.value, h.now()));
      out.push_back(*read_silence(*record.value));
    }
    h.commit();
    return out;
  }
  Harness h;
};

TEST_F(SilenceWatchTest, EndsOnceAllItMatchedHasBeenOverForAWhile) {
  Silence silence = of_digits(100h);
  silence.until_resolved = true;
  silence.quiet_for = 10min;
  add(silence);
  h.at(1h);
  EXPECT_THAT(h.control, IsEmpty()) << "nothing has matched so far";
  h.fire(kNan);
  h.fire(kSlow);
  h.at(2h);
  h.resolve(kNan);
  h.at(3h);
  EXPECT_THAT(h.control, IsEmpty()) << "another one still fires";
  h.resolve(kSlow);
  h.at(3h + 9min + 50s);
  EXPECT_THAT(h.control, IsEmpty());
  h.at(3h + 10min + 20s);
  const auto ended = read_back();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].ended_by, "resolved");
  EXPECT_EQ(ended[0].version, 2U);
  EXPECT_GE(ended[0].ends_at, kStart + 3h + 10min);
  EXPECT_LE(ended[0].ends_at, kStart + 3h + 10min + 10s);
  h.fire(kNan);
  h.at(4h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_THAT(h.control, IsEmpty()) << "once";
}

TEST_F(SilenceWatchTest, AnIssueFiredUntilItsEndWasHeardOf) {
  h.fire(kNan);
  h.at(1h);
  Silence silence = of_digits(100h);
  silence.starts_at = h.now();
  silence.until_resolved = true;
  add(silence);
  h.at(1h + 1s);
  core::Issue over = h.issue(kNan, core::IssueStatus::resolved);
  over.starts_at = kStart;
  over.ends_at = kStart + 30min;  // before the silence, which was asked for while it seemed to fire
  h.report(over);
  h.at(2h);
  EXPECT_EQ(read_back().at(0).ended_by, "resolved");
}

TEST_F(SilenceWatchTest, AnIssueThatFiresAgainInTimeKeepsIt) {
  Silence silence = of_digits(100h);
  silence.until_resolved = true;
  silence.quiet_for = 10min;
  add(silence);
  h.fire(kNan);
  h.at(1h);
  h.resolve(kNan);
  h.at(1h + 5min);
  h.fire(kNan);
  h.at(3h);
  EXPECT_THAT(h.control, IsEmpty());
}

TEST_F(SilenceWatchTest, WhatMatchedIsKnownAfterAKill) {
  Silence silence = of_digits(100h);
  silence.until_resolved = true;
  silence.quiet_for = 10min;
  add(silence);
  h.fire(kNan);
  h.at(1h);
  h.resolve(kNan);
  h.crash();
  h.at(1h + 11min);
  ASSERT_EQ(h.control.size(), 1U);
  h.crash();  // the record is written, and not read yet
  h.at(2h);
  EXPECT_EQ(h.control.size(), 1U) << "it is asked for once";
  EXPECT_EQ(read_back().at(0).ended_by, "resolved");
}

TEST_F(SilenceWatchTest, APersonsChangeThatCameFirstWins) {
  Silence silence = of_digits(100h);
  silence.until_resolved = true;
  add(silence);
  h.fire(kNan);
  h.at(1h);
  h.resolve(kNan);
  h.at(1h + 1min);
  ASSERT_EQ(h.control.size(), 1U);
  Silence changed = silence;
  changed.version = 2;
  changed.updated_at = h.now();
  changed.until_resolved = false;
  add(changed);
  const StateRecord late = std::exchange(h.control, {}).at(0);
  EXPECT_FALSE(h.router().on_control(late.key, *late.value, h.now()));
  h.commit();
  const auto put_back = read_back();  // the topic's last record is the one that stands
  ASSERT_EQ(put_back.size(), 1U);
  EXPECT_EQ(put_back[0].version, 3U);
  EXPECT_EQ(put_back[0].ends_at, changed.ends_at);
  EXPECT_THAT(h.control, IsEmpty()) << "once";
  h.fire(kNan);
  h.at(2h);
  EXPECT_THAT(h.said(), IsEmpty()) << "it is still in force";
}

TEST_F(SilenceWatchTest, AnExpiredSilenceIsPutBackOnceAndNotForEver) {
  add(of_digits(1h));
  h.at(2h);
  Silence late = of_digits(10h);
  late.version = 2;
  late.updated_at = h.now();
  EXPECT_FALSE(h.router().on_control("silence/sil_one", silence_json(late), h.now()));
  h.commit();
  ASSERT_EQ(h.control.size(), 1U);
  const StateRecord again = std::exchange(h.control, {}).at(0);
  EXPECT_EQ(read_silence(*again.value)->ends_at, kStart + 1h);
  (void)h.router().on_control(again.key, *again.value, h.now());
  h.commit();
  EXPECT_THAT(h.control, IsEmpty());
}

TEST_F(SilenceWatchTest, EndsWhenNothingMatchedForSoLong) {
  Silence silence = of_digits(100h);
  silence.auto_expire_unmatched = 2h;
  add(silence);
  h.fire(kOtherJob);
  h.at(1h);
  h.fire(kNan);
  h.at(1h + 30min);
  h.resolve(kNan);
  h.at(3h + 29min);
  EXPECT_THAT(h.control, IsEmpty()) << "two hours count from the last issue";
  h.at(3h + 31min);
  EXPECT_EQ(read_back().at(0).ended_by, "unmatched");
}

TEST_F(SilenceWatchTest, ThoseThatMatchNothingAreCounted) {
  add(of_digits(100h));
  Silence other = of_digits(100h);
  other.id = "sil_two";
  other.matchers = "{job=\"nobody\"}";
  add(other);
  Silence later = of_digits(100h);
  later.id = "sil_three";
  later.starts_at = kStart + 50h;
  add(later);
  h.fire(kNan);
  h.at(1min);
  h.router().tick(kStart + 2min);
  EXPECT_EQ(h.router().stats().silences, 2U);
  EXPECT_EQ(h.router().stats().silences_unmatched, 1U);
  EXPECT_EQ(h.router().stats().silences_pending, 1U);
  h.router().tick(kStart + 101h);
  EXPECT_EQ(h.router().stats().silences_expired, 3U);
  EXPECT_EQ(h.router().stats().silences_unmatched, 0U);
}

TEST_F(SilenceWatchTest, OneOfSeveralSetsIsEnough) {
  Silence silence = of_digits(10h);
  silence.matchers.clear();
  silence.matcher_sets = {"{job=\"digits\",rule=\"slow\"}", "{job=\"words\"}"};
  add(silence);
  h.fire(kNan);
  h.fire(kSlow);
  h.fire(kOtherJob);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.labels, kNan);
}

TEST_F(SilenceWatchTest, OneThatRecursHoldsAtItsTimesOnly) {
  Silence silence = of_digits(24h * 7);
  TimeWindow window;  // kStart is 03:03:20Z
  window.times = {{"04:00", "05:00"}};
  silence.recurrence = Recurrence{"", {window}};
  add(silence);
  h.fire(kNan);
  h.at(5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.resolve(kNan);
  h.at(1h);  // 04:03:20
  h.said();
  h.fire(kSlow);
  h.at(1h + 50min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.crash();
  h.at(2h + 4min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(24h + 1h);  // the next day
  h.said();
  h.fire({{"rule", "nan"}, {"job", "digits"}, {"kind", "b"}, {"severity", "error"}});
  h.at(24h + 1h + 50min);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(24h + 2h + 4min);
  EXPECT_FALSE(h.said().empty());
}

TEST_F(SilenceWatchTest, RemindsOfWhatWasToldAndStillFires) {
  const auto told_after = [&](const std::string& announce) {
    Harness one;
    one.options.suppressors.clear();
    one.open();
    one.fire(kNan);
    one.at(10min);
    one.said();
    Silence silence = of_digits(1h);
    silence.announce_on_unmute = announce;
    EXPECT_TRUE(one.router().on_control("silence/sil_one", silence_json(silence), one.now()));
    one.commit();
    one.at(2h);
    return one.said();
  };
  EXPECT_THAT(told_after(""), IsEmpty());
  EXPECT_THAT(told_after("never"), IsEmpty());
  EXPECT_THAT(told_after("reminder"), ElementsAre("unmuted update oncall 1/0"));
}

TEST_F(SilenceWatchTest, RemindsOnceAlsoWhenAPersonEndsIt) {
  h.fire(kNan);
  h.at(10min);
  h.said();
  Silence silence = of_digits(10h);
  silence.announce_on_unmute = "reminder";
  add(silence);
  h.at(1h);
  EXPECT_THAT(h.said(), IsEmpty());
  Silence ended = silence;
  ended.ends_at = ended.updated_at = h.now();
  ended.version = 2;
  add(ended);
  h.at(3h);
  EXPECT_THAT(h.said(), ElementsAre("unmuted update oncall 1/0"));
}

TEST_F(SilenceWatchTest, WhatASecondSilenceStillHoldsIsNoReminder) {
  h.fire(kNan);
  h.at(10min);
  h.said();
  Silence silence = of_digits(1h);
  silence.announce_on_unmute = "reminder";
  add(silence);
  Silence longer = of_digits(3h);
  longer.id = "sil_two";
  add(longer);
  h.at(3h - 1min);
  EXPECT_THAT(h.said(), IsEmpty());
}

}  // namespace
}  // namespace tocsin::routing
