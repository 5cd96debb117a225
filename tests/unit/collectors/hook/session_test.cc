#include "collectors/hook/publish/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "tests/unit/collectors/hook/session_fixture.h"

namespace tocsin::hook {
namespace {

using core::FrameKind;
using core::LifecycleEvent;
using core::Mode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

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
  for (int step = 0; step < 1000; ++step) {
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

TEST_F(SessionTest, PhasesNameTheirTrackOnce) {
  Session session = open();
  NameInfo info;
  info.type = core::DictionaryType::span_name;
  const std::uint64_t forward = session.name("forward", info);
  for (int step = 0; step < 3; ++step) {
    session.span(forward, 0, 1000, 10, 0);
    session.step_end(false, 1);
    session.flush();
  }
  const Drained drained(*queue_);
  std::vector<std::string> told;
  for (const KeptFrame& frame : drained.of(FrameKind::dictionary)) {
    ingest::for_each_dictionary_entry(
        frame.view(), [&](const core::DictionaryEntry& entry) { told.emplace_back(entry.name); });
  }
  EXPECT_THAT(told, ElementsAre("worker_0", "forward", "phase"));
  EXPECT_EQ(drained.of(FrameKind::span).size(), 3U);
}

TEST_F(SessionTest, TheEndOfAStepSaysWhetherAnybodyNeedsToAsk) {
  Session session = open("{every: 3 steps}");
  NameInfo info;
  info.type = core::DictionaryType::span_name;
  const std::uint64_t update = session.name("optimizer", info);
  const std::uint64_t loss = session.name("loss", scalar_info());
  std::vector<bool> ask;
  std::vector<bool> due;
  for (int step = 0; step < 6; ++step) {
    ask.push_back(session.step_next(std::array{ScalarValue{loss, 0.5 + step}},
                                    std::array{PhaseTime{update, 1000, 10}}, false, 1));
    due.push_back(session.due(0));
  }
  EXPECT_THAT(ask, ElementsAre(false, false, true, false, false, true));
  EXPECT_EQ(ask, due);
  session.flush();
  const Drained drained(*queue_);
  const auto spans = drained.of(FrameKind::span);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].view().rows(), 6U);
  const auto scalars = drained.of(FrameKind::scalar);
  ASSERT_EQ(scalars.size(), 1U);
  ASSERT_EQ(scalars[0].view().rows(), 6U);
  EXPECT_EQ(scalars[0].view().scalar(4).step, 4);  // of the step that they are told with
  EXPECT_EQ(scalars[0].view().scalar(4).value, 4.5);
  // Nobody knows beforehand when a grid in time is due.
  Session timed = open("{every: 10s}");
  EXPECT_TRUE(timed.step_next({}, {}, false, 1));
  timed.flush();
  EXPECT_TRUE(Drained(*queue_).of(FrameKind::span).empty());
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

TEST_F(SessionTest, TheLedgerHasNoGridAndIsNotWhatALoopLogs) {
  Session session = open("{scalars: 10 steps}");
  const std::uint64_t loss = session.name("loss", scalar_info());
  NameInfo info = scalar_info();
  info.role = core::Role::ledger;
  const std::uint64_t pairs = session.name("ledger/cross_entropy/pairs", info);
  for (int step = 0; step < 4; ++step) {
    session.scalars(std::array{loss, pairs}, std::array{1.0, 2.0});
    if (step < 3) session.step_next(std::array{ScalarValue{pairs, 3.0}}, {}, false, 1);
  }
  session.flush();
  std::map<std::uint64_t, std::vector<std::int64_t>> seen;
  for (const KeptFrame& frame : Drained(*queue_).of(FrameKind::scalar)) {
    for (std::size_t i = 0; i < frame.view().rows(); ++i) {
      seen[frame.view().scalar(i).name].push_back(frame.view().scalar(i).step);
    }
  }
  EXPECT_THAT(seen[loss], ElementsAre(0));
  EXPECT_THAT(seen[pairs], ElementsAre(0, 0, 1, 1, 2, 2, 3));
  const std::string counters = core::to_json(session.counters());
  EXPECT_NE(counters.find("\"ledger_scalars_total\":7"), std::string::npos) << counters;
  EXPECT_NE(counters.find("\"scalars_total\":8"), std::string::npos) << counters;
  EXPECT_NE(counters.find("\"scalars_since_step\":0"), std::string::npos) << counters;
}

TEST_F(SessionTest, UnknownIdsAreCountedNotSent) {
  Session session = open();
  session.scalars(std::array<std::uint64_t, 1>{7}, std::array{1.0});
  const std::vector<float> values{1};
  EXPECT_EQ(session.tensors(std::array{lend(9, values)}), 0U);
  EXPECT_NE(core::to_json(session.counters()).find("\"errors_total\":2"), std::string::npos);
}

TEST_F(SessionTest, SaysWhichTensorsAreDueForStatisticsFromElsewhere) {
  Session session = open(
      "{every: 1 step, collections: {gradients: {every: 2 steps}, weights: {every: 3 steps}}}");
  const std::uint64_t gradient = session.name("gradient/w", tensor_info());
  NameInfo weights = tensor_info();
  weights.role = core::Role::weight;
  const std::uint64_t weight = session.name("w", weights);
  const auto due = [&](std::uint32_t ahead) {
    std::array<std::uint8_t, 3> out{9, 9, 9};
    session.due_of(std::array<std::uint64_t, 3>{gradient, weight, 77}, ahead, out);
    return out;
  };
  EXPECT_THAT(due(0), ElementsAre(1, 1, 0));
  EXPECT_THAT(due(1), ElementsAre(0, 0, 0));
  EXPECT_THAT(due(2), ElementsAre(1, 0, 0));
  session.step_end(false, 1);
  EXPECT_THAT(due(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(due(2), ElementsAre(0, 1, 0));
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
  const core::ValueMap thinned{{"gradients", std::int64_t{2}}};
  EXPECT_EQ(drained.lifecycles(LifecycleEvent::applied)[0].left_out, core::Value(thinned));
  EXPECT_NE(core::to_json(session.counters()).find(R"("thinned":{"gradients":)"),
            std::string::npos);
}

TEST_F(SessionTest, LabelsKeepTheirGridWhateverGradientsCost) {
  Session session = open("{every: 1 step, collections: [gradients, labels]}");
  const std::uint64_t gradient = session.name("gradient/w", tensor_info());
  NameInfo info = tensor_info();
  info.role = core::Role::label;
  const std::uint64_t label = session.name("targets", info);
  const std::vector<float> values{1};
  int gradients = 0;
  int labels = 0;
  for (int step = 0; step < 200; ++step) {
    std::vector<std::uint8_t> due(2);
    session.due_of(std::array<std::uint64_t, 2>{gradient, label}, 0, due);
    if (due[0] != 0 && session.due(0)) {
      clock_.advance(milliseconds(5));
      gradients += static_cast<int>(session.tensors(std::array{lend(gradient, values)}));
    }
    if (due[1] != 0) labels += static_cast<int>(session.tensors(std::array{lend(label, values)}));
    clock_.advance(milliseconds(10));
    session.step_end(false, 1);
  }
  EXPECT_EQ(labels, 200);
  EXPECT_LT(gradients, 60);
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
}  // namespace tocsin::hook
