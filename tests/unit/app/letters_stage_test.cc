// How many dead letters are open: what counts, what a person's act takes away, and what age does.
#include "app/stages/letters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/serve/metrics.h"
#include "app/view/dead_letter_records.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LettersStageTest : public testing::Test {
 protected:
  LettersStageTest() { EXPECT_TRUE(stage_.open(at(0s))); }
  static Instant at(core::Duration since) {
    return {core::wall_time(1767323045678000000) + since, 1h + since};
  }
  void died(const std::string& id, const std::string& integration, core::Duration since = 0s) {
    core::Notification notification;
    notification.notification_id = id;
    notification.integration = integration;
    core::Delivery end;
    end.state = core::DeliveryState::dead;
    end.outcome = core::OutcomeClass::configuration;
    read(dead_letter_record(notification, end, at(since).wall));
  }
  void act(const std::string& id, const std::string& what) {
    read(letter_act_record(id, "chat", {what, "ada", "", what == "replay" ? "rpl_1" : ""}));
  }
  void read(core::OutRecord record) {
    if (record.value) record.timestamp = std::max(record.timestamp, std::int64_t{1});
    core::RecordView view = ingest::fixture::view_of(record);
    view.timestamp = record.timestamp;
    EXPECT_FALSE(stage_.handle(view, {at(0s), false}));
  }
  void expect(const std::string& integration, int number) {
    EXPECT_THAT(telemetry_.render(),
                HasSubstr("tocsin_router_dead_letters{integration=\"" + integration +
                          "\",reason=\"configuration\"} " + std::to_string(number) + "\n"));
  }
  void tick(core::Duration since) {
    const auto live = [](std::int32_t) { return true; };
    const auto read_until = [](std::int32_t) { return std::optional<core::Duration>(); };
    stage_.tick({at(since), live, read_until});
  }

  PrometheusTelemetry telemetry_;
  LettersStage stage_{24h, telemetry_};
};

TEST_F(LettersStageTest, CountsByIntegrationWhatNobodyHasActedOn) {
  died("ntf_1", "chat");
  died("ntf_2", "chat");
  died("ntf_3", "mail");
  expect("chat", 2);
  expect("mail", 1);
  act("ntf_1", "discard");
  expect("chat", 1);
  act("ntf_1", "discard");
  act("ntf_unknown", "discard");
  expect("chat", 1);
}

TEST_F(LettersStageTest, AReplayThatDiesIsOneAgain) {
  died("ntf_1", "chat");
  act("ntf_1", "replay");
  expect("chat", 0);
  died("ntf_1", "chat", 1h);
  expect("chat", 1);
  died("ntf_1", "chat", 1h);
  expect("chat", 1);
}

TEST_F(LettersStageTest, WhatTheTopicKeepsNoLongerDoesNotCount) {
  died("ntf_1", "chat");
  died("ntf_2", "chat", 2h);
  died("ntf_1", "chat", 3h);
  tick(24h);
  expect("chat", 2);
  tick(26h);
  expect("chat", 1);
  tick(27h);
  expect("chat", 0);
}

TEST_F(LettersStageTest, WhoLeadsNoLongerSaysNothing) {
  died("ntf_1", "chat");
  stage_.finish(at(0s));
  expect("chat", 0);
  EXPECT_TRUE(stage_.open(at(0s)));
  died("ntf_1", "chat");
  expect("chat", 1);
}

}  // namespace
}  // namespace tocsin::app
