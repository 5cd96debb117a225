// The write-ahead log of curves.db stays short, however much is committed and while somebody reads.
#include <filesystem>

#include "insights/store/database.h"
#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

constexpr std::uintmax_t kMiB = 1U << 20U;

class StoreLogTest : public SeriesFolder {
 protected:
  [[nodiscard]] std::uintmax_t log() const { return std::filesystem::file_size(path() + "-wal"); }
};

TEST_F(StoreLogTest, ItHasRoomForOneCommitBeyondWhatIsGathered) {
  auto store = writer();
  constexpr std::uint64_t kSeries = 3000;
  for (std::uint64_t hash = 0; hash < kSeries; ++hash)
    name(*store, hash + 1, "m" + std::to_string(hash));
  std::uintmax_t most = 0;
  std::uintmax_t of_one = 0;
  std::int64_t x = 0;
  // 4 kB of each series.
  for (int turn = 0; turn < 8; ++turn) {
    const std::uintmax_t before = turn == 0 ? 0 : log();
    for (std::uint64_t hash = 0; hash < kSeries; ++hash) {
      for (std::int64_t at = 0; at < 200; ++at)
        add(*store, x + at, static_cast<double>(at * 7919 + turn), segment(), hash + 1);
    }
    x += 200;
    ASSERT_TRUE(store->commit({}));
    if (turn == 0) of_one = log();
    most = std::max(most, std::max(before, log()));
    // A page asks, and is done before the next commit.
    EXPECT_EQ(ask_series(*reader(), asked())->lines.size(), 0);
  }
  EXPECT_GT(of_one, 10 * kMiB);
  EXPECT_LE(most, 64 * kMiB + 2 * of_one);
  EXPECT_LE(most, 128 * kMiB) << "a commit was of " << of_one;
}

// What comes a row at a time is written side by side, not where the series has the rows before.
TEST_F(StoreLogTest, ARowOfEachSeriesFillsFewPages) {
  constexpr std::uint64_t kSeries = 1000;
  constexpr int kCommits = 36;
  auto store = writer();
  for (std::uint64_t hash = 0; hash < kSeries; ++hash)
    name(*store, hash + 1, "m" + std::to_string(hash));
  const auto commit = [&](std::int64_t x) {
    for (std::uint64_t hash = 0; hash < kSeries; ++hash)
      add(*store, x, static_cast<double>(hash), segment(), hash + 1);
    ASSERT_TRUE(store->commit({}));
  };
  for (std::int64_t x = 0; x < kCommits; ++x) commit(x);
  const std::uintmax_t before = log();
  commit(kCommits);
  // Rows of 70 bytes, their index, and the line of each series: 0.6 MiB; where each stood by its series, 2.4.
  EXPECT_LE(log() - before, 3 * kMiB / 2);
  EXPECT_GT(log(), before);
}

// Files made before had each series' pieces together: they are gone on with as they are.
TEST_F(StoreLogTest, AFileWhosePiecesStandBySeriesIsGoneOnWith) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 3; ++x) add(*store, x, static_cast<double>(x));
  ASSERT_TRUE(store->commit({}));
  store = nullptr;
  {
    auto old = StoreDatabase::open(path(), true);
    ASSERT_TRUE(old);
    (*old)->run(
        "CREATE TABLE before(family INTEGER, x0 INTEGER, data BLOB, PRIMARY KEY(family, x0))"
        " STRICT, WITHOUT ROWID; INSERT INTO before SELECT * FROM piece; DROP TABLE piece;"
        " ALTER TABLE before RENAME TO piece");
    ASSERT_TRUE((*old)->failure());
  }
  store = writer();
  for (std::int64_t x = 3; x < 600; ++x) {
    add(*store, x, static_cast<double>(x));
    if (x % 50 == 0) {
      ASSERT_TRUE(store->commit({}));
    }
  }
  ASSERT_TRUE(store->commit({}));
  const auto answer = ask_series(*reader(), asked());
  ASSERT_EQ(answer->lines.size(), 1U);
  ASSERT_EQ(answer->lines[0].points.size(), 600U);
  for (std::size_t x = 0; x < 600; ++x)
    EXPECT_EQ(answer->lines[0].points[x].value.last, static_cast<double>(x));
}

}  // namespace
}  // namespace tocsin::insights
