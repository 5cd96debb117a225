// The registered statistics are of the vocabulary, and say the word under which it has them.
#include <gtest/gtest.h>

#include <set>

#include "collectors/collectors.h"
#include "core/statistics.h"

namespace tocsin::collectors {
namespace {

const core::Statistic* find(core::SparseStat stat) {
  for (const core::Statistic& one : core::builtin_statistics()) {
    const bool sparse = one.form == core::StatisticForm::sparse;
    if (sparse && one.id == static_cast<std::uint16_t>(stat)) return &one;
  }
  return nullptr;
}

TEST(StatisticTable, WhatIsGivenIsOfTheVocabulary) {
  std::set<core::SparseStat> given;
  for (const StatisticDescriptor& one : builtin_statistics()) {
    EXPECT_FALSE(one.gives.empty());
    for (const core::SparseStat stat : one.gives) {
      const core::Statistic* known = find(stat);
      ASSERT_NE(known, nullptr) << static_cast<int>(stat);
      EXPECT_EQ(known->request, one.request) << known->name;
      EXPECT_TRUE(given.insert(stat).second) << known->name << " is given twice";
    }
    EXPECT_NE(one.make({0}), nullptr);
  }
  EXPECT_LE(builtin_statistics().size(), 64U);
}

}  // namespace
}  // namespace tocsin::collectors
