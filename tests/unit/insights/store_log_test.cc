// The write-ahead log of curves.db stays short, however much is committed and while somebody reads.
#include <filesystem>

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
  constexpr std::uint64_t kSeries = 2000;
  for (std::uint64_t hash = 0; hash < kSeries; ++hash)
    name(*store, hash + 1, "m" + std::to_string(hash));
  std::uintmax_t most = 0;
  std::uintmax_t of_one = 0;
  std::int64_t x = 0;
  // Rows of 4 kB, so that each series has pages of its own.
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

}  // namespace
}  // namespace tocsin::insights
