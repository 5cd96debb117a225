// Statistics that a rule or the user asks for: what a session measures of a tensor beyond the base
// columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "tests/unit/collectors/hook/session_fixture.h"

namespace tocsin::hook {
namespace {

using core::FrameKind;
using ::testing::ElementsAre;

using SessionStatistics = SessionTest;

TEST_F(SessionStatistics, FirstBadIndexIsThatOfTheFirstNanOrInfinity) {
  Session session = open();
  const std::uint64_t id = session.name("gradient/w", tensor_info());
  const std::vector<float> values{1, 2, std::numeric_limits<float>::infinity(), std::nanf("")};
  session.tensors(std::array{lend(id, values)});
  session.step_end(false, 1);
  const auto frames = Drained(*queue_).of(FrameKind::summary);
  ASSERT_EQ(frames.size(), 1U);
  bool found = false;
  frames[0].view().sparse_columns([&](const core::SparseColumn& column) {
    found = column.stat == core::SparseStat::first_bad_index && column.value(0) == 2;
  });
  EXPECT_TRUE(found);
}

/// Every number that a summary frame has beyond the columns, by statistic and first parameter.
std::map<std::pair<core::SparseStat, double>, double> asked_for(const KeptFrame& frame) {
  std::map<std::pair<core::SparseStat, double>, double> out;
  frame.view().sparse_columns([&](const core::SparseColumn& column) {
    const double parameter = column.params_bytes.empty() ? 0 : column.param(0);
    out[{column.stat, parameter}] = column.value(0);
  });
  return out;
}

TEST_F(SessionStatistics, StatisticsOfOneWordAreToldApartByTheirParameters) {
  Session session =
      open("{collections: {a: {include: [w], statistics: ['at_least(1)', 'at_least(2.5)']}}}");
  const std::uint64_t id = session.name("w", tensor_info());
  const std::vector<float> values{1, 2, 3, -3};
  session.tensors(std::array{lend(id, values)});
  session.step_end(false, 1);
  const auto frames = Drained(*queue_).of(FrameKind::summary);
  ASSERT_EQ(frames.size(), 1U);
  auto told = asked_for(frames[0]);
  EXPECT_EQ((told[{core::SparseStat::abs_ge_count, 1}]), 4);
  EXPECT_EQ((told[{core::SparseStat::abs_ge_count, 2.5}]), 2);
}

// A transposed matrix of 3 × 2: its units are the columns of the view, the rows of what lies in memory.
TEST_F(SessionStatistics, StatisticsByPlaceAreThoseOfTheView) {
  Session session =
      open("{collections: {a: {include: [x], statistics: ['units(1)', median, digest]}}}");
  const std::uint64_t view = session.name("x", tensor_info());
  const std::vector<float> memory{0, 0, 0, 5, 6, 7};
  const std::array<std::int64_t, 2> shape{3, 2};
  const std::array<std::int64_t, 2> strides{1, 3};
  session.tensors(std::array{LentTensor{view, memory.data(), shape, strides, core::Dtype::f32, 0}});
  session.step_end(false, 1);
  const std::uint64_t copy = session.name("x", tensor_info());
  const std::vector<float> copied{0, 5, 0, 6, 0, 7};
  while (!session.due(0)) session.step_end(false, 1);
  session.tensors(std::array{LentTensor{copy, copied.data(), shape, {}, core::Dtype::f32, 0}});
  session.step_end(false, 1);
  const auto frames = Drained(*queue_).of(FrameKind::summary);
  ASSERT_EQ(frames.size(), 2U);
  auto of_view = asked_for(frames[0]);
  EXPECT_EQ((of_view[{core::SparseStat::unit_count, 0}]), 2);
  EXPECT_EQ((of_view[{core::SparseStat::unit_inactive_count, 1}]), 1);
  EXPECT_EQ((of_view[{core::SparseStat::median, 0}]), 2.5);
  const auto digest = [](auto given) {
    return std::bit_cast<std::uint64_t>(given[{core::SparseStat::digest, 0}]);
  };
  EXPECT_EQ(digest(of_view), digest(asked_for(frames[1])));
}

// Every other column: a view with holes.
TEST_F(SessionStatistics, AViewWithHolesIsMeasuredToo) {
  Session session = open("{collections: {a: {include: [x], statistics: ['at_least(5)']}}}");
  const std::uint64_t id = session.name("x", tensor_info());
  const std::vector<float> memory{5, 9, 1, 9, 6, 9, 2, 9};
  const std::array<std::int64_t, 2> shape{2, 2};
  const std::array<std::int64_t, 2> strides{4, 2};
  session.tensors(std::array{LentTensor{id, memory.data(), shape, strides, core::Dtype::f32, 0}});
  session.step_end(false, 1);
  auto told = asked_for(Drained(*queue_).of(FrameKind::summary).at(0));
  EXPECT_EQ((told[{core::SparseStat::abs_ge_count, 5}]), 2);
}

TEST_F(SessionStatistics, LabelsMeetThePredictionsOfTheirStep) {
  Session session = open(
      "{collections: {labels: {statistics: [classes]}, predictions: {statistics: [classes]}}}");
  NameInfo info = tensor_info();
  info.role = core::Role::prediction;
  const std::uint64_t predictions = session.name("CrossEntropyLoss_input_0", info);
  info.role = core::Role::label;
  const std::uint64_t labels = session.name("CrossEntropyLoss_input_1", info);
  const std::vector<float> logits{1, 9, 9, 1};
  const std::array<std::int64_t, 2> shape{2, 2};
  session.tensors(
      std::array{LentTensor{predictions, logits.data(), shape, {}, core::Dtype::f32, 0}});
  const std::vector<float> ones{1, 1};
  session.tensors(std::array{lend(labels, ones)});
  session.step_end(false, 1);
  std::vector<double> cells;
  for (const KeptFrame& frame : Drained(*queue_).of(FrameKind::summary)) {
    frame.view().vectors([&](const core::SparseVector& one) {
      if (one.stat != core::VectorStat::confusion) return;
      for (std::size_t i = 0; i < one.size(); ++i) cells.push_back(one.value(i));
    });
  }
  EXPECT_THAT(cells, ElementsAre(1, 0, 1, 1, 1, 1));
}

TEST_F(SessionStatistics, LargestTensorsAreLeftOutOfDeltaAndNamed) {
  Session session = open("{delta_memory: 100, every: 1 step, collections: [weights]}");
  const std::uint64_t small = session.name("small.weight", tensor_info());
  const std::uint64_t large = session.name("large.weight", tensor_info());
  const std::vector<float> few(10, 1.F);
  const std::vector<float> many(1000, 1.F);
  for (int step = 0; step < 2; ++step) {
    session.tensors(std::array{lend(large, many), lend(small, few)});
    session.step_end(false, 1);
  }
  const auto frames = Drained(*queue_).of(FrameKind::summary);
  std::vector<std::uint32_t> rows;
  frames.back().view().sparse_columns([&](const core::SparseColumn& column) {
    for (std::size_t i = 0; i < column.size(); ++i) rows.push_back(column.row(i));
  });
  EXPECT_THAT(rows, ElementsAre(1, 1, 1, 1));
  EXPECT_NE(core::to_json(session.counters()).find("\"delta_left_out\":[\"large.weight\"]"),
            std::string::npos);
}

}  // namespace
}  // namespace tocsin::hook
