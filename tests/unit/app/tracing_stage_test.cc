// From records of the router to spans: their order, a collector that is away, and what waits.
#include "app/stages/tracing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "app/serve/metrics.h"
#include "core/log.h"
#include "core/mutex.h"
#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const core::WallTime kTold = core::wall_time(1767323045678000000);

/// Names of the spans that came, by the test's answers.
class Collector {
 public:
  actions::SpanAnswer take(std::span<const actions::Span> spans) {
    const core::MutexLock lock(mutex_);
    ++parcels_;
    if (next_.taken == actions::SpansTaken::all) {
      for (const actions::Span& one : spans) names_.push_back(one.name);
    }
    return next_;
  }
  void answer(actions::SpansTaken taken) {
    const core::MutexLock lock(mutex_);
    next_ = {taken, "said by the collector"};
  }
  std::vector<std::string> names() {
    const core::MutexLock lock(mutex_);
    return names_;
  }
  int parcels() {
    const core::MutexLock lock(mutex_);
    return parcels_;
  }

 private:
  core::Mutex mutex_;
  actions::SpanAnswer next_ GUARDED_BY(mutex_);
  std::vector<std::string> names_ GUARDED_BY(mutex_);
  int parcels_ GUARDED_BY(mutex_) = 0;
};

class CollectorLine final : public actions::SpanExporter {
 public:
  explicit CollectorLine(Collector& to) : to_(to) {}
  actions::SpanAnswer send(std::span<const actions::Span> spans) override {
    return to_.take(spans);
  }

 private:
  Collector& to_;
};

class TracingStageTest : public testing::Test {
 protected:
  TracingStageTest() { EXPECT_TRUE(stage_.open(at(0s))); }
  static Instant at(core::Duration since) { return {kTold + since, 1h + since}; }
  static core::Notification message(const std::string& id) {
    core::Notification out;
    out.notification_id = id;
    out.receiver = "oncall";
    out.integration = "oncall/webhook";
    out.decided_at = kTold;
    core::Issue issue;
    issue.rule = "loss_not_decreasing";
    issue.event_id = "iss_" + id;
    issue.labels = {{"rule", issue.rule}, {"severity", "warning"}};
    issue.evaluated_at = issue.time = kTold - 1s;
    out.issues.push_back({core::issue_key(issue.labels), 1, issue, std::nullopt});
    return out;
  }
  void tell(const std::string& id) { read(ingest::encode_notification(message(id)), at(0s)); }
  void deliver(const std::string& id, core::Duration since = 0s) {
    core::Delivery delivery;
    delivery.notification_id = id;
    delivery.type = "webhook";
    delivery.issues = core::listing_of(message(id)).issues;
    delivery.stages.sent = kTold;
    delivery.stages.answered = kTold + 1ms;
    read(ingest::encode_delivery(delivery, kTold, "c1"), at(since));
  }
  void read(const core::OutRecord& record, const Instant& now) {
    EXPECT_FALSE(stage_.handle(ingest::fixture::view_of(record), {now, false}));
  }
  std::optional<core::Duration> tick(core::Duration since) {
    const auto live = [](std::int32_t) { return true; };
    const auto read_until = [](std::int32_t) { return std::optional<core::Duration>(); };
    return stage_.tick({at(since), live, read_until});
  }
  /// Ticks at this moment until so many parcels have come, and their last answer was taken.
  void tick_until(int parcels, core::Duration since) {
    for (int i = 0; i < 2000 && collector_.parcels() < parcels; ++i) {
      tick(since);
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_EQ(collector_.parcels(), parcels);
    std::this_thread::sleep_for(20ms);
    tick(since);
  }

  Collector collector_;
  PrometheusTelemetry telemetry_;
  core::NullLog log_;
  TracingStage stage_{
      [this] { return std::make_unique<SpanCourier>(std::make_unique<CollectorLine>(collector_)); },
      log_, telemetry_};
};

TEST_F(TracingStageTest, SendsTheEventTheMessageAndTheAttempt) {
  tell("ntf_1");
  deliver("ntf_1");
  tick_until(1, 0s);
  EXPECT_THAT(collector_.names(),
              ElementsAre("loss_not_decreasing fired", "tell oncall", "send webhook"));
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_router_spans_total{result=\"sent\"} 3\n"));
}

TEST_F(TracingStageTest, AnAttemptThatIsReadFirstWaitsForItsMessage) {
  deliver("ntf_1");
  tick(1s);
  EXPECT_EQ(collector_.parcels(), 0);
  tell("ntf_1");
  tick_until(1, 2s);
  EXPECT_THAT(collector_.names(),
              ElementsAre("loss_not_decreasing fired", "tell oncall", "send webhook"));
}

TEST_F(TracingStageTest, AnAttemptWhoseMessageNeverComesWaitsNotForEver) {
  deliver("ntf_1");
  tick_until(1, 6s);
  EXPECT_THAT(collector_.names(), ElementsAre("send webhook"));
}

TEST_F(TracingStageTest, SpansWaitForACollectorThatIsAway) {
  collector_.answer(actions::SpansTaken::later);
  tell("ntf_1");
  tick_until(1, 0s);
  const auto next = tick(100ms);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, at(100ms).steady);
  EXPECT_EQ(collector_.parcels(), 1);
  collector_.answer(actions::SpansTaken::all);
  tick_until(2, 2s);
  EXPECT_THAT(collector_.names(), ElementsAre("loss_not_decreasing fired", "tell oncall"));
}

TEST_F(TracingStageTest, WhatIsRefusedIsCountedAndNotSentAgain) {
  collector_.answer(actions::SpansTaken::refused);
  tell("ntf_1");
  tick_until(1, 0s);
  collector_.answer(actions::SpansTaken::all);
  tick(10s);
  EXPECT_THAT(collector_.names(), IsEmpty());
  EXPECT_THAT(telemetry_.render(), HasSubstr("tocsin_router_spans_total{result=\"dropped\"} 2\n"));
}

TEST_F(TracingStageTest, BeyondWhatMayWaitTheOldestGo) {
  collector_.answer(actions::SpansTaken::later);
  tell("first");
  tick_until(1, 0s);
  for (int i = 0; i < 12'000; ++i) tell("ntf_" + std::to_string(i));
  EXPECT_THAT(telemetry_.render(),
              HasSubstr("tocsin_router_spans_total{result=\"dropped\"} 4002\n"));
}

TEST_F(TracingStageTest, NothingIsSentAfterTheEnd) {
  tell("ntf_1");
  stage_.finish(at(0s));
  tell("ntf_2");
  tick(1s);
  EXPECT_EQ(collector_.parcels(), 0);
  EXPECT_TRUE(stage_.open(at(2s)));
  tell("ntf_3");
  tick_until(1, 2s);
  EXPECT_THAT(collector_.names(), ElementsAre("loss_not_decreasing fired", "tell oncall"));
}

TEST_F(TracingStageTest, WhatIsNoRecordOfOursIsLeftToOthers) {
  core::OutRecord odd;
  odd.topic = "router-outbox";
  odd.key = "k";
  odd.value = "{\"nonsense\":";
  read(odd, at(0s));
  tick(0s);
  EXPECT_EQ(collector_.parcels(), 0);
}

}  // namespace
}  // namespace tocsin::app
