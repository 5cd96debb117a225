// The node agent: what people ask of it while it runs, what it answers, and what stays after a restart.
#include "app/stages/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/view/agent_order.h"
#include "core/json.h"
#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr core::WallTime kAgentStart{std::chrono::seconds(1'767'312'000)};

struct AgentClock final : core::Clock {
  core::WallTime now() const override { return kAgentStart; }
  core::Duration monotonic() const override { return {}; }
};

class CollectStageTest : public testing::Test {
 protected:
  CollectStageTest() { begin(0s); }
  void begin(core::Duration since) {
    CollectOptions options;
    options.collect.interval = 1s;
    options.collect.collectors = {"memory"};
    options.collect.proc_root = "tests/data/proc/vm_2cpu_linux_6_18/first";
    options.host = "n7";
    stage_ = std::make_unique<CollectStage>(options, clock_, log_, telemetry_);
    ASSERT_TRUE(stage_->open(at(since)));
    stage_->started(0, at(since));
  }
  static Instant at(core::Duration since) { return {kAgentStart + since, 1h + since}; }
  static core::OutRecord asked(const std::string& json, core::Duration when,
                               const std::string& node = "n7", std::uint64_t revision = 1) {
    const auto order = read_agent_order(json);
    EXPECT_TRUE(order) << order.error().message;
    return agent_record(agent_command(*order, node, "ann", revision, kAgentStart + when), node,
                        "/default/api");
  }
  std::optional<Refusal> tell(const core::OutRecord& record) {
    return stage_->handle(ingest::fixture::view_of(record), {at(0s), false});
  }
  // "phase: reason" of answers, and how many sweeps were sent.
  struct Gave {
    std::vector<std::string> answers;
    std::size_t frames = 0;
  };
  Gave tick(core::Duration since, bool live = true) {
    next_ = stage_->tick({at(since), [&](std::int32_t) { return live; },
                          [](std::int32_t) { return std::optional<core::Duration>(); }});
    Gave out;
    for (const StageRecord& one : stage_->take(at(since)).records) {
      if (one.record.topic != "acks") {
        ++out.frames;
        continue;
      }
      EXPECT_EQ(one.record.key, "node:n7");
      const auto ack = ingest::decode_ack(ingest::fixture::view_of(one.record));
      if (!ack) {
        ADD_FAILURE() << ack.error().message;
        continue;
      }
      EXPECT_TRUE(ack->run.nil());
      EXPECT_EQ(ack->node, "n7");
      out.answers.push_back(ack->phase + ": " + ack->reason);
    }
    return out;
  }
  [[nodiscard]] core::Duration until_next(core::Duration since) const {
    return next_.value_or(core::Duration{}) - at(since).steady;
  }

  AgentClock clock_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<CollectStage> stage_;
  std::optional<core::Duration> next_;
};

TEST_F(CollectStageTest, SamplesAsItWasAskedToAndSaysSo) {
  tick(0s);
  EXPECT_EQ(until_next(0s), 1s);
  EXPECT_FALSE(tell(asked(R"({"interval":"100ms"})", 100ms)));
  EXPECT_THAT(tick(200ms).answers, ElementsAre("applied: samples memory every 100ms"));
  EXPECT_EQ(until_next(200ms), 100ms);
  EXPECT_GT(tick(300ms).frames, 0U);
  EXPECT_EQ(until_next(300ms), 100ms);
  EXPECT_THAT(tick(400ms).answers, IsEmpty()) << "said once";
  EXPECT_FALSE(tell(asked(R"({"interval":"30s","collectors":["memory"]})", 450ms)));
  EXPECT_THAT(tick(500ms).answers, ElementsAre("applied: samples memory every 30s"));
  EXPECT_EQ(until_next(500ms), 30s);
}

TEST_F(CollectStageTest, GoesBackToItsFileOnceItIsTakenBack) {
  EXPECT_FALSE(tell(asked(R"({"interval":"100ms"})", 0s)));
  tick(0s);
  EXPECT_EQ(until_next(0s), 100ms);
  EXPECT_FALSE(tell(agent_tombstone("n7")));
  EXPECT_THAT(tick(100ms).answers, ElementsAre("ended: withdrawn; samples memory every 1s"));
  EXPECT_EQ(until_next(100ms), 1s);
  EXPECT_FALSE(tell(agent_tombstone("n7")));
  EXPECT_THAT(tick(200ms).answers, IsEmpty()) << "nothing was asked";
}

TEST_F(CollectStageTest, WhatWasAskedForAWhileEnds) {
  EXPECT_FALSE(tell(asked(R"({"interval":"100ms","for":"10s"})", 0s)));
  tick(0s);
  EXPECT_EQ(until_next(0s), 100ms);
  EXPECT_THAT(tick(9999ms).answers, IsEmpty());
  EXPECT_THAT(tick(10s).answers, ElementsAre("ended: its time is over; samples memory every 1s"));
  EXPECT_EQ(until_next(10s), 1s);
  begin(20s);
  EXPECT_FALSE(tell(asked(R"({"interval":"100ms","for":"10s"})", 0s)));
  tick(20s);
  EXPECT_EQ(until_next(20s), 1s) << "it was over before the agent began";
}

TEST_F(CollectStageTest, ANewAgentBeginsWithWhatWasAskedLast) {
  const std::vector<core::OutRecord> topic{asked(R"({"interval":"100ms"})", 0s),
                                           asked(R"({"interval":"200ms"})", 1s, "n7", 2),
                                           asked(R"({"interval":"5s"})", 2s, "n8")};
  for (const auto& record : topic) EXPECT_FALSE(tell(record));
  EXPECT_THAT(tick(0s, false).answers, IsEmpty()) << "there may be newer ones";
  EXPECT_EQ(until_next(0s), 1s);
  EXPECT_THAT(tick(100ms).answers, ElementsAre("applied: samples memory every 200ms"));
  EXPECT_EQ(until_next(100ms), 100ms) << "200 ms after the sweep before, which was at 0 s";
  // The loop starts over, as after an error: the same stands, and is said again.
  ASSERT_TRUE(stage_->open(at(200ms)));
  stage_->started(0, at(200ms));
  for (const auto& record : topic) EXPECT_FALSE(tell(record));
  EXPECT_THAT(tick(300ms).answers, ElementsAre("applied: samples memory every 200ms"));
  EXPECT_EQ(until_next(300ms), 100ms) << "sampling went on: the next sweep is at 400 ms";
}

TEST_F(CollectStageTest, WhatIsWrittenAgainIsAnsweredAndChangesNothing) {
  const auto record = asked(R"({"interval":"200ms"})", 0s);
  EXPECT_FALSE(tell(record));
  tick(0s);
  EXPECT_FALSE(tell(record));
  const auto again = tick(100ms);
  EXPECT_THAT(again.answers, ElementsAre("applied: samples memory every 200ms"));
  EXPECT_EQ(again.frames, 0U) << "a collector that begins anew sweeps at once";
}

// Another program, or another version of ours, may write what this one does not know.
TEST_F(CollectStageTest, SaysWhatItCannotDo) {
  core::Command command = agent_command({}, "n7", "ann", 1, kAgentStart);
  command.args = core::ValueMap{{"collectors", core::ValueList{"memry"}}};
  EXPECT_FALSE(tell(asked(R"({"interval":"100ms"})", 0s)));
  tick(0s);
  EXPECT_FALSE(tell(agent_record(command, "n7", "/x")));
  EXPECT_THAT(tick(100ms).answers,
              ElementsAre("refused: collectors: no collector is called \"memry\"; did you mean "
                          "\"memory\"?; samples memory every 1s"));
  EXPECT_EQ(until_next(100ms), 1s) << "what was asked before is not in the topic any more";
  command.args = core::ValueMap{{"interval", "5ms"}};
  EXPECT_FALSE(tell(agent_record(command, "n7", "/x")));
  EXPECT_THAT(tick(200ms).answers, ElementsAre(HasSubstr("expected a time from 100ms to 1m")));
}

TEST_F(CollectStageTest, WhatIsForOthersIsPassedOver) {
  core::OutRecord broken = asked(R"({"interval":"100ms"})", 0s, "n8");
  broken.value = "{";
  EXPECT_FALSE(tell(broken)) << "whoever reads it for n8 says that it is broken";
  broken.key = "node:n7/agent";
  const auto refused = tell(broken);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, "bad_command");
  EXPECT_THAT(tick(0s).answers, IsEmpty());
}

}  // namespace
}  // namespace tocsin::app
