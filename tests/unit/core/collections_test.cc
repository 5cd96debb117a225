// The one table of built-in collections.
#include "core/collections.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tocsin::core {
namespace {

TEST(Collections, IdsAndNamesAreUniqueAndIdsDoNotMove) {
  std::set<std::string_view> names;
  std::uint8_t last = 0;
  for (const Collection& one : builtin_collections()) {
    EXPECT_EQ(one.id, last + 1) << one.name;
    last = one.id;
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.holds.empty()) << one.name;
  }
  // Ids that were given once: a further collection goes to the end.
  EXPECT_EQ(find_collection("all")->id, 1);
  EXPECT_EQ(find_collection("gradients")->id, 5);
  EXPECT_EQ(find_collection("optimizer_variables")->id, 11);
  EXPECT_EQ(find_collection("trees")->id, 18);
  EXPECT_EQ(find_collection("gradint"), nullptr);
}

TEST(Collections, EveryRoleBelongsSomewhereAndTellsItsCollection) {
  for (int code = 1; code <= static_cast<int>(Role::ledger); ++code) {
    const Collection* found = collection_of(static_cast<Role>(code));
    EXPECT_NE(found, nullptr) << to_string(static_cast<Role>(code));
  }
  EXPECT_EQ(collection_of(Role::other), nullptr);
  EXPECT_EQ(collection_of(Role::gradient)->name, "gradients");
  EXPECT_EQ(collection_of(Role::shap)->name, "full_shap");
}

TEST(Collections, WhatIsCapturedWhenNobodyNamesAny) {
  std::set<std::string_view> standard;
  for (const Collection& one : builtin_collections()) {
    if (one.standard) standard.insert(one.name);
  }
  EXPECT_EQ(standard, (std::set<std::string_view>{"weights", "biases", "gradients", "losses"}));
}

}  // namespace
}  // namespace tocsin::core
