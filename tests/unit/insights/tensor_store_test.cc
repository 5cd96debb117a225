// Tensors in the store: what a frame says comes back, and neither names nor values grow without end.
#include "insights/series/column_codec.h"
#include "tests/unit/insights/tensor_values.h"

namespace tocsin::insights {
namespace {

class TensorStoreTest : public TensorFolder {
 protected:
  static constexpr std::array<FamilyKind, 1> kTensors{FamilyKind::tensor};
};

TEST_F(TensorStoreTest, NamesKeepTheirOrderShapeAndCollections) {
  auto store = writer();
  name_tensor(*store, 9, "z");
  name_tensor(*store, 2, "a", core::Role::weight);
  for (int again = 0; again < 3; ++again) name_tensor(*store, 9, "z");
  name_tensor(*store, 5, "m");
  add_tensor(*store, 9, 1, 1);
  ASSERT_TRUE(store->commit({}));
  const auto names = reader()->names(core::to_text(run()), kTensors);
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[0].text, "z");
  EXPECT_EQ(names[1].text, "a");
  EXPECT_EQ(names[2].text, "m");
  EXPECT_EQ(names[2].order, 2);
  EXPECT_EQ(names[1].role, core::Role::weight);
  EXPECT_EQ(names[0].shape, "4×2");
  EXPECT_EQ(names[0].collections, "gradients");
  store = nullptr;
  store = writer();  // the order goes on after a restart
  name_tensor(*store, 6, "later");
  add_tensor(*store, 6, 1, 1);
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(reader()->names(core::to_text(run()), kTensors).back().order, 3);
}

TEST_F(TensorStoreTest, WorstAndFirstBadStepAreKeptAcrossRestarts) {
  for (const double size : {3.0, 250.0, kNone, 40.0}) {
    auto store = writer();
    name_tensor(*store, 9, "w");
    add_tensor(*store, 9, size == 3.0 ? 1 : size == 250.0 ? 2 : size == 40.0 ? 4 : 3, size);
    ASSERT_TRUE(store->commit({}));
  }
  const auto tallies = reader()->tallies(core::to_text(run()), FamilyKind::tensor, std::nullopt);
  ASSERT_EQ(tallies.size(), 1u);
  const NameTally& tally = tallies.at(9);
  EXPECT_EQ(tally.worst, 250.0);
  EXPECT_EQ(tally.bad_x, 3);
  EXPECT_EQ(tally.stored, 4);
  EXPECT_EQ(tally.x_last, 4);
}

TEST_F(TensorStoreTest, OneColumnIsReadAsAllAre) {
  SeriesRows rows(3);
  for (std::int64_t x = 0; x < 700; ++x) {
    rows.x.push_back(x * x);
    rows.columns[0].push_back(static_cast<double>(x) / 3);
    rows.columns[1].push_back(static_cast<double>(x));  // whole numbers
    rows.columns[2].push_back(4.5);                     // a constant
  }
  for (const bool pack : {true, false}) {
    std::string bytes;
    encode_rows(rows, pack, bytes);
    for (std::size_t k = 0; k < 3; ++k) {
      const auto one = decode_columns(bytes, std::uint64_t{1} << k);
      ASSERT_TRUE(one);
      EXPECT_EQ(one->x, rows.x);
      EXPECT_EQ(one->columns[k], rows.columns[k]);
      EXPECT_TRUE(one->columns[(k + 1) % 3].empty());
    }
    for (std::size_t cut = 0; cut < bytes.size(); cut += 7)
      EXPECT_FALSE(decode_columns(std::string_view(bytes).substr(0, cut), 1)) << cut;
  }
}

TEST_F(TensorStoreTest, TooManyTensorsAreRefusedAndToldAndALossStillHasRoom) {
  auto store = writer();
  const auto tensors = static_cast<std::uint64_t>(SeriesWriter::kMostTensors);
  for (std::uint64_t hash = 1000; hash < 1000 + tensors + 5; ++hash) {
    add_tensor(*store, hash, 1, 1);
    if (store->waiting() >= 20'000) {
      ASSERT_TRUE(store->commit({}));
    }
  }
  add(*store, 1, 2.5);
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(store->refused(), 5u);
  auto reading = reader();
  EXPECT_EQ(reading->gaps(core::to_text(run())).refused, 5);
  EXPECT_EQ(reading->families(core::to_text(run()), FamilyKind::scalar, 5).size(), 1u);
}

TEST_F(TensorStoreTest, TensorsGiveWayBeforeRunsDo) {
  auto store = writer();
  name(*store);
  name_tensor(*store, 9, "w");
  for (std::int64_t x = 0; x < 3000; ++x) {
    add(*store, x, std::sin(static_cast<double>(x)));
    add_tensor(*store, 9, x, std::cos(static_cast<double>(x)));
  }
  store->heard(run(), 5);
  ASSERT_TRUE(store->commit({}));
  const auto gone = store->forget(core::WallTime(), 1, 1);
  ASSERT_TRUE(gone);
  EXPECT_EQ(*gone, 1u);
  {
    auto reading = reader();
    EXPECT_TRUE(reading->gaps(core::to_text(run())).tensors_gone);
    EXPECT_TRUE(reading->tallies(core::to_text(run()), FamilyKind::tensor, std::nullopt).empty());
    EXPECT_EQ(reading->families(core::to_text(run()), FamilyKind::scalar, 5).at(0).rows, 3000);
  }
  add_tensor(*store, 9, 4000, 1);  // what comes then is kept
  ASSERT_TRUE(store->commit({}));
  EXPECT_EQ(reader()->tallies(core::to_text(run()), FamilyKind::tensor, std::nullopt).at(9).stored,
            1);
  ASSERT_TRUE(store->forget(core::WallTime(), 1, 5));
  EXPECT_EQ(reader()->size().runs, 0);
}

}  // namespace
}  // namespace tocsin::insights
