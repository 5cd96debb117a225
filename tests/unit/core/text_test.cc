// Times, durations, values as JSON, nearest names, errors and results.
#include "core/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/function_ref.h"
#include "core/result.h"
#include "core/time.h"
#include "core/units.h"
#include "core/value.h"

namespace tocsin::core {
namespace {

using namespace std::chrono_literals;

TEST(DurationHint, KnowsTheWordsOfTime) {
  EXPECT_EQ(duration_hint("5 min"), "; write 5m");
  EXPECT_EQ(duration_hint("1.5 Hours"), "; write 1.5h");
  EXPECT_EQ(duration_hint("10 s"), "; write 10s");
  EXPECT_EQ(duration_hint("5"), "; a number needs its unit: write 5s for seconds, 5m for minutes");
  EXPECT_EQ(duration_hint("-5s"), "");
  EXPECT_EQ(duration_hint("half an hour"), "");
  EXPECT_EQ(duration_hint("5 bananas"), "");
  EXPECT_EQ(duration_meant("5"), "");
}

TEST(Utf8, TheFirstByteThatIsNoneIsFound) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("größe 模型 \U0001F600"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(first_invalid_utf8("\xc0\x80"), 0U) << "overlong";
  EXPECT_EQ(first_invalid_utf8("a\xed\xa0\x80"), 1U) << "a surrogate";
  EXPECT_EQ(first_invalid_utf8("\xf4\x90\x80\x80"), 0U) << "beyond U+10FFFF";
  EXPECT_EQ(first_invalid_utf8("a\xe6\xa8"), 1U) << "cut off";
}

TEST(Utf8, CharactersAreCountedAndNeverCut) {
  EXPECT_EQ(count_code_points("größe"), 5U);
  EXPECT_EQ(cut_utf8("größe", 100), "größe");
  EXPECT_EQ(cut_utf8("größe", 7), "größe");
  EXPECT_EQ(cut_utf8("größe", 6), "größ");
  EXPECT_EQ(cut_utf8("größe", 5), "grö") << "ß has two bytes";
  EXPECT_EQ(cut_utf8("größe", 3), "gr") << "so has ö";
  EXPECT_EQ(cut_utf8("模", 2), "");
  EXPECT_EQ(cut_utf8("\x80\x80\x80", 2), "") << "no character begins there";
}

TEST(WallTimeText, HasThreeSixOrNineDigits) {
  EXPECT_EQ(to_rfc3339(wall_time(1767323045678000000)), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(to_rfc3339(wall_time(1767323045678900000)), "2026-01-02T03:04:05.678900Z");
  EXPECT_EQ(to_rfc3339(wall_time(1767323045678900001)), "2026-01-02T03:04:05.678900001Z");
  EXPECT_EQ(to_rfc3339(wall_time(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_rfc3339(wall_time(-1)), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(to_rfc3339(WallTime::min()), "1677-09-21T00:12:43.145224192Z");
  EXPECT_EQ(to_rfc3339(WallTime::max()), "2262-04-11T23:47:16.854775807Z");
}

TEST(WallTimeText, IsReadWithAnyZoneAndFraction) {
  const WallTime expected = wall_time(1767323045678000000);
  for (const char* text :
       {"2026-01-02T03:04:05.678Z", "2026-01-02t03:04:05.678z", "2026-01-02 03:04:05.678000000Z",
        "2026-01-02T04:34:05.678+01:30", "2026-01-01T23:04:05.678-04:00"}) {
    EXPECT_EQ(parse_rfc3339(text), expected) << text;
  }
  EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00Z"), wall_time(1709164800000000000));
}

TEST(WallTimeText, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"", "2026-01-02", "2026-01-02T03:04:05", "2026-02-30T00:00:00Z", "2026-01-02T24:00:00Z",
        "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.0123456789Z", "2026-01-02T03:04:05+0100",
        "2026-01-02T03:04:05Zx", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
        "2026-1-02T03:04:05Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(WallTimeText, EveryTimeComesBack) {
  EXPECT_TRUE(rc::check([] {
    // 1678 to 2261: what the text form covers.
    const auto nanos =
        *rc::gen::inRange<std::int64_t>(-9'214'560'000'000'000'000, 9'214'646'400'000'000'000);
    RC_ASSERT(parse_rfc3339(to_rfc3339(wall_time(nanos))) == wall_time(nanos));
  }));
}

TEST(DurationText, IsASumOfUnits) {
  EXPECT_EQ(to_text(30s), "30s");
  EXPECT_EQ(to_text(90min), "1h30m");
  EXPECT_EQ(to_text(500ms), "500ms");
  EXPECT_EQ(to_text(24h * 8), "8d");
  EXPECT_EQ(to_text(0s), "0s");
  EXPECT_EQ(to_text(-1500us), "-1ms500us");
}

TEST(DurationText, IsReadWithFractions) {
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("1w"), 7 * 24h);
  EXPECT_EQ(parse_duration("0s"), 0s);
}

TEST(DurationText, WhatIsNoDurationIsRefused) {
  for (const char* text :
       {"", "30", "s", "30 s", "-1s", "1x", "1e3s", "nans", "infs", "1s2", "99999999999w", "1sm"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(DurationText, EveryPositiveDurationComesBack) {
  EXPECT_TRUE(rc::check([] {
    // Each part is read as a double, which is exact up to 2^53 of its unit.
    const Duration duration{*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 60)};
    RC_ASSERT(parse_duration(to_text(duration)) == duration);
  }));
}

TEST(ValueJson, KeepsOrderUnlessAskedToSort) {
  const Value value = ValueMap{{"b", 1}, {"a", ValueList{true, Value{}, "x\n\"\\"}}};
  EXPECT_EQ(to_json(value), R"({"b":1,"a":[true,null,"x\u000a\"\\"]})");
  EXPECT_EQ(to_json(value, true), R"({"a":[true,null,"x\u000a\"\\"],"b":1})");
}

TEST(ValueJson, NumbersAreShortAndNonFiniteOnesAreTexts) {
  EXPECT_EQ(to_json(1e-7), "1e-07");
  EXPECT_EQ(to_json(10.0), "10");
  EXPECT_EQ(to_json(0.1), "0.1");
  EXPECT_EQ(to_json(std::nan("")), "\"NaN\"");
  EXPECT_EQ(to_json(-std::numeric_limits<double>::infinity()), "\"-Infinity\"");
  EXPECT_EQ(to_json(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(NearestName, ForgivesASlipAndNothingMore) {
  const std::vector<std::string> names{"threshold", "window_steps", "only_nan"};
  EXPECT_EQ(nearest("treshold", names), "threshold");
  EXPECT_EQ(nearest("windwo_steps", names), "window_steps");
  EXPECT_EQ(nearest("ratio", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("match", {"matchers", "id"}), "matchers");  // cut short
  EXPECT_EQ(nearest("mat", {"matchers", "id"}), "");
  EXPECT_EQ(nearest("group", {"group_wait", "group_interval"}), "");  // which?
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Errors, KnowWhetherTryingAgainCanHelp) {
  EXPECT_TRUE(unavailable("down").retryable());
  EXPECT_TRUE(retryable(Code::deadline_exceeded));
  EXPECT_TRUE(retryable(Code::resource_exhausted));
  EXPECT_FALSE(invalid_argument("bad").retryable());
  EXPECT_FALSE(retryable(Code::failed_precondition));
}

TEST(Errors, GatherContextOnTheWayUp) {
  EXPECT_EQ(not_found("no such rule").in("line 3").in("rules.yaml").message,
            "rules.yaml: line 3: no such rule");
}

TEST(Results, HoldAValueOrAnError) {
  const Result<int> good = 7;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 7);
  const Result<int> bad = not_found("x");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::not_found);
  EXPECT_TRUE(ok());
}

TEST(FunctionReference, CallsWhatItBorrows) {
  int calls = 0;
  auto count = [&calls](int by) { return calls += by; };
  const FunctionRef<int(int)> reference = count;
  const FunctionRef<int(int)> copy = reference;
  EXPECT_EQ(reference(2), 2);
  EXPECT_EQ(copy(3), 5);
}

}  // namespace
}  // namespace tocsin::core
