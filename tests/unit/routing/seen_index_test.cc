// Numbers by hash, beside a map of them: what is found, what is forgotten, how it grows.
#include "routing/tables/seen_index.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

namespace tocsin::routing {
namespace {

TEST(SeenIndex, KnowsWhatAMapOfTheSameKnows) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp): the same each time
  std::vector<std::uint64_t> hash_of;
  std::unordered_map<std::uint64_t, std::uint32_t> expected;
  SeenIndex index;
  for (int i = 0; i < 20'000; ++i) {
    // Few marks, so that many hashes have the same one, and runs of slots are long.
    const std::uint64_t hash = (random() % 5000 << 32U) | random() % 97;
    const auto fresh = static_cast<std::uint32_t>(hash_of.size());
    std::uint32_t& number =
        index.find_or_add(hash, fresh, [&](std::uint32_t one) { return hash_of[one] == hash; });
    const auto [known, added] = expected.try_emplace(hash, fresh);
    ASSERT_EQ(number, known->second);
    hash_of.push_back(added ? hash : ~std::uint64_t{0});
    if (i % 3 != 0 || hash_of.size() < 4) continue;
    const auto gone = static_cast<std::uint32_t>(random() % hash_of.size());
    const std::uint64_t its = hash_of[gone];
    const auto there = expected.find(its);
    const bool wanted = there != expected.end() && there->second == gone;
    ASSERT_EQ(index.erase(its, gone), wanted);
    if (wanted) expected.erase(there);
    ASSERT_EQ(index.size(), expected.size());
  }
  for (const auto& [hash, number] : expected) {
    const auto is_it = [&, wanted = hash](std::uint32_t one) { return hash_of[one] == wanted; };
    EXPECT_EQ(index.find_or_add(hash, 1U << 31U, is_it), number);
  }
}

TEST(SeenIndex, AHashThatLooksLikeAFreePlaceIsKept) {
  SeenIndex index;
  const auto never = [](std::uint32_t) { return false; };
  EXPECT_FALSE(index.erase(0, 5));
  EXPECT_EQ(index.find_or_add(0, 5, never), 5U);
  EXPECT_EQ(index.find_or_add(0, 9, [](std::uint32_t one) { return one == 5; }), 5U);
  EXPECT_EQ(index.size(), 1U);
  EXPECT_TRUE(index.erase(0, 5));
  EXPECT_EQ(index.size(), 0U);
}

}  // namespace
}  // namespace tocsin::routing
