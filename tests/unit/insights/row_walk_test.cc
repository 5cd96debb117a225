// Every value, slice by slice: none twice, none missing, none that came later.
#include "insights/series/row_walk.h"

#include <cmath>
#include <limits>

#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

class RowWalkTest : public SeriesFolder {
 protected:
  RowWalk walk(const SeriesAsk& ask) {
    auto begun = RowWalk::begin([this] { return SeriesReader::open(path()); }, ask);
    EXPECT_TRUE(begun) << (begun ? "" : begun.error().message);
    return std::move(*begun);
  }
};

TEST_F(RowWalkTest, RareAndDenseRowsComeOnceAndWhatIsWrittenMeanwhileDoesNot) {
  auto store = writer();
  name(*store);
  std::vector<std::int64_t> wanted;
  for (std::int64_t x = 0; x < 40; ++x) wanted.push_back(x * 1'000'000);
  for (std::int64_t x = 0; x < 20'000; ++x) wanted.push_back(50'000'000 + x);
  for (std::int64_t x = 0; x < 3000; ++x) wanted.push_back(60'000'000 + 7 * x);
  for (const std::int64_t x : wanted)
    add(*store, x,
        x % 11 == 3 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(x) / 3);
  ASSERT_TRUE(store->commit({}));
  RowWalk all = walk(asked());
  std::vector<WalkedRow> rows;
  std::vector<std::int64_t> came;
  std::int64_t later = 70'000'000;
  for (int slices = 0;; ++slices) {
    ASSERT_LT(slices, 200);
    const auto series = all.next(rows);
    ASSERT_TRUE(series) << series.error().message;
    if (*series == nullptr) break;
    EXPECT_EQ((*series)->name.text, "loss");
    ASSERT_FALSE(rows.empty());
    EXPECT_LE(rows.size(), RowWalk::kMostRows);
    for (const WalkedRow& row : rows) {
      came.push_back(row.x);
      EXPECT_EQ(row.time, 1e15 + static_cast<double>(row.x) * 1e6);
      if (row.x % 11 == 3) {
        EXPECT_TRUE(std::isnan(row.value));
      } else {
        EXPECT_EQ(row.value, static_cast<double>(row.x) / 3);
      }
    }
    // Pieces become chunks while the walk rests.
    for (int more = 0; more < 700; ++more) add(*store, later++, 1.0);
    ASSERT_TRUE(store->commit({}));
    all.rest();
  }
  EXPECT_EQ(came, wanted);
}

TEST_F(RowWalkTest, ARangeAndTheReplacedPartOfAResumedRun) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 150; ++x) add(*store, x, 1.0, segment(1));
  for (std::int64_t x = 100; x < 300; ++x) add(*store, x, 2.0, segment(2));
  ASSERT_TRUE(store->commit({}));
  SeriesAsk ask = asked();
  ask.from = 90;
  ask.to_time = static_cast<std::int64_t>(1e15 + 120 * 1e6);
  RowWalk some = walk(ask);
  std::vector<WalkedRow> rows;
  std::vector<std::pair<std::int64_t, double>> line;
  std::vector<std::int64_t> replaced;
  while (const auto series = some.next(rows)) {
    if (*series == nullptr) break;
    for (const WalkedRow& row : rows) {
      if ((*series)->part.superseded) {
        replaced.push_back(row.x);
      } else {
        line.emplace_back(row.x, row.value);
      }
    }
  }
  ASSERT_EQ(line.size(), 30U);
  for (std::int64_t at = 0; at < 30; ++at) {
    EXPECT_EQ(line[static_cast<std::size_t>(at)].first, 90 + at);
    EXPECT_EQ(line[static_cast<std::size_t>(at)].second, at < 10 ? 1.0 : 2.0);
  }
  ASSERT_EQ(replaced.size(), 20U);
  EXPECT_EQ(replaced.front(), 100);
}

TEST_F(RowWalkTest, ARestThatIsGoneIsAnErrorAndNoEnd) {
  auto store = writer();
  name(*store);
  for (std::int64_t x = 0; x < 10'000; ++x) add(*store, x, 1.0);
  ASSERT_TRUE(store->commit({}));
  RowWalk all = walk(asked());
  std::vector<WalkedRow> rows;
  const auto first = all.next(rows);
  ASSERT_TRUE(first);
  all.rest();
  store.reset();
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  const auto away = all.next(rows);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, core::Code::unavailable);
  // Another run may have the number that this one had.
  auto another = writer();
  name(*another);
  for (std::int64_t x = 0; x < 50; ++x) add(*another, x, 1.0);
  ASSERT_TRUE(another->commit({}));
  const auto gone = all.next(rows);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, core::Code::data_loss);
  SeriesAsk ask = asked();
  ask.name = "loss(";
  const auto wrong = RowWalk::begin([this] { return SeriesReader::open(path()); }, ask);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, core::Code::invalid_argument);
}

}  // namespace
}  // namespace tocsin::insights
