// A block of buckets that nothing more comes to is packed, wherever chunks end.
#include <array>
#include <cmath>
#include <cstdint>

#include "insights/store/database.h"
#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

class FullBlockTest : public SeriesFolder {
 protected:
  // Bytes of the blocks of the lowest level, from the first on, of the column `value`.
  std::vector<std::int64_t> lowest_blocks() {
    std::vector<std::int64_t> out;
    auto database = StoreDatabase::open(path(), false);
    EXPECT_TRUE(database);
    StoreStatement get = (*database)->prepare(
        "SELECT length(data) FROM rollup WHERE col = 0 AND level = (SELECT min(level) FROM rollup)"
        " ORDER BY block");
    while (get.next()) out.push_back(get.integer(0));
    return out;
  }
  // Steps 0 to `steps`, `of_a_commit` together.
  void fill(std::int64_t steps, std::int64_t of_a_commit) {
    auto store = writer();
    name(*store);
    for (std::int64_t x = 0; x < steps; ++x) {
      add(*store, x, static_cast<float>(std::sin(static_cast<double>(x))));
      if (x % of_a_commit != of_a_commit - 1) continue;
      ASSERT_TRUE(store->commit({}));
    }
    ASSERT_TRUE(store->commit({}));
  }
};

constexpr std::int64_t kPlain = 64 * 64;  // bytes of 64 buckets
constexpr std::int64_t kStepsOfABlock = 64 * 64;

TEST_F(FullBlockTest, OneThatEndsWhereAChunkEndsIsPacked) {
  fill(3 * kStepsOfABlock, 512);
  const auto blocks = lowest_blocks();
  ASSERT_EQ(blocks.size(), 3);
  for (const std::int64_t bytes : blocks) EXPECT_LT(bytes, kPlain * 3 / 4);
}

TEST_F(FullBlockTest, OneThatMoreComesToIsNot) {
  fill(2 * kStepsOfABlock + 512, 300);
  const auto blocks = lowest_blocks();
  ASSERT_EQ(blocks.size(), 3);
  EXPECT_LT(blocks[0], kPlain * 3 / 4);
  EXPECT_LT(blocks[1], kPlain * 3 / 4);
  EXPECT_GT(blocks[2], 512) << "eight buckets of 64 bytes, as they are";
  EXPECT_LT(blocks[2], 600);
}

// A packed block is read as what it was made from.
TEST_F(FullBlockTest, BucketsAreThoseOfAScan) {
  fill(2 * kStepsOfABlock, 512);
  auto ask = asked(64);
  const auto answer = ask_series(*reader(), ask);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->lines.size(), 1);
  std::int64_t seen = 0;
  for (const SeriesPoint& point : answer->lines[0].points) {
    double least = 2;
    double most = -2;
    const std::int64_t width = std::int64_t{1} << answer->level;
    for (std::int64_t x = point.x; x < point.x + width; ++x) {
      const auto value = static_cast<double>(static_cast<float>(std::sin(static_cast<double>(x))));
      least = std::min(least, value);
      most = std::max(most, value);
    }
    EXPECT_EQ(point.value.min, least);
    EXPECT_EQ(point.value.max, most);
    seen += point.value.n;
  }
  EXPECT_EQ(seen, 2 * kStepsOfABlock);
}

}  // namespace
}  // namespace tocsin::insights
