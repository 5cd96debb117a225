// Silences: who is not told, for how long, and what is not to be silenced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const core::Labels kDigits{{"rule", "nan"}, {"job", "digits"}, {"severity", "error"}};
const core::Labels kWords{{"rule", "nan"}, {"job", "words"}, {"severity", "error"}};

Silence silence_of(const std::string& matchers, core::Duration from, core::Duration to) {
  Silence out;
  out.id = "sil_one";
  out.matchers = matchers;
  out.starts_at = kStart + from;
  out.ends_at = kStart + to;
  out.created_by = "ada@node-7";
  out.comment = "known";
  return out;
}

class SilencesTest : public ::testing::Test {
 protected:
  SilencesTest() {
    h.integrations = {webhook("oncall")};
    h.open();
  }
  void add(const Silence& silence) {
    ASSERT_TRUE(h.router().on_control("silence/" + silence.id, silence_json(silence), h.now()));
    h.commit();
  }
  Harness h;
};

TEST_F(SilencesTest, NobodyIsToldOfWhatMatchesUntilItEnds) {
  add(silence_of("{job=\"digits\"}", 0s, 1h));
  h.fire(kDigits);
  h.fire(kWords);
  h.at(10min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.labels.get("job"), "words");
  h.at(1h + 10min);  // it still fires
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent.back().issues.at(0).issue.labels.get("job"), "digits");
}

TEST_F(SilencesTest, IsInForceAfterARestart) {
  add(silence_of("{job=\"digits\"}", 0s, 1h));
  h.crash();
  h.fire(kDigits);
  h.at(30min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(SilencesTest, OneThatWasEndedOrTakenBackSilencesNoMore) {
  add(silence_of("{job=\"digits\"}", 0s, 10h));
  h.fire(kDigits);
  h.at(20min);
  EXPECT_THAT(h.said(), IsEmpty());
  add(silence_of("{job=\"digits\"}", 0s, 20min));
  h.at(30min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));

  Silence other = silence_of("{job=\"words\"}", 0s, 10h);
  other.id = "sil_two";
  add(other);
  h.fire(kWords);
  h.at(40min);
  EXPECT_THAT(h.said(), IsEmpty());
  ASSERT_TRUE(h.router().on_control("silence/sil_two", std::nullopt, h.now()));
  h.at(50min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(SilencesTest, BeginsWhenItSays) {
  add(silence_of("{job=\"digits\"}", 10min, 1h));
  h.fire(kDigits);
  h.at(5min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
}

TEST_F(SilencesTest, WhatIsNoneIsRefusedAndTheOneBeforeStays) {
  add(silence_of("{job=\"digits\"}", 0s, 1h));
  for (const char* text : {"", "{}", "{\"id\":\"sil_one\",\"matchers\":\"{job=\\\"digits\\\"\"}"}) {
    EXPECT_FALSE(h.router().on_control("silence/sil_one", text, h.now())) << text;
  }
  EXPECT_FALSE(h.router().on_control("acks/one", "{}", h.now()));
  h.fire(kDigits);
  h.at(10min);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(SilencesTest, MayHoldBackOneKindOfActionAlone) {
  Harness two;
  Integration stop = webhook("stop");
  stop.purpose = Purpose::stop;
  Integration board = webhook("board");
  board.purpose = Purpose::show;
  two.integrations = {webhook("oncall"), stop, board};
  two.tree.receivers = {"oncall", "stop", "board"};
  two.open();
  const auto ask = [&](const char* actions) {
    Silence silence = silence_of("{job=\"digits\"}", 0s, 100h);
    silence.actions = actions;
    ASSERT_TRUE(two.router().on_control("silence/sil_one", silence_json(silence), two.now()));
  };
  ask("");
  two.fire(kDigits);
  two.at(10min);
  EXPECT_THAT(two.said(), ElementsAre("first open board 1/0"));
  ask("stop_training");
  two.at(20min);
  EXPECT_THAT(two.said(), ElementsAre("first open oncall 1/0"));
  ask("notify");
  two.at(30min);
  EXPECT_THAT(two.said(), ElementsAre("first open stop 1/0"));
}

TEST_F(SilencesTest, AreCountedAndTooManyAreRefused) {
  for (std::size_t i = 0; i < kMaxSilences; ++i) {
    Silence silence = silence_of("{job=\"digits\"}", i % 2 == 0 ? 0s : 2h, 10h);
    silence.id = "sil_" + std::to_string(i);
    ASSERT_TRUE(h.router().on_control("silence/" + silence.id, silence_json(silence), h.now()));
  }
  h.router().tick(h.now());
  EXPECT_EQ(h.router().stats().silences, kMaxSilences / 2);
  Silence more = silence_of("{job=\"digits\"}", 0s, 10h);
  EXPECT_EQ(h.router().on_control("silence/sil_one", silence_json(more), h.now()).error().code,
            core::Code::resource_exhausted);
  h.router().tick(kStart + 300h);  // they are forgotten
  EXPECT_EQ(h.router().stats().silences, 0U);
  EXPECT_TRUE(h.router().on_control("silence/sil_one", silence_json(more), kStart + 300h));
}

TEST(Silence, WhatWouldSilenceNearlyEverythingIsNone) {
  for (const char* matchers : {"", "{}", "{job!=\"digits\"}", "{job=~\".*\"}", "{job!~\"a\"}"}) {
    EXPECT_FALSE(check(silence_of(matchers, 0s, 1h))) << matchers;
  }
  EXPECT_TRUE(check(silence_of("{job=\"digits\",rule!=\"nan\"}", 0s, 1h)));
  EXPECT_THAT(check(silence_of("{job=\"digits\"}", 1h, 1h)).error().message,
              HasSubstr("ends before it begins"));
  EXPECT_FALSE(check(silence_of("{job=", 0s, 1h)));
  Silence other = silence_of("{job=\"digits\"}", 0s, 1h);
  other.actions = "mail";
  EXPECT_FALSE(check(other));
}

TEST(Silence, ReadsWhatItWrites) {
  Silence silence = silence_of("{job=\"digits\"}", 0s, 1h);
  EXPECT_EQ(*read_silence(silence_json(silence)), silence);
  silence.matchers.clear();
  silence.matcher_sets = {"{job=\"digits\"}", "{rule=\"nan\",job=\"words\"}"};
  silence.annotations = {{"ticket", "OPS-7"}};
  TimeWindow window;
  window.times = {{"02:00", "04:00"}};
  window.weekdays = {"sunday"};
  window.location = "Europe/Berlin";
  silence.recurrence = Recurrence{"nights", {window}};
  silence.until_resolved = true;
  silence.quiet_for = 10min;
  silence.auto_expire_unmatched = 2h;
  silence.announce_on_unmute = "reminder";
  silence.replaces = "sil_old";
  silence.ended_by = "resolved";
  silence.version = 7;
  silence.updated_at = kStart;
  const auto read = read_silence(silence_json(silence));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, silence);
  EXPECT_FALSE(
      read_silence("{\"id\":\"sil_a\",\"matchers\":\"{a=\\\"b\\\"}\",\"quiet_for\":\"soon\"}"));
}

}  // namespace
}  // namespace tocsin::routing
