#include "collectors/hook/publish/announcer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {
namespace {

using core::FrameKind;
using core::LifecycleEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;

class AnnouncerTest : public ::testing::Test {
 protected:
  static SessionOptions make_options() {
    SessionOptions options;
    options.identity = make_identity();
    options.incarnation = 42;
    return options;
  }
  std::vector<LifecycleEvent> events() {
    std::vector<LifecycleEvent> out;
    for (const KeptFrame& frame : Drained(queue_).of(FrameKind::lifecycle)) {
      out.push_back(frame.lifecycle().event);
    }
    return out;
  }

  ManualClock clock_;
  SendQueue queue_{1 << 20};
  SessionOptions options_ = make_options();
  CapturePlan plan_ = make_plan();
  StepCounter steps_{Moment{}};
  NameTable names_{"worker_0", ""};
  FrameBatcher frames_{options_.identity, 42, names_, steps_, clock_, queue_};
  Announcer announcer_{options_, plan_, frames_, steps_, clock_, queue_};
};

TEST_F(AnnouncerTest, StartIsSaidOnceAndAfterTheNames) {
  announcer_.ensure_started();
  announcer_.ensure_started();
  const Drained drained(queue_);
  ASSERT_EQ(drained.frames.size(), 2U);
  EXPECT_EQ(drained.frames[0].view().header().kind, FrameKind::dictionary);
  EXPECT_EQ(drained.frames[1].lifecycle().event, LifecycleEvent::start);
  EXPECT_EQ(drained.frames[1].lifecycle().worker_name, "worker_0");
}

TEST_F(AnnouncerTest, AWorkerThatSaysNothingStartsAfterAMomentAndBeatsFromThenOn) {
  EXPECT_EQ(announcer_.tick(), milliseconds(200));
  clock_.advance(milliseconds(200));
  announcer_.tick();
  EXPECT_THAT(events(), ::testing::ElementsAre(LifecycleEvent::start));
  clock_.advance(seconds(5));
  EXPECT_EQ(announcer_.tick(), Announcer::kHeartbeat);
  EXPECT_THAT(events(), ::testing::ElementsAre(LifecycleEvent::heartbeat));
}

TEST_F(AnnouncerTest, WhileTrainingGoesOnItLooksOften) {
  announcer_.ensure_started();
  steps_.next({});
  EXPECT_EQ(announcer_.tick(), FrameBatcher::kPace);
  EXPECT_GT(announcer_.tick(), FrameBatcher::kPace);
}

TEST_F(AnnouncerTest, LostRecordsAreAGapAndWhatEveryReaderNeedsAgain) {
  announcer_.delivery_failed("too early to have lost anything");
  EXPECT_TRUE(events().empty());
  announcer_.ensure_started();
  Drained before(queue_);
  announcer_.delivery_failed("timed out");
  const Drained drained(queue_);
  ASSERT_EQ(drained.frames.size(), 3U);
  EXPECT_EQ(drained.frames[0].lifecycle().reason, "delivery_failed: timed out");
  EXPECT_EQ(drained.frames[1].view().header().kind, FrameKind::dictionary);
  EXPECT_EQ(drained.frames[2].lifecycle().event, LifecycleEvent::start);
}

TEST_F(AnnouncerTest, AnAppliedCommandIsToldInTheStreamARefusedOneOnlyAnswered) {
  core::Ack ack;
  ack.command_id = "cmd_1";
  ack.action = "capture";
  ack.phase = "refused";
  announcer_.answered(ack);
  const Drained refused(queue_);
  EXPECT_TRUE(refused.frames.empty());
  ASSERT_EQ(refused.others.size(), 1U);
  ack.phase = "applied";
  ack.effective_step = 7;
  announcer_.answered(ack);
  const Drained applied(queue_);
  ASSERT_EQ(applied.lifecycles(LifecycleEvent::applied).size(), 1U);
  EXPECT_EQ(applied.lifecycles(LifecycleEvent::applied)[0].effective_step, 7);
  EXPECT_EQ(applied.others.size(), 1U);
}

TEST_F(AnnouncerTest, NothingIsSaidAfterTheEnd) {
  core::Lifecycle end;
  end.event = LifecycleEvent::end;
  end.outcome = "completed";
  announcer_.end(end);
  EXPECT_TRUE(announcer_.ended());
  EXPECT_THAT(events(), ::testing::ElementsAre(LifecycleEvent::start, LifecycleEvent::end));
  clock_.advance(seconds(60));
  announcer_.tick();
  announcer_.delivery_failed("late");
  EXPECT_TRUE(Drained(queue_).frames.empty());
}

TEST_F(AnnouncerTest, TheLoopsOwnWordIsAHeartbeatOfItsOwn) {
  announcer_.progress(600);
  const auto lives = Drained(queue_).of(FrameKind::lifecycle);
  ASSERT_EQ(lives.size(), 2U);  // start
  EXPECT_EQ(lives[1].lifecycle().event, LifecycleEvent::heartbeat);
  EXPECT_EQ(lives[1].lifecycle().expect_next_in, 600);
  announcer_.progress(0);
  EXPECT_EQ(Drained(queue_).of(FrameKind::lifecycle).at(0).lifecycle().expect_next_in, 0);
}

TEST_F(AnnouncerTest, AStepThatNobodyEndsIsAPreflightRecordOnce) {
  announcer_.ensure_started();
  NameInfo info;
  info.type = core::DictionaryType::scalar;
  const Name& loss = *names_.find(names_.put("loss", info, plan_));
  std::vector<std::string> found;
  for (int look = 0; look < 4; ++look) {
    for (int value = 0; value < 60; ++value) frames_.add_scalar(loss, 1);
    frames_.flush();
    clock_.advance(Announcer::kHeartbeat);
    announcer_.tick();
    for (const auto& one : Drained(queue_).lifecycles(LifecycleEvent::preflight)) {
      found.push_back(core::to_json(one.findings));
    }
  }
  EXPECT_THAT(found, ::testing::ElementsAre(R"([{"kind":"no_step_end","count":120}])"));
  EXPECT_EQ(announcer_.wrong_calls(), "no_step_end");
}

TEST(Cadence, ValuesOfAStepThatNobodyEndsAreToldOnce) {
  Cadence cadence;
  EXPECT_TRUE(cadence.look(60, 0, 5).kind.empty());  // a burst
  const auto found = cadence.look(120, 0, 5);
  EXPECT_EQ(found.kind, "no_step_end");
  EXPECT_EQ(found.count, 120);
  EXPECT_TRUE(cadence.look(240, 0, 5).kind.empty());
}

TEST(Cadence, ALongStepAndABurstOfValuesAreNothingWrong) {
  Cadence cadence;
  EXPECT_TRUE(cadence.look(1000, 0, 5).kind.empty());
  for (int look = 0; look < 100; ++look) {
    EXPECT_TRUE(cadence.look(1000, 0, 5).kind.empty());  // nothing more is said in it
  }
  EXPECT_TRUE(cadence.look(1100, 1, 5).kind.empty());
  for (int step = 2; step < 100; ++step) {  // a step of five seconds with many values
    EXPECT_TRUE(cadence.look(1100 + 100U * static_cast<unsigned>(step), step, 5).kind.empty());
  }
}

TEST(Cadence, ThousandsOfEmptyStepsASecondAreToldOnce) {
  Cadence cadence;
  EXPECT_TRUE(cadence.look(0, 10'000, 5).kind.empty());
  const auto found = cadence.look(0, 20'000, 5);
  EXPECT_EQ(found.kind, "empty_steps");
  EXPECT_EQ(found.count, 2'000);
  EXPECT_TRUE(cadence.look(0, 40'000, 5).kind.empty());
}

TEST(Cadence, AFastLoopThatSaysSomethingIsNothingWrong) {
  Cadence cadence;
  std::uint64_t logged = 0;
  for (std::int64_t steps = 20'000; steps < 400'000; steps += 20'000) {
    logged += 20'000;  // each step its loss
    EXPECT_TRUE(cadence.look(logged, steps, 5).kind.empty());
  }
}

}  // namespace
}  // namespace tocsin::hook
