#include "collectors/hook/publish/frame_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {
namespace {

using core::FrameKind;
using ::testing::ElementsAre;

class FrameBatcherTest : public ::testing::Test {
 protected:
  const Name& scalar(const std::string& text) {
    NameInfo info;
    info.type = core::DictionaryType::scalar;
    return *names_.find(names_.put(text, info, plan_));
  }
  void end_step() {
    const Moment now{core::nanoseconds(clock_.now()), clock_.monotonic()};
    frames_.add_step_end(now, 1, false);
    steps_.next(now);
  }
  std::vector<FrameKind> kinds() {
    std::vector<FrameKind> out;
    for (const KeptFrame& frame : Drained(queue_).frames) {
      out.push_back(frame.view().header().kind);
    }
    return out;
  }

  ManualClock clock_;
  SendQueue queue_{1 << 20};
  Identity identity_ = make_identity();
  CapturePlan plan_ = make_plan();
  StepCounter steps_{Moment{core::nanoseconds(clock_.now()), clock_.monotonic()}};
  NameTable names_{identity_.worker, ""};
  FrameBatcher frames_{identity_, 42, names_, steps_, clock_, queue_};
};

TEST_F(FrameBatcherTest, RowsWaitForTheBatchTime) {
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), std::nullopt);
  frames_.add_scalar(scalar("loss"), 0.5);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), FrameBatcher::kBatchTime);
  frames_.flush_if_due(clock_.monotonic());
  EXPECT_TRUE(kinds().empty());
  clock_.advance(FrameBatcher::kBatchTime);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), core::Duration{0});
  frames_.flush_if_due(clock_.monotonic());
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary, FrameKind::scalar));
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), std::nullopt);
}

TEST_F(FrameBatcherTest, RowsThatComeAllTheTimeGoAtAPace) {
  frames_.add_scalar(scalar("loss"), 0.5);
  clock_.advance(FrameBatcher::kBatchTime);
  frames_.flush_if_due(clock_.monotonic());
  (void)kinds();
  frames_.add_scalar(scalar("loss"), 0.4);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), FrameBatcher::kPace);
  frames_.flush();  // what the training thread makes itself does not put it off
  frames_.add_scalar(scalar("loss"), 0.3);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), FrameBatcher::kPace);
  clock_.advance(FrameBatcher::kPace);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), core::Duration{0});
}

TEST_F(FrameBatcherTest, WhatIsNoNumberWaitsLess) {
  frames_.add_scalar(scalar("loss"), 0.5);
  clock_.advance(FrameBatcher::kBatchTime);
  frames_.flush_if_due(clock_.monotonic());
  const auto woken = queue_.wakes();
  frames_.add_scalar(scalar("loss"), 0.4);
  EXPECT_EQ(queue_.wakes(), woken);
  frames_.add_scalar(scalar("loss"), std::numeric_limits<double>::quiet_NaN());
  frames_.add_scalar(scalar("loss"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(queue_.wakes(), woken + 1);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), FrameBatcher::kUrgentPace);
  clock_.advance(FrameBatcher::kUrgentPace);
  frames_.flush_if_due(clock_.monotonic());
  core::SummaryRow row;
  row.name = names_.worker();
  frames_.add(row);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), FrameBatcher::kPace);
  row.neginf = 1;
  frames_.add(row);
  EXPECT_EQ(queue_.wakes(), woken + 2);
  EXPECT_EQ(frames_.due_in(clock_.monotonic()), FrameBatcher::kUrgentPace);
}

TEST_F(FrameBatcherTest, NamesGoBeforeRowsAndRowsBeforeTheEndOfTheirStep) {
  core::SummaryRow row;
  row.name = scalar("gradient/w").hash;
  frames_.next_summary().number(core::SparseStat::first_bad_index, 7);
  frames_.add(row);
  end_step();  // with statistics it is sent at once
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary, FrameKind::summary, FrameKind::step_end));
}

TEST_F(FrameBatcherTest, StatisticsOfARowTravelWithItAndTheirParameters) {
  core::SummaryRow row;
  row.name = scalar("gradient/w").hash;
  const std::array bound{3.0};
  const std::array other{4.0};
  const std::array counts{5.0, 0.0};
  for (const double value : {10.0, 20.0}) {
    ExtensionRows& out = frames_.next_summary();
    EXPECT_FALSE(out.is_approximate());
    out.number(core::SparseStat::unit_count, 8);
    out.number(core::SparseStat::unit_count, 8);  // as two requests do
    out.number(core::SparseStat::abs_ge_count, value, bound);
    if (value == 20) out.number(core::SparseStat::abs_ge_count, 1, other);
    out.vector(core::VectorStat::value_counts, counts, bound);
    out.approximate();
    EXPECT_TRUE(out.is_approximate());
    frames_.add(row);
  }
  frames_.flush();
  const auto frames = Drained(queue_).of(FrameKind::summary);
  ASSERT_EQ(frames.size(), 1U);
  std::vector<std::string> columns;
  frames[0].view().sparse_columns([&](const core::SparseColumn& column) {
    std::string text = std::to_string(static_cast<int>(column.stat));
    for (std::size_t p = 0; p < column.params_bytes.size() / 8; ++p) {
      text += " p" + std::to_string(static_cast<int>(column.param(p)));
    }
    for (std::size_t i = 0; i < column.size(); ++i) {
      text += " " + std::to_string(column.row(i)) + ":" +
              std::to_string(static_cast<int>(column.value(i)));
    }
    columns.push_back(text);
  });
  EXPECT_THAT(columns, ElementsAre("12 0:8 1:8", "15 p3 0:10 1:20", "15 p4 1:1"));
  std::size_t vectors = 0;
  frames[0].view().vectors([&](const core::SparseVector& one) {
    EXPECT_EQ(one.row, vectors++);
    EXPECT_EQ(one.value(0), 5);
  });
  EXPECT_EQ(vectors, 2U);
}

TEST_F(FrameBatcherTest, LargeStatisticsFillAFrameToo) {
  core::SummaryRow row;
  row.name = names_.worker();
  const std::vector<double> many(20'000, 1.0);  // 160 kB
  for (int i = 0; i < 6; ++i) {
    frames_.next_summary().vector(core::VectorStat::class_counts, many, {});
    frames_.add(row);
  }
  frames_.flush();
  const auto frames = Drained(queue_).of(FrameKind::summary);
  EXPECT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames_.errors(), 0U);
}

TEST_F(FrameBatcherTest, EndsOfEarlierStepsGoBeforeStatisticsOfThePresentOne) {
  end_step();
  core::SummaryRow row;
  row.name = names_.worker();
  frames_.add(row);
  frames_.flush();
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary, FrameKind::step_end, FrameKind::summary));
}

TEST_F(FrameBatcherTest, AFullFrameIsSentAndTheNextRowIsItsFirst) {
  core::SummaryRow row;
  row.name = names_.worker();
  for (std::size_t i = 0; i < FrameBatcher::kFrameRows; ++i) frames_.add(row);
  frames_.next_summary();
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary, FrameKind::summary));
}

TEST_F(FrameBatcherTest, StepsThatOnlyLogAreBatchedUntilTheLongestWait) {
  const Name& loss = scalar("loss");
  for (int step = 0; step < 5; ++step) {
    frames_.add_scalar(loss, 1);
    end_step();
    EXPECT_TRUE(kinds().empty());
    clock_.advance(FrameBatcher::kLongestWait / 5);
  }
  end_step();
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary, FrameKind::scalar, FrameKind::step_end));
}

TEST_F(FrameBatcherTest, EveryFrameHasTheNextNumberAndSaysWhetherTheGridIsWider) {
  frames_.lifecycle({});
  frames_.set_degraded(true);
  frames_.lifecycle({});
  const Drained drained(queue_);
  ASSERT_EQ(drained.frames.size(), 2U);
  EXPECT_EQ(drained.frames[0].view().header().sequence, 1U);
  EXPECT_EQ(drained.frames[0].view().header().flags, 0U);
  EXPECT_EQ(drained.frames[1].view().header().sequence, 2U);
  EXPECT_EQ(drained.frames[1].view().header().flags, core::frame_flag::kDegraded);
  EXPECT_EQ(drained.frames[1].view().header().incarnation, 42U);
  EXPECT_EQ(frames_.frames(), 2U);
}

TEST_F(FrameBatcherTest, WhatEverybodyKnowsIsToldOnlyWhenAskedAgain) {
  frames_.dictionary(Tell::fresh);
  frames_.dictionary(Tell::fresh);
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary));
  frames_.dictionary(Tell::all);
  EXPECT_THAT(kinds(), ElementsAre(FrameKind::dictionary));
}

}  // namespace
}  // namespace tocsin::hook
