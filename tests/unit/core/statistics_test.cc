// The one table of statistics.
#include "core/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace tocsin::core {
namespace {

using ::testing::HasSubstr;

/// nullptr: nobody knows it.
const Statistic* find_statistic(std::string_view name) {
  for (const Statistic& one : builtin_statistics()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

TEST(Statistics, NamesAreUniqueAndNumbersWithinTheirForm) {
  std::set<std::string_view> names;
  std::set<std::pair<StatisticForm, std::uint16_t>> ids;
  for (const Statistic& one : builtin_statistics()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.meaning.empty()) << one.name;
    if (one.form == StatisticForm::derived) continue;
    EXPECT_TRUE(ids.insert({one.form, one.id}).second) << one.name;
  }
}

TEST(Statistics, ColumnsAreThoseOfTheFrame) {
  std::size_t columns = 0;
  for (const Statistic& one : builtin_statistics()) {
    if (one.form != StatisticForm::column) continue;
    EXPECT_EQ(one.id, columns++) << one.name;
  }
  EXPECT_EQ(columns, summary_column::columns);
  EXPECT_EQ(find_statistic("meta")->id, summary_column::meta);
}

// Numbers on the wire, as published: none of them may move.
TEST(Statistics, NumbersStayWhatTheyAre) {
  const std::pair<const char*, int> kNumbers[] = {{"median", 1},
                                                  {"prod", 2},
                                                  {"p05", 3},
                                                  {"p25", 4},
                                                  {"p75", 5},
                                                  {"p95", 6},
                                                  {"delta_l2", 7},
                                                  {"delta_max_abs", 8},
                                                  {"delta_excess", 9},
                                                  {"prev_l2", 10},
                                                  {"unit_count", 12},
                                                  {"delta_from_step", 11},
                                                  {"depth", 16},
                                                  {"unit_inactive_count", 13},
                                                  {"abs_min", 17},
                                                  {"unit_saturated_count", 14},
                                                  {"abs_median", 18},
                                                  {"abs_ge_count", 15},
                                                  {"abs_prod", 19},
                                                  {"first_bad_index", 20},
                                                  {"digest", 0x8001},
                                                  {"channel_sum", 32},
                                                  {"channel_sumsq", 33},
                                                  {"channel_count", 34},
                                                  {"value_counts", 35},
                                                  {"class_counts", 36},
                                                  {"class_correct", 37},
                                                  {"confusion", 38}};
  for (const auto& [name, number] : kNumbers) {
    ASSERT_NE(find_statistic(name), nullptr) << name;
    EXPECT_EQ(find_statistic(name)->id, number) << name;
  }
  // The enumeration that writers and readers of frames use.
  EXPECT_EQ(static_cast<int>(SparseStat::digest), find_statistic("digest")->id);
  EXPECT_EQ(static_cast<int>(SparseStat::delta_l2), find_statistic("delta_l2")->id);
}

TEST(Statistics, AreAskedForByAWordWithItsParameters) {
  EXPECT_EQ(*parse_statistic("delta"), (StatisticRequest{"delta", {}}));
  EXPECT_EQ(*parse_statistic("at_least(0.5)"), (StatisticRequest{"at_least", {0.5}}));
  EXPECT_EQ(*parse_statistic("saturation(-1, 1, 20)"),
            (StatisticRequest{"saturation", {-1, 1, 20}}));
  EXPECT_EQ(to_text(*parse_statistic("saturation(-9.4999,9.4999, 1.0)")),
            "saturation(-9.4999, 9.4999, 1)");
  EXPECT_EQ(to_text(*parse_statistic("delta")), "delta");
  EXPECT_EQ(*parse_statistic("values(0, 1, 2, 3)"), (StatisticRequest{"values", {0, 1, 2, 3}}));
}

TEST(Statistics, WhatIsWrongWithARequestIsSaid) {
  const auto why = [](std::string_view text) {
    const auto parsed = parse_statistic(text);
    return parsed ? "accepted" : parsed.error().message;
  };
  EXPECT_THAT(why("dleta"), HasSubstr("did you mean \"delta\"?"));
  EXPECT_THAT(why("p95"), HasSubstr("unknown statistic"));  // asked for as quantiles
  EXPECT_THAT(why(""), HasSubstr("unknown statistic"));
  EXPECT_THAT(why("delta(3)"), HasSubstr("expected delta"));
  EXPECT_THAT(why("at_least"), HasSubstr("expected at_least(b)"));
  EXPECT_THAT(why("saturation(1)"), HasSubstr("expected saturation(lo, hi, θ)"));
  EXPECT_THAT(why("at_least(b)"), HasSubstr("expected at_least(b)"));
  EXPECT_THAT(why("at_least(1"), HasSubstr("expected at_least(b)"));
  EXPECT_THAT(why("values()"), HasSubstr("expected values(v…)"));
}

TEST(Statistics, TheWordsAreThoseOfTheCaptureSection) {
  EXPECT_EQ(statistic_requests(),
            (std::vector<std::string>{"median", "prod", "quantiles", "delta", "delta_excess",
                                      "units", "saturation", "at_least", "depth", "abs_min",
                                      "abs_median", "abs_prod", "digest", "channels", "values",
                                      "classes", "histogram"}));
}

}  // namespace
}  // namespace tocsin::core
