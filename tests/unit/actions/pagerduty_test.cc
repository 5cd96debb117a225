#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using nlohmann::json;

constexpr char kPagerDuty[] = "{routing_key: 0123456789abcdef0123456789abcdef}";

struct PagerBench : Workbench {
  std::unique_ptr<core::Action> action = make("pagerduty", kPagerDuty);
  json event(core::Notification notification) {
    notification.group_hash = "a1b2";
    EXPECT_EQ(deliver(*action, std::move(notification)).outcome, core::OutcomeClass::delivered);
    return json::parse(http.requests.back().body);
  }
  core::AttemptOutcome answered(int status, const std::string& body) {
    http.answers.push_back({HttpFailure::none, "", {status, {}, body}});
    return deliver(*action, sample_notification());
  }
};

TEST(PagerDuty, TriggersWhileSomethingFiresAndResolvesTheSameKey) {
  PagerBench bench;
  const json open = bench.event(sample_notification());
  EXPECT_EQ(bench.http.requests[0].url, "https://events.pagerduty.com/v2/enqueue");
  EXPECT_EQ(open["routing_key"], "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(open["event_action"], "trigger");
  EXPECT_EQ(open["payload"]["severity"], "error");
  EXPECT_EQ(open["payload"]["source"], "digits");
  EXPECT_EQ(open["payload"]["class"], "exploding_tensor");
  EXPECT_EQ(open["payload"]["timestamp"], "2026-01-02T03:04:04.678Z");
  EXPECT_THAT(std::string(open["payload"]["summary"]), HasSubstr("digits: gradient/conv1.weight"));
  EXPECT_EQ(open["payload"]["custom_details"]["Where"], "gradient/conv1.weight, worker_0");
  const json close = bench.event(sample_notification("two", core::NotificationKind::close));
  EXPECT_EQ(close["event_action"], "resolve");
  EXPECT_EQ(close["dedup_key"], open["dedup_key"]);
  EXPECT_FALSE(close.contains("payload"));
}

TEST(PagerDuty, AnAcknowledgementIsPassedOnToAnIncidentThatIsOpen) {
  PagerBench bench;
  auto acknowledged = sample_notification("three", core::NotificationKind::update);
  acknowledged.reason = "acknowledged";
  const json event = bench.event(acknowledged);
  EXPECT_EQ(event["event_action"], "acknowledge");
  EXPECT_EQ(event["dedup_key"], "a1b2");
  EXPECT_FALSE(event.contains("payload"));
  // The message that would have opened it never went out: this one opens it.
  acknowledged.kind = core::NotificationKind::open;
  EXPECT_EQ(bench.event(acknowledged)["event_action"], "trigger");
}

TEST(PagerDuty, TheShortFormHasNoDetails) {
  PagerBench bench;
  auto notification = sample_notification();
  notification.minimal = true;
  EXPECT_FALSE(bench.event(notification)["payload"].contains("custom_details"));
}

TEST(PagerDuty, TheKeyIsNotStoredAndAWrongOneIsAWrongConfiguration) {
  PagerBench bench;
  EXPECT_THAT(*bench.action->render(sample_notification()), Not(HasSubstr("0123456789abcdef")));
  EXPECT_EQ(bench.answered(400, R"({"errors":["Invalid routing key"]})").outcome,
            core::OutcomeClass::configuration);
  EXPECT_EQ(bench.answered(400, R"({"errors":["'payload' is missing"]})").outcome,
            core::OutcomeClass::bad_payload);
  EXPECT_THAT(load("receivers: {a: {pagerduty: {routing_key: short}}}\n").errors,
              HasSubstr("expected 32 characters, found 5"));
}

}  // namespace
}  // namespace tocsin::actions
