// One number of every rank over the steps.
#include "tests/unit/insights/tensor_values.h"

namespace tocsin::insights {
namespace {

class RankHeatQueryTest : public TensorFolder {
 protected:
  static SegmentOf rank_at(std::uint32_t rank, std::uint64_t incarnation = 1) {
    return {run(), 100 + rank, incarnation, 1, rank};
  }
  static double loss_at(std::int64_t rank, std::int64_t step) {
    return static_cast<double>(rank * 1000 + (step * 7) % 13);
  }
  void fill(std::uint32_t ranks, std::int64_t steps) {
    auto store = writer();
    name(*store);
    name_tensor(*store, 70, "gradient/w");
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      store->name_worker(run(), 100 + rank, "worker_" + std::to_string(rank));
    for (std::int64_t step = 0; step < steps; ++step) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        add(*store, step, loss_at(rank, step), rank_at(rank));
        add_tensor(*store, 70, step, rank == 1 && step == 5 ? kNone : 3 + rank, rank_at(rank));
      }
    }
    ASSERT_TRUE(store->commit({}));
  }
  RankHeat heat(RankHeatAsk ask) {
    ask.of.run = core::to_text(run());
    const auto answer = ask_rank_heat(*reader(), ask);
    EXPECT_TRUE(answer);
    return answer ? *answer : RankHeat();
  }
};

TEST_F(RankHeatQueryTest, EachRankIsARowOfItsOwnValues) {
  fill(3, 40);
  RankHeatAsk ask;
  ask.of.name = "loss";
  ask.columns = 10;
  const RankHeat answer = heat(ask);
  ASSERT_EQ(answer.grid.rows.size(), 3U);
  EXPECT_EQ(answer.ranks, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(answer.grid.rows[2].first.text, "worker_2");
  EXPECT_EQ(answer.grid.level, 2);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    for (std::int64_t at = 0; at < 10; ++at) {
      double most = 0;
      for (std::int64_t step = at * 4; step < at * 4 + 4; ++step)
        most = std::max(most, loss_at(rank, step));
      EXPECT_EQ(
          answer.grid.rows[static_cast<std::size_t>(rank)].cells[static_cast<std::size_t>(at)],
          most);
    }
  }
}

TEST_F(RankHeatQueryTest, AStatisticOfTensorsTellsWhichRankWasNotFinite) {
  fill(3, 40);
  RankHeatAsk ask;
  ask.of.name = "gradient/.*";
  ask.statistic = tensor_column::l2;
  const RankHeat answer = heat(ask);
  ASSERT_EQ(answer.grid.rows.size(), 3U);
  EXPECT_TRUE(answer.grid.rows[0].bad.empty());
  ASSERT_EQ(answer.grid.rows[1].bad.size(), 1U);
  EXPECT_EQ(answer.grid.rows[1].bad[0].x, 5);
  EXPECT_EQ(answer.grid.rows[2].cells[7], 5.0);
  ask.of.name = "loss";  // a scalar is no tensor
  EXPECT_TRUE(heat(ask).grid.rows.empty());
}

TEST_F(RankHeatQueryTest, MoreRanksThanRowsAreFoldedAndALaterClientReplacesItsOwnStepsOnly) {
  fill(5, 20);
  {
    auto store = writer();
    for (std::int64_t step = 10; step < 20; ++step) add(*store, step, -7, rank_at(4, 2));
    ASSERT_TRUE(store->commit({}));
  }
  RankHeatAsk ask;
  ask.of.name = "loss";
  const RankHeat all = heat(ask);
  EXPECT_EQ(all.grid.rows[4].cells[9], loss_at(4, 9));
  EXPECT_EQ(all.grid.rows[4].cells[10], -7.0);
  EXPECT_EQ(all.grid.rows[3].cells[10], loss_at(3, 10));
  ask.rows = 2;
  const RankHeat folded = heat(ask);
  EXPECT_EQ(folded.count, 5);
  EXPECT_EQ(folded.ranks, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(folded.grid.rows[1].folded, 2);
  EXPECT_EQ(folded.grid.rows[1].last.text, "worker_4");
  EXPECT_EQ(folded.grid.rows[0].cells[3], loss_at(2, 3));
}

TEST_F(RankHeatQueryTest, WhereLaterClientsWentOnIsToldOfWorkersTogether) {
  fill(3, 20);
  {
    auto store = writer();
    for (std::int64_t step = 12; step < 30; ++step) {
      for (const std::uint32_t rank : {0U, 1U}) add(*store, step, 1, rank_at(rank, 2));
    }
    for (std::int64_t step = 25; step < 30; ++step) add(*store, step, 1, rank_at(2, 2));
    ASSERT_TRUE(store->commit({}));
  }
  const auto restarts = ask_restarts(*reader(), asked());
  ASSERT_TRUE(restarts);
  ASSERT_EQ(restarts->size(), 2U);
  EXPECT_EQ(restarts->at(0).step, 12);
  EXPECT_EQ(restarts->at(0).workers, 2);
  EXPECT_EQ(restarts->at(0).again, 8);
  EXPECT_EQ(restarts->at(0).before, 1);
  EXPECT_EQ(restarts->at(1).step, 25);
  EXPECT_EQ(restarts->at(1).workers, 1);
  EXPECT_EQ(restarts->at(1).again, 0);
}

}  // namespace
}  // namespace tocsin::insights
