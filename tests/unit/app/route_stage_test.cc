// The stage that decides: what the loop around it may rely on.
#include "app/stages/route.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/log/logging.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"
#include "tests/simulation/clock.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

class RouteStageTest : public testing::Test {
 protected:
  RouteStageTest() {
    RouteOptions options;
    options.route.receivers = {"stop"};
    options.rule_actions = {{"exploding_tensor", {"stop"}}};
    routing::Integration stop;
    stop.id = "stop/stop_training/0";
    stop.receiver = "stop";
    stop.type = "stop_training";
    options.integrations = {stop};
    stage_ = std::make_unique<RouteStage>(
        std::move(options), nullptr,
        [](const core::Notification&) { return core::Result<std::string>("{}"); }, nullptr, *log_,
        telemetry_);
  }

  [[nodiscard]] Instant at(core::Duration since_start) const {
    return {core::wall_time(1767323045678000000) + since_start, 1h + since_start};
  }

  static core::Issue nan_issue() {
    core::Issue issue;
    issue.rule = "exploding_tensor";
    issue.status = core::IssueStatus::firing;
    issue.event_id = "evt_1";
    issue.run.uid = core::run_uid_v5("route");
    issue.run.attempt = 1;
    issue.labels.set("rule", "exploding_tensor");
    issue.labels.set("run", core::to_text(issue.run.uid));
    return issue;
  }

  std::optional<Refusal> hand_over(const core::Issue& issue, const Instant& now) {
    const auto record = ingest::encode_issue(issue);
    return stage_->handle(ingest::fixture::view_of(record), {now, false});
  }

  static std::size_t notifications(const StageOutput& output) {
    return static_cast<std::size_t>(
        std::count_if(output.records.begin(), output.records.end(),
                      [](const auto& one) { return one.record.topic == "router-outbox"; }));
  }

  simulation::SimulatedClock clock_;
  std::unique_ptr<core::Log> log_ = make_log({"error", "logfmt"}, clock_);
  core::NullTelemetry telemetry_;
  std::unique_ptr<RouteStage> stage_;
};

// A loop ticks ten times a second: whoever is to be told at once must not wait for that.
TEST_F(RouteStageTest, WhatIsDueAtOnceIsToldBeforeTheNextTick) {
  const auto opened = stage_->open(at(0s));
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(stage_->restored(0, {}, at(0s)));
  (void)stage_->tick({at(0s), [](std::int32_t) { return true; },
                      [](std::int32_t) { return std::optional<core::Duration>(); }});
  ASSERT_EQ(notifications(stage_->take(at(1ms))), 0U);

  const auto refusal = hand_over(nan_issue(), at(2ms));
  ASSERT_FALSE(refusal) << refusal->detail;
  EXPECT_EQ(notifications(stage_->take(at(3ms))), 1U);
}

}  // namespace
}  // namespace tocsin::app
