// The grid of all tensors, and their health at one step.
#include "tests/unit/insights/tensor_values.h"

namespace tocsin::insights {
namespace {

class HeatQueryTest : public TensorFolder {
 protected:
  // 12 tensors, 1000 steps: the size of tensor t at step x.
  static double size_at(std::uint64_t t, std::int64_t x) {
    if (t == 7 && x >= 640) return kNone;
    return static_cast<double>(t + 1) * (1 + static_cast<double>((x * 37) % 101));
  }
  void fill(int tensors = 12, std::int64_t steps = 1000) {
    auto store = writer();
    for (int t = 0; t < tensors; ++t)
      name_tensor(*store, static_cast<std::uint64_t>(100 + t), "layer" + std::to_string(t));
    for (std::int64_t x = 0; x < steps; ++x) {
      for (int t = 0; t < tensors; ++t) {
        const auto tensor = static_cast<std::uint64_t>(t);
        add_tensor(*store, 100 + tensor, x, size_at(tensor, x));
      }
      if (x % 90 == 0) {
        ASSERT_TRUE(store->commit({}));
      }
    }
    ASSERT_TRUE(store->commit({}));
  }
};

TEST_F(HeatQueryTest, EveryCellIsTheGreatestOfItsStepsAndWhatIsNotFiniteIsToldApart) {
  fill();
  auto reading = reader();
  HeatAsk ask;
  ask.of = of_run();
  for (const std::int64_t columns : {10, 60, 400, 1000}) {
    ask.columns = columns;
    const auto answer = ask_heat(*reading, ask);
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->rows.size(), 12u);
    const std::int64_t width = std::int64_t{1} << answer->level;
    EXPECT_LE((answer->to - answer->from) / width, columns);
    for (std::size_t t = 0; t < 12; ++t) {
      const HeatRow& row = answer->rows[t];
      EXPECT_EQ(row.first.text, "layer" + std::to_string(t));
      std::int64_t bad = 0;
      for (const HeatBad& one : row.bad) bad += one.nan;
      EXPECT_EQ(bad, t == 7 ? 360 : 0);
      if (t == 7) {
        EXPECT_EQ(row.bad.front().x, 640);
      }
      for (std::size_t at = 0; at < row.cells.size(); ++at) {
        std::optional<double> truth;
        for (std::int64_t k = 0; k < width; ++k) {
          const std::int64_t x = answer->from + static_cast<std::int64_t>(at) * width + k;
          const double one = x < 1000 ? size_at(t, x) : kNone;
          if (std::isfinite(one)) truth = std::max(truth.value_or(0), one);
        }
        ASSERT_EQ(row.cells[at], truth) << t << ' ' << at << ' ' << columns;
      }
    }
  }
}

TEST_F(HeatQueryTest, MoreTensorsThanRowsAreFoldedByTheGreatest) {
  fill();
  auto reading = reader();
  HeatAsk ask;
  ask.of = of_run();
  ask.rows = 5;  // three tensors a row
  ask.columns = 1000;
  const auto answer = ask_heat(*reading, ask);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->rows.size(), 4u);
  EXPECT_EQ(answer->rows[2].first.text, "layer6");
  EXPECT_EQ(answer->rows[2].last.text, "layer8");
  EXPECT_EQ(answer->rows[2].folded, 3);
  EXPECT_EQ(*answer->rows[2].cells[700], size_at(8, 700));
  EXPECT_EQ(answer->rows[2].bad.size(), 360u);  // the NaN of one of three is seen
}

TEST_F(HeatQueryTest, RowsByValueBeginWithWhatWasBadFirst) {
  fill();
  auto reading = reader();
  HeatAsk ask;
  ask.of = of_run();
  ask.order = HeatOrder::value;
  const auto answer = ask_heat(*reading, ask);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->rows[0].first.text, "layer7");
  EXPECT_EQ(answer->rows[1].first.text, "layer11");
  ask.of.name = "layer1.*";
  EXPECT_EQ(ask_heat(*reading, ask)->tensors, 3);  // 1, 10, 11
  ask.of.name = "layer(";
  EXPECT_EQ(ask_heat(*reading, ask).error().message.substr(0, 5), "name:");
}

TEST_F(HeatQueryTest, WhatALaterAttemptWentOverIsNotMixedIn) {
  auto store = writer();
  name_tensor(*store, 5, "w");
  for (std::int64_t x = 0; x < 20; ++x) add_tensor(*store, 5, x, 100, segment(1));
  for (std::int64_t x = 10; x < 30; ++x) add_tensor(*store, 5, x, 1, segment(2));
  ASSERT_TRUE(store->commit({}));
  auto reading = reader();
  HeatAsk ask;
  ask.of = of_run();
  const auto answer = ask_heat(*reading, ask);
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer->rows[0].cells[9], 100);
  EXPECT_EQ(*answer->rows[0].cells[10], 1);
}

TEST_F(HeatQueryTest, HealthCountsElementsAndTellsWhatIsUsual) {
  auto store = writer();
  name_tensor(*store, 5, "gradient/w");
  for (std::int64_t x = 0; x < 50; x += 10) add_tensor(*store, 5, x, x < 40 ? 2 : 64);
  ASSERT_TRUE(store->commit({}));
  auto reading = reader();
  HealthAsk ask;
  ask.of = of_run();
  ask.step = 44;
  const auto answer = ask_health(*reading, ask);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->lines.size(), 1u);
  const HealthLine& line = answer->lines[0];
  EXPECT_EQ(line.step, 40);
  EXPECT_EQ(line.elements, 10);
  EXPECT_EQ(line.zero, 2);
  EXPECT_EQ(line.negative, 3);
  EXPECT_EQ(line.positive, 5);
  EXPECT_EQ(line.l2, 64);
  EXPECT_EQ(line.usual_l2, 2);
  EXPECT_FALSE(answer->first_bad);
  ask.step = -1;  // before everything
  EXPECT_TRUE(ask_health(*reading, ask)->lines.empty());
}

TEST_F(HeatQueryTest, TheRowBehindChunksIsFoundWhereverTheStepLies) {
  auto store = writer();
  name_tensor(*store, 5, "w");
  for (std::int64_t x = 0; x < 512; ++x) add_tensor(*store, 5, x * 2, static_cast<double>(x));
  add_tensor(*store, 5, 5000, 9);
  ASSERT_TRUE(store->commit({}));
  auto reading = reader();
  HealthAsk ask;
  ask.of = of_run();
  for (const auto& [step, found] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 0}, {7, 6}, {1022, 1022}, {3000, 1022}, {9999, 5000}}) {
    ask.step = step;
    const auto answer = ask_health(*reading, ask);
    ASSERT_EQ(answer->lines.size(), 1u) << step;
    EXPECT_EQ(answer->lines[0].step, found) << step;
  }
}

// All at one step: forward is before the loss, the loss before backward, and backward goes from the
// last layer to the first.
TEST_F(HeatQueryTest, FirstBadIsFirstInTheOrderOfATrainingStep) {
  auto store = writer();
  name_tensor(*store, 1, "gradient/first");
  name_tensor(*store, 2, "gradient/last");
  name_tensor(*store, 3, "last.output", core::Role::activation_out);
  name_tensor(*store, 4, "first.weight", core::Role::weight);
  name(*store, 8, "loss");
  const auto add_all = [&](std::int64_t x, double forward, double loss, double back) {
    add_tensor(*store, 1, x, back);
    add_tensor(*store, 2, x, back);
    add_tensor(*store, 3, x, forward);
    add_tensor(*store, 4, x, 1);
    add(*store, x, loss, segment(), 8);
  };
  const auto first = [&] {
    EXPECT_TRUE(store->commit({}));
    HealthAsk ask;
    ask.of = of_run();
    const auto answer = ask_health(*reader(), ask);
    return answer->first_bad
               ? answer->first_bad->name.text + "@" + std::to_string(answer->first_bad->step)
               : "none";
  };
  add_all(1, 1, 1, 1);
  EXPECT_EQ(first(), "none");
  add_tensor(*store, 1, 9, kNone);
  EXPECT_EQ(first(), "gradient/first@9");
  auto other = segment(1, 10);  // another rank, at an earlier step, all at once
  add_tensor(*store, 1, 8, kNone, other);
  add_tensor(*store, 2, 8, kNone, other);
  EXPECT_EQ(first(), "gradient/last@8");
  add(*store, 8, kNone, other, 8);
  EXPECT_EQ(first(), "loss@8");
  add_tensor(*store, 3, 8, kNone, other);
  EXPECT_EQ(first(), "last.output@8");
  add_tensor(*store, 4, 8, kNone, other);
  EXPECT_EQ(first(), "first.weight@8");
}

}  // namespace
}  // namespace tocsin::insights
