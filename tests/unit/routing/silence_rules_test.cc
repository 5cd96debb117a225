// Which silences are refused, and what may be changed of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::HasSubstr;

const core::WallTime kNow = kStart + 1h;

Silence asked(core::Duration from, core::Duration to) {
  Silence out;
  out.id = "sil_one";
  out.matchers = "{job=\"digits\"}";
  out.starts_at = kNow + from;
  out.ends_at = kNow + to;
  out.comment = "known";
  out.created_by = "ada";
  out.version = 1;
  out.updated_at = kNow;
  return out;
}

std::string refusal(const Silence& silence, bool force = false, std::size_t known = 0) {
  const auto good = check_asked(silence, known, kNow, force);
  return good ? "" : good.error().message;
}

TEST(SilenceRules, WhatAPersonMayAskFor) {
  EXPECT_EQ(refusal(asked(0s, 1h)), "");
  EXPECT_THAT(refusal(asked(-2h, -1h), true), HasSubstr("in the past"));
  Silence silent = asked(0s, 1h);
  silent.comment.clear();
  EXPECT_THAT(refusal(silent, true), HasSubstr("no comment"));
  Silence large = asked(0s, 1h);
  large.comment = std::string(17 << 10, 'x');
  EXPECT_THAT(refusal(large, true), HasSubstr("larger than 16 KiB"));
  EXPECT_THAT(refusal(asked(0s, 1h), true, kMaxSilences), HasSubstr("as many as may be"));
  EXPECT_EQ(refusal(asked(0s, 24h * 90)), "");
  EXPECT_THAT(refusal(asked(0s, 24h * 90 + 1s)), HasSubstr("longer than 90d"));
  EXPECT_EQ(refusal(asked(0s, 24h * 91), true), "");
  Silence negative = asked(0s, 1h);
  negative.matchers = "{job!=\"\"}";
  EXPECT_THAT(refusal(negative), HasSubstr("nothing but negative matchers"));
  EXPECT_EQ(refusal(negative, true), "");
  negative.matchers = "{job!=\"digits\"}";
  EXPECT_THAT(refusal(negative, true), HasSubstr("nearly everything"));
}

TEST(SilenceRules, EverySetMustSilenceSomethingOfItsOwn) {
  Silence sets = asked(0s, 1h);
  sets.matchers.clear();
  sets.matcher_sets = {"{job=\"a\"}", "{job!=\"b\"}"};
  EXPECT_THAT(refusal(sets, true), HasSubstr("nearly everything"));
  sets.matcher_sets[1] = "{job=\"b\"}";
  EXPECT_EQ(refusal(sets), "");
  sets.matchers = "{job=\"c\"}";
  EXPECT_THAT(refusal(sets), HasSubstr("either matchers or matcher_sets"));
}

TEST(SilenceRules, ARecurrenceMustBeOne) {
  Silence silence = asked(0s, 1h);
  silence.recurrence = Recurrence{};
  EXPECT_THAT(refusal(silence), HasSubstr("at least one interval"));
  TimeWindow window;
  window.location = "Europe/Berln";
  silence.recurrence->windows = {window};
  EXPECT_THAT(refusal(silence), HasSubstr("did you mean \"Europe/Berlin\"?"));
}

struct Change {
  const char* what;
  core::Duration from, to;  // of the silence before
  void (*edit)(Silence&);
  bool allowed;
};

TEST(SilenceRules, WhatMayBeChangedDependsOnItsState) {
  const Change changes[] = {
      {"active, a later end", -1h, 1h, [](Silence& s) { s.ends_at += 1h; }, true},
      {"active, an end now", -1h, 1h, [](Silence& s) { s.ends_at = kNow; }, true},
      {"active, the comment", -1h, 1h, [](Silence& s) { s.comment = "else"; }, true},
      {"active, the begin", -1h, 1h, [](Silence& s) { s.starts_at -= 1min; }, false},
      {"active, its matchers", -1h, 1h, [](Silence& s) { s.matchers = "{job=\"b\"}"; }, false},
      {"active, its times", -1h, 1h,
       [](Silence& s) {
         s.recurrence = Recurrence{"n", {{}}};
       },
       false},
      {"pending, a later begin", 1h, 3h, [](Silence& s) { s.starts_at += 1h; }, true},
      {"pending, a begin in the past", 1h, 3h, [](Silence& s) { s.starts_at = kNow - 1s; }, false},
      {"pending, its matchers", 1h, 3h, [](Silence& s) { s.matchers = "{job=\"b\"}"; }, false},
      {"pending, ended before it began", 1h, 3h,
       [](Silence& s) {
         s.ends_at = kNow;
         s.starts_at = kNow - 1ns;
       },
       true},
      {"expired, a later end", -2h, -1h, [](Silence& s) { s.ends_at = kNow + 1h; }, false},
      {"expired, the comment", -2h, -1h, [](Silence& s) { s.comment = "else"; }, false},
  };
  for (const Change& change : changes) {
    const Silence old = asked(change.from, change.to);
    Silence next = old;
    change.edit(next);
    next.version = 2;
    next.updated_at = kNow;
    const auto taken = follow(&old, next);
    EXPECT_EQ(taken.has_value(), change.allowed) << change.what;
    if (taken) {
      EXPECT_EQ(*taken, next) << change.what;
    } else {
      EXPECT_EQ(taken.error().code, core::Code::failed_precondition) << change.what;
    }
  }
}

TEST(SilenceRules, OfTwoChangesAtOnceTheFirstCounts) {
  const Silence old = asked(-1h, 1h);
  Silence first = old;
  first.version = 2;
  first.ends_at += 1h;
  Silence second = old;
  second.version = 2;
  second.comment = "mine";
  const auto taken = follow(&old, first);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(follow(&*taken, second));
  EXPECT_TRUE(follow(&*taken, first)) << "the same record once more";
  second.version = 3;
  EXPECT_TRUE(follow(&*taken, second));
  second.version = 0;
  second.ends_at = kNow;
  const auto uncounted = follow(&*taken, second);
  ASSERT_TRUE(uncounted) << "writers of an earlier release do not count";
  EXPECT_EQ(uncounted->version, 3U);
  EXPECT_EQ(follow(nullptr, second)->version, 1U);
}

}  // namespace
}  // namespace tocsin::routing
