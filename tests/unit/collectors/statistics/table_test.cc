// The registered statistics are of the vocabulary, and say the word under which it has them.
#include <gtest/gtest.h>

#include <set>

#include "collectors/collectors.h"
#include "core/statistics.h"

namespace tocsin::collectors {
namespace {

const core::Statistic* find(std::string_view name) {
  for (const core::Statistic& one : core::builtin_statistics()) {
    const bool sent = one.form != core::StatisticForm::column;
    if (sent && one.form != core::StatisticForm::derived && one.name == name) return &one;
  }
  return nullptr;
}

TEST(StatisticTable, WhatIsGivenIsOfTheVocabulary) {
  std::set<std::string_view> given;
  std::set<std::string_view> words;
  for (const StatisticDescriptor& one : builtin_statistics()) {
    ASSERT_FALSE(one.gives.empty());
    EXPECT_TRUE(one.request.empty() || words.insert(one.request).second) << one.request;
    for (const std::string_view name : one.gives) {
      const core::Statistic* known = find(name);
      ASSERT_NE(known, nullptr) << name;
      EXPECT_EQ(known->request, one.request) << name;
      EXPECT_TRUE(given.insert(name).second) << name << " is given twice";
    }
  }
}

TEST(StatisticTable, ParametersThatMeanNothingMakeNone) {
  const auto made = [](std::string_view word, std::vector<double> parameters) {
    for (const StatisticDescriptor& one : builtin_statistics()) {
      if (one.request == word) return one.make({}, parameters) != nullptr;
    }
    ADD_FAILURE() << word;
    return false;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(made("units", {0}) && made("units", {100}));
  EXPECT_FALSE(made("units", {-1}) || made("units", {101}) || made("units", {nan}));
  EXPECT_TRUE(made("saturation", {-3, 3, 1}));
  EXPECT_FALSE(made("saturation", {3, 3, 1}) || made("saturation", {-3, 3, 200}));
  EXPECT_TRUE(made("at_least", {0}));
  EXPECT_FALSE(made("at_least", {-1}) || made("at_least", {nan}));
  EXPECT_FALSE(made("values", {0, nan}));
}

}  // namespace
}  // namespace tocsin::collectors
