// A full check of both stores: it finds what was changed, and nothing in a store that is sound.
#include <fstream>
#include <random>

#include "insights/store/database.h"
#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

class StoreCheckTest : public SeriesFolder {
 protected:
  // A curve of 3000 rows with holes and values that are none, and 40 short ones.
  void fill() {
    auto store = writer();
    name(*store);
    std::mt19937_64 chance(5);
    std::int64_t x = 0;
    for (int row = 0; row < 3'000; ++row) {
      x += 1 + static_cast<std::int64_t>(chance() % 3);
      add(*store, x, chance() % 100 == 0 ? std::nan("") : std::ldexp(double(chance()), -60));
      if (row % 700 == 0) {
        ASSERT_TRUE(store->commit({}));
      }
    }
    for (std::uint64_t hash = 100; hash < 140; ++hash) {
      name(*store, hash, "m" + std::to_string(hash));
      for (std::int64_t step = 0; step < 20; ++step)
        add(*store, step, 1.5 * static_cast<double>(step), segment(), hash);
    }
    ASSERT_TRUE(store->commit({}));
  }
  void change(const char* sql) {
    auto database = StoreDatabase::open(path(), true);
    ASSERT_TRUE(database);
    (*database)->run(sql);
    ASSERT_TRUE((*database)->failure());
  }
  // The only finding.
  std::string finding() {
    const auto found = check_series(path());
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    EXPECT_EQ(found->count(), 1) << (found->lines().empty() ? "" : found->lines().front());
    return found->lines().empty() ? "" : found->lines().front();
  }
};

TEST_F(StoreCheckTest, ASoundStoreHasNoFindingsWhileItIsWrittenToo) {
  fill();
  auto store = writer();
  add(*store, 1 << 20, 2.0);
  ASSERT_TRUE(store->commit({}));
  const auto found = check_series(path());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->sound()) << found->lines().front();
  EXPECT_EQ(found->rows, 3'000 + 40 * 20 + 1);
  EXPECT_EQ(found->runs, 1);
  EXPECT_GT(found->pieces, 45);
  const auto stats = series_stats(path());
  ASSERT_TRUE(stats);
  ASSERT_EQ(stats->classes.size(), 1);
  EXPECT_EQ(stats->classes[0].name, "scalars");
  EXPECT_EQ(stats->classes[0].series, 41);
  EXPECT_EQ(stats->classes[0].rows, found->rows);
  EXPECT_EQ(stats->classes[0].values, 2 * found->rows);
  EXPECT_GT(stats->classes[0].row_bytes, 3'000 * 4);
  EXPECT_GT(stats->classes[0].pyramid_bytes, 0);
}

TEST_F(StoreCheckTest, WhatWasChangedIsNamed) {
  fill();
  const std::string whose = core::to_text(run()) + " loss: ";
  change("UPDATE family SET rows = rows + 1 WHERE name = 5");
  EXPECT_TRUE(finding().starts_with(whose + "it has 3000 rows")) << finding();
  change("UPDATE family SET rows = rows - 1 WHERE name = 5");
  change(
      "UPDATE rollup SET data = (SELECT data FROM rollup r WHERE r.family = rollup.family AND"
      " r.col = 0 AND r.level = rollup.level AND r.block = rollup.block + 1) WHERE col = 0 AND"
      " (family, level, block) = (SELECT family, level, block FROM rollup WHERE col = 0"
      " ORDER BY level, block LIMIT 1)");
  EXPECT_TRUE(finding().starts_with(whose + "level ")) << finding();
  EXPECT_TRUE(finding().ends_with("of column value is not what its chunks give"));
}

TEST_F(StoreCheckTest, AChunkThatCannotBeDecodedIsFound) {
  fill();
  change("UPDATE chunk SET data = x'0102' WHERE x0 = (SELECT max(x0) FROM chunk)");
  const auto found = check_series(path());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->lines().front().ends_with("cannot be decoded")) << found->lines().front();
}

TEST_F(StoreCheckTest, RowsOfNoSeriesAreFound) {
  fill();
  change("INSERT INTO chunk VALUES (999, 0, 1, x'00')");
  EXPECT_EQ(finding(), "1 chunks of no series");
}

TEST_F(StoreCheckTest, DamagedPagesAreFoundOrTheFileIsNone) {
  fill();
  const auto size = std::filesystem::file_size(path());
  std::filesystem::copy_file(path(), path() + ".good");
  int noticed = 0;
  for (std::uint64_t part = 0; part < 8; ++part) {  // some of it are pages that nothing uses
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size / 8 * part));
    file << std::string(4'000, '\x55');
    file.close();
    const auto found = check_series(path());
    EXPECT_TRUE(part > 0 || (!found && found.error().code == core::Code::data_loss));
    if (!found || !found->sound()) ++noticed;
    std::filesystem::copy_file(path() + ".good", path(),
                               std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_GE(noticed, 2);
  EXPECT_EQ(check_series(folder_ / "none.db").error().code, core::Code::not_found);
  EXPECT_TRUE(check_series(path())->sound());
}

// A sparse series reads as many pages among 200 long ones as it does among none (U45).
TEST_F(StoreCheckTest, ASparseSeriesReadsOnlyItsOwnPages) {
  auto store = writer();
  name(*store);
  const auto sparse = [&] {
    for (std::int64_t x = 0; x < 26; ++x) add(*store, x * 1'000, static_cast<double>(x));
    ASSERT_TRUE(store->commit({}));
  };
  const auto pages = [&] {
    auto ask = reader();
    const auto answer = ask_series(*ask, asked());
    EXPECT_EQ(answer->lines.at(0).points.size(), 26);
    return ask->pages_read();
  };
  sparse();
  const std::int64_t alone = pages();
  EXPECT_GT(alone, 0);
  std::mt19937_64 chance(1);
  for (std::uint64_t hash = 100; hash < 300; ++hash) {
    name(*store, hash, "m" + std::to_string(hash));
    for (std::int64_t x = 0; x < 2'000; ++x)
      add(*store, x, std::ldexp(double(chance()), -60), segment(), hash);
    ASSERT_TRUE(store->commit({}));
  }
  const std::int64_t all = reader()->size().bytes / 16'384;
  EXPECT_GT(all, 250);
  EXPECT_LE(pages(), alone + 8) << "of " << all;  // its trees are a level or two deeper
}

}  // namespace
}  // namespace tocsin::insights
