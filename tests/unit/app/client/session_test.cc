#include "app/client/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "tests/unit/app/client/fixture.h"

namespace tocsin::app::client {
namespace {

using core::FrameKind;
using core::LifecycleEvent;
using core::Mode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

class SessionTest : public ::testing::Test {
 protected:
  Session open(const std::string& capture = "{}", std::uint64_t queue_bytes = 1 << 20) {
    queue_ = std::make_unique<SendQueue>(queue_bytes);
    SessionOptions options;
    options.identity = make_identity();
    options.incarnation = 42;
    return Session(std::move(options), make_plan(capture), clock_, *queue_);
  }
  static NameInfo tensor_info() {
    NameInfo info;
    info.dtype = core::Dtype::f32;
    return info;
  }
  static NameInfo scalar_info() {
    NameInfo info;
    info.type = core::DictionaryType::scalar;
    return info;
  }
  LentTensor lend(std::uint64_t id, const std::vector<float>& values) {
    extents_.push_back(std::make_unique<std::int64_t>(static_cast<std::int64_t>(values.size())));
    return {id, values.data(), {extents_.back().get(), 1}, {}, core::Dtype::f32, 0};
  }

  ManualClock clock_;
  std::unique_ptr<SendQueue> queue_;
  std::vector<std::unique_ptr<std::int64_t>> extents_;
};

TEST_F(SessionTest, FirstThingsAreDictionaryAndStart) {
  Session session = open();
  const std::uint64_t loss = session.name("loss", scalar_info());
  session.scalars(std::array{loss}, std::array{0.5});
  session.step_end(false, 1);
  session.flush();
  const Drained drained(*queue_);
  ASSERT_GE(drained.frames.size(), 4U);
  EXPECT_EQ(drained.frames[0].view().header().kind, FrameKind::dictionary);
  EXPECT_EQ(drained.frames[1].lifecycle().event, LifecycleEvent::start);
  EXPECT_EQ(drained.frames[1].lifecycle().job, "digits");
  EXPECT_EQ(drained.frames[1].lifecycle().launch, make_identity().launch);
  EXPECT_EQ(drained.frames[1].lifecycle().boot_id, make_identity().boot_id);
  EXPECT_EQ(drained.frames[1].lifecycle().opened, make_identity().opened);
  const auto header = drained.frames[2].view().header();
  EXPECT_EQ(header.incarnation, 42U);
  EXPECT_EQ(header.worker, core::name_hash("worker_0"));
  EXPECT_EQ(header.run, make_identity().run);
}

TEST_F(SessionTest, TensorIsReducedAtOnceAndNoPointerIsKept) {
  Session session = open();
  const std::uint64_t id = session.name("gradient/w", tensor_info());
  {
    std::vector<float> values{1, -2, 0, 3};
    session.tensors(std::array{lend(id, values)});
    std::fill(values.begin(), values.end(), 99.F);
  }
  session.step_end(false, 1);
  const auto frames = Drained(*queue_).of(FrameKind::summary);
  ASSERT_EQ(frames.size(), 1U);
  const core::SummaryRow row = frames[0].view().summary(0);
  EXPECT_EQ(row.name, id);
  EXPECT_EQ(row.count, 4U);
  EXPECT_EQ(row.sum, 2);
  EXPECT_EQ(row.sumsq, 14);
  EXPECT_EQ(row.m2, 13);
  EXPECT_EQ(row.min, -2);
  EXPECT_EQ(row.max, 3);
  EXPECT_EQ(row.meta, 0x301U);
}

TEST_F(SessionTest, StepThatPublishedEndsAtOnceOthersWithinTheBatchTime) {
  Session session = open();
  const std::uint64_t loss = session.name("loss", scalar_info());
  const std::uint64_t id = session.name("gradient/w", tensor_info());
  const std::vector<float> values{1};
  session.tensors(std::array{lend(id, values)});
  session.step_end(false, 1);
  EXPECT_EQ(Drained(*queue_).of(FrameKind::step_end).size(), 1U);
  for (int step = 0; step < 5; ++step) {
    session.scalars(std::array{loss}, std::array{1.0});
    session.step_end(false, 1);
  }
  EXPECT_TRUE(Drained(*queue_).frames.empty());
  clock_.advance(Session::kBatchTime);
  session.tick();
  const Drained batch(*queue_);
  ASSERT_EQ(batch.of(FrameKind::scalar).size(), 1U);
  EXPECT_EQ(batch.of(FrameKind::scalar)[0].view().rows(), 5U);
  ASSERT_EQ(batch.of(FrameKind::step_end).size(), 1U);
  EXPECT_EQ(batch.of(FrameKind::step_end)[0].view().header().step, 5);
}

TEST_F(SessionTest, BigModelIsSplitIntoFramesOfFiveHundredRows) {
  Session session = open();
  const std::vector<float> values{1, 2};
  std::vector<LentTensor> tensors;
  for (int i = 0; i < 1200; ++i) {
    tensors.push_back(lend(session.name("gradient/" + std::to_string(i), tensor_info()), values));
  }
  EXPECT_EQ(session.tensors(tensors), 1200U);
  session.step_end(false, 1);
  std::vector<std::size_t> rows;
  for (const KeptFrame& frame : Drained(*queue_).of(FrameKind::summary)) {
    rows.push_back(frame.view().rows());
  }
  EXPECT_THAT(rows, ElementsAre(500, 500, 200));
}

TEST_F(SessionTest, DroppedFramesLeaveAGapInTheSequenceAndAReport) {
  Session session = open("{}", 6000);
  const std::uint64_t loss = session.name("loss", scalar_info());
  for (int step = 0; step < 400; ++step) {
    session.scalars(std::array{loss}, std::array{1.0});
    session.step_end(false, 1);
    clock_.advance(Session::kBatchTime);
  }
  const Drained held(*queue_);
  session.tick();
  session.step_end(false, 1);
  session.flush();
  const Drained after(*queue_);
  const auto gaps = after.lifecycles(LifecycleEvent::gap);
  ASSERT_FALSE(gaps.empty());
  std::uint64_t lost = 0;
  for (const core::Lifecycle& gap : gaps) {
    EXPECT_EQ(gap.reason, "queue_full");
    EXPECT_LE(*gap.first_step, *gap.last_step);
    lost += gap.frames;
  }
  std::vector<std::uint64_t> sequences;
  for (const KeptFrame& frame : held.frames) sequences.push_back(frame.view().header().sequence);
  for (const KeptFrame& frame : after.frames) sequences.push_back(frame.view().header().sequence);
  EXPECT_TRUE(std::is_sorted(sequences.begin(), sequences.end()));
  EXPECT_EQ(sequences.back(), sequences.size() + lost);
}

TEST_F(SessionTest, NamesAreSentAgainAfterAGapAndEveryFiveMinutes) {
  Session session = open();
  session.name("loss", scalar_info());
  session.step_end(false, 1);
  session.flush();
  EXPECT_EQ(Drained(*queue_).of(FrameKind::dictionary).size(), 1U);
  clock_.advance(Session::kDictionaryAgain);
  session.tick();
  const auto again = Drained(*queue_).of(FrameKind::dictionary);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].view().rows(), 2U);
}

TEST_F(SessionTest, NamesThatNobodyWritesAnyMoreWaitUntilTheyAreWrittenAgain) {
  Session session = open();
  const std::uint64_t loss = session.name("loss", scalar_info());
  const std::uint64_t rare = session.name("rare", scalar_info());
  const auto five_minutes = [&](std::initializer_list<std::uint64_t> written) {
    for (const std::uint64_t id : written) session.scalars(std::array{id}, std::array{0.5});
    session.step_end(false, 1);
    clock_.advance(Session::kDictionaryAgain);
    session.tick();
    std::vector<std::size_t> rows;
    for (const KeptFrame& frame : Drained(*queue_).of(FrameKind::dictionary)) {
      rows.push_back(frame.view().rows());
    }
    return rows;
  };
  EXPECT_THAT(five_minutes({loss, rare}), ElementsAre(3U, 3U)) << "the worker's is the third";
  EXPECT_THAT(five_minutes({loss}), ElementsAre(2U));
  EXPECT_THAT(five_minutes({loss, rare}), ElementsAre(1U, 3U)) << "told before it is written";
  session.delivery_failed("lost");
  EXPECT_EQ(Drained(*queue_).of(FrameKind::dictionary)[0].view().rows(), 3U);
}

TEST_F(SessionTest, HeartbeatsEveryFiveSeconds) {
  Session session = open();
  session.step_end(false, 1);
  for (int second = 0; second < 60; ++second) {
    clock_.advance(seconds(1));
    EXPECT_LE(session.tick(), Session::kHeartbeat);
  }
  const auto heartbeats = Drained(*queue_).lifecycles(LifecycleEvent::heartbeat);
  EXPECT_EQ(heartbeats.size(), 12U);
  EXPECT_EQ(heartbeats[0].launch, make_identity().launch);
}

TEST_F(SessionTest, StartIsSentEvenWhenTheFirstStepTakesMinutes) {
  Session session = open();
  session.tick();
  EXPECT_TRUE(Drained(*queue_).frames.empty());
  clock_.advance(milliseconds(200));
  session.tick();
  EXPECT_EQ(Drained(*queue_).lifecycles(LifecycleEvent::start).size(), 1U);
}

TEST_F(SessionTest, FramesNeverMixModesOrPasses) {
  Session session = open();
  const std::uint64_t loss = session.name("loss", scalar_info());
  const auto log = [&] {
    session.scalars(std::array{loss}, std::array{1.0});
    session.step_end(false, 1);
  };
  log();
  session.set_mode(Mode::eval);
  log();
  log();
  session.set_mode(Mode::train);
  log();
  session.set_mode(Mode::eval);
  log();
  session.flush();
  std::vector<std::array<std::int64_t, 4>> seen;  // mode, pass, first step, global step
  for (const KeptFrame& frame : Drained(*queue_).of(FrameKind::step_end)) {
    const auto view = frame.view();
    seen.push_back({static_cast<std::int64_t>(view.header().mode), view.header().pass,
                    view.column<std::int64_t>(0)[0], view.header().global_step});
  }
  EXPECT_THAT(seen, ElementsAre(std::array<std::int64_t, 4>{1, 0, 0, 0},
                                std::array<std::int64_t, 4>{2, 0, 0, 2},
                                std::array<std::int64_t, 4>{1, 1, 1, 3},
                                std::array<std::int64_t, 4>{2, 1, 2, 4}));
}

TEST_F(SessionTest, FirstBadIndexIsThatOfTheFirstNanOrInfinity) {
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

TEST_F(SessionTest, StatisticsOfOneWordAreToldApartByTheirParameters) {
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
TEST_F(SessionTest, StatisticsByPlaceAreThoseOfTheView) {
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
  EXPECT_EQ(std::memcmp(&of_view[{core::SparseStat::digest, 0}],
                        &asked_for(frames[1])[{core::SparseStat::digest, 0}], sizeof(double)),
            0);
}

// Every other column: a view with holes.
TEST_F(SessionTest, AViewWithHolesIsMeasuredToo) {
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

TEST_F(SessionTest, LabelsMeetThePredictionsOfTheirStep) {
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

TEST_F(SessionTest, LargestTensorsAreLeftOutOfDeltaAndNamed) {
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

TEST_F(SessionTest, OffTheGridATensorIsCapturedAllTheSame) {
  Session session = open("{every: 10 steps}");
  const std::uint64_t id = session.name("gradient/w", tensor_info());
  session.step_end(false, 1);
  const std::vector<float> values{1};
  LentTensor tensor = lend(id, values);
  EXPECT_EQ(session.tensors(std::array{tensor}), 0U);
  tensor.off_grid = true;
  EXPECT_EQ(session.tensors(std::array{tensor}), 1U);
  session.step_end(false, 1);
  const auto frames = Drained(*queue_).of(FrameKind::summary);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].view().header().step, 1);
}

TEST_F(SessionTest, WhatWasLoggedFirstIsPublishedFirst) {
  Session session = open();
  const std::uint64_t loss = session.name("loss", scalar_info());
  const std::uint64_t id = session.name("gradient/w", tensor_info());
  const std::vector<float> values{1};
  for (int step = 0; step <= 10; ++step) {  // quicker than anything is sent
    session.scalars(std::array{loss}, std::array{std::numeric_limits<double>::infinity()});
    if (step == 10) session.tensors(std::array{lend(id, values)});
    session.step_end(false, 1);
  }
  std::vector<FrameKind> kinds;
  for (const KeptFrame& frame : Drained(*queue_).frames)
    kinds.push_back(frame.view().header().kind);
  EXPECT_THAT(kinds, ElementsAre(FrameKind::dictionary, FrameKind::lifecycle, FrameKind::scalar,
                                 FrameKind::step_end, FrameKind::summary, FrameKind::step_end));
}

TEST_F(SessionTest, WhatLooksWrongInTheFirstStepsIsToldOnce) {
  Session session = open();
  session.preflight(core::ValueList{core::ValueMap{{"kind", "eval_mode"}}});
  const auto told = Drained(*queue_).lifecycles(LifecycleEvent::preflight);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(core::to_json(told[0].findings), R"([{"kind":"eval_mode"}])");
}

TEST_F(SessionTest, UnknownIdsAreCountedNotSent) {
  Session session = open();
  session.scalars(std::array<std::uint64_t, 1>{7}, std::array{1.0});
  const std::vector<float> values{1};
  EXPECT_EQ(session.tensors(std::array{lend(9, values)}), 0U);
  EXPECT_NE(core::to_json(session.counters()).find("\"errors_total\":2"), std::string::npos);
}

TEST_F(SessionTest, SlowCaptureIsStretchedAndSaysSo) {
  Session session = open("{every: 1 step, collections: [gradients]}");
  const std::uint64_t id = session.name("gradient/w", tensor_info());
  const std::vector<float> values{1};
  for (int step = 0; step < 50; ++step) {
    if (session.due(0)) {
      clock_.advance(milliseconds(2));  // what the caller needs to bring the tensor
      session.tensors(std::array{lend(id, values)});
    }
    clock_.advance(milliseconds(10));
    session.step_end(false, 1);
  }
  const Drained drained(*queue_);
  EXPECT_FALSE(drained.lifecycles(LifecycleEvent::applied).empty());
  ASSERT_FALSE(drained.lifecycles(LifecycleEvent::gap).empty());
  EXPECT_EQ(drained.lifecycles(LifecycleEvent::gap)[0].reason, "overhead");
  EXPECT_LT(drained.of(FrameKind::summary).size(), 20U);
  EXPECT_EQ(drained.frames.back().view().header().flags, core::frame_flag::kDegraded);
}

TEST_F(SessionTest, SkippedUpdatesAndMicroStepsStandInTheStepEnd) {
  Session session = open();
  session.step_end(true, 4);
  session.flush();
  const auto frames = Drained(*queue_).of(FrameKind::step_end);
  const auto view = frames[0].view();
  EXPECT_EQ(view.column<std::uint64_t>(core::step_end_column::micro_steps)[0], 4U);
  EXPECT_EQ(view.column<std::uint64_t>(core::step_end_column::meta)[0],
            core::meta::kOptimizerSkipped);
}

TEST_F(SessionTest, EndComesLastAndNothingAfterIt) {
  Session session = open();
  const std::uint64_t loss = session.name("loss", scalar_info());
  session.scalars(std::array{loss}, std::array{1.0});
  core::Lifecycle end;
  end.event = LifecycleEvent::end;
  end.outcome = "failed";
  end.error = "boom";
  session.end(end);
  session.end(end);
  clock_.advance(seconds(60));
  session.tick();
  const Drained drained(*queue_);
  EXPECT_EQ(drained.frames.back().lifecycle().outcome, "failed");
  EXPECT_EQ(drained.lifecycles(LifecycleEvent::end).size(), 1U);
  EXPECT_EQ(drained.of(FrameKind::scalar).size(), 1U);
}

}  // namespace
}  // namespace tocsin::app::client
