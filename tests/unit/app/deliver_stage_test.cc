// The stage that delivers, in its loop on the broker in memory: what it knows of the past.
#include "app/stages/deliver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "app/loop/topic_loop.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/clock.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::DeliveryState;
using simulation::MemoryBroker;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr core::Duration kDay = 24h;

/// Every call is answered at once, and written down.
class Recorder final : public actions::Caller {
 public:
  explicit Recorder(std::vector<std::string>& called) : called_(called) {}
  void submit(actions::Attempt attempt) override {
    called_.push_back(attempt.notification->notification_id);
    core::AttemptOutcome outcome;
    outcome.outcome = core::OutcomeClass::delivered;
    done_.push_back({std::move(attempt), outcome});
  }
  std::vector<actions::CallResult> take() override { return std::exchange(done_, {}); }
  [[nodiscard]] std::size_t in_flight() const override { return done_.size(); }

 private:
  std::vector<std::string>& called_;
  std::vector<actions::CallResult> done_;
};

class DeliverStageTest : public testing::Test {
 protected:
  DeliverStageTest() : broker_(options()) {
    lease_ = std::make_unique<Leadership>(std::move(*broker_.lease("router-lease")), clock_, log_,
                                          telemetry_);
    lease_->step(0ms);
  }
  simulation::BrokerOptions options() {
    simulation::BrokerOptions options;
    options.topics = MemoryBroker::one_partition();
    options.clock = &clock_;
    return options;
  }
  /// A process that starts, works for some seconds and ends; how often its stage was opened.
  int life() {
    DeliverOptions options;
    actions::CommonConfig common;
    common.max_age = 1000 * kDay;
    options.lanes = {{"oncall/webhook", common, {}, nullptr, "c1"}};
    DeliverStage stage(
        options, [this] { return ++opened_, std::make_unique<Recorder>(called_); },
        [] { return true; }, [] { return 0.5; }, log_, telemetry_);
    TopicLoop loop(stage,
                   {&broker_, &clock_, &log_, &telemetry_, inline_committer(), lease_.get()});
    opened_ = 0;
    for (int i = 0; i < 100; ++i) {
      lease_->step(0ms);
      loop.step(0ms);
      clock_.advance(50ms);
    }
    EXPECT_TRUE(loop.ready());
    loop.close();
    return opened_;
  }
  core::Notification notification(const std::string& id) {
    core::Notification out;
    out.notification_id = id;
    out.integration = "oncall/webhook";
    out.group_key = id;
    out.decided_at = clock_.now();
    return out;
  }
  void decide(const std::string& id) {
    auto record = ingest::encode_notification(notification(id));
    record.timestamp = core::nanoseconds(clock_.now());
    broker_.append(std::move(record));
  }
  void was_delivered(const std::string& id) {
    core::Delivery delivery;
    delivery.notification_id = id;
    delivery.integration = "oncall/webhook";
    delivery.group_key = id;
    delivery.state = DeliveryState::delivered;
    auto record = ingest::encode_delivery(delivery, clock_.now(), "");
    record.timestamp = core::nanoseconds(clock_.now());
    broker_.append(std::move(record));
  }

  simulation::SimulatedClock clock_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  MemoryBroker broker_;
  std::unique_ptr<Leadership> lease_;
  std::vector<std::string> called_;
  int opened_ = 0;
};

TEST_F(DeliverStageTest, TheHistoryReachesBehindWhateverTheOutboxKeeps) {
  for (const auto& topic : ingest::topic_plan({})) {
    if (topic.name != "router-outbox") continue;
    for (const auto& [name, value] : topic.settings) {
      if (name != "retention.ms") continue;
      EXPECT_LE(std::chrono::milliseconds(std::stoll(value)) + DeliverStage::kClockDoubt,
                DeliverStage::kHistory);
    }
  }
}

TEST_F(DeliverStageTest, WhatWasDeliveredBeforeARestartIsNotSentAgain) {
  decide("a");
  was_delivered("a");  // and then it was killed: the position stands before "a"
  clock_.advance(13 * kDay);
  decide("b");
  EXPECT_EQ(life(), 1);
  EXPECT_THAT(called_, ElementsAre("b"));
}

// An outbox that keeps longer than it should, or a clock that is wrong by weeks.
TEST_F(DeliverStageTest, WhatIsOlderThanTheHistoryHasTheWholeLogRead) {
  decide("a");
  was_delivered("a");
  decide("b");
  clock_.advance(60 * kDay);
  decide("c");
  EXPECT_EQ(life(), 2);
  EXPECT_THAT(called_, ElementsAre("b", "c"));
  called_.clear();
  EXPECT_EQ(life(), 1);  // the position is behind all of it
  EXPECT_THAT(called_, IsEmpty());
}

}  // namespace
}  // namespace tocsin::app
