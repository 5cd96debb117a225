// Webhooks of PagerDuty and Jira Service Management, over a journal, without sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/api/inbound_event.h"
#include "app/serve/session_table.h"
#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kInboundConfig = R"(
http:
  auth:
    tokens:
      - {name: shift, role: operator, token: "${SHIFT}"}
  inbound:
    - {name: pd, type: pagerduty, integration: pager/pagerduty, secret: 0123456789-signing, previous_secret: 0123456789-old-one}
    - {name: ops, type: jsm, integration: desk/jsm, secret: 0123456789-of-the-desk}
route: {receiver: pager, routes: [{matchers: ['team="desk"'], receiver: desk}]}
receivers:
  pager: {pagerduty: {routing_key: 0123456789abcdef0123456789abcdef}}
  desk: {jsm: {api_key: some-key-of-the-desk}}
)";
const std::string kGroup(64, 'a');

std::string signed_by(std::string_view secret, std::string_view body) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "v1=";
  for (const auto byte : keyed_hash(secret, body)) out += {kHex[byte >> 4U], kHex[byte & 15U]};
  return out;
}

class InboundHooksTest : public ApiTest {
 protected:
  [[nodiscard]] const char* config_text() const override { return kInboundConfig; }

  std::string pagerduty(const std::string& type, const std::string& id,
                        core::Duration ago = std::chrono::seconds(0)) {
    return Json({{"event",
                  {{"id", id},
                   {"event_type", type},
                   {"resource_type", "incident"},
                   {"occurred_at", core::to_rfc3339(clock_.now() - ago)},
                   {"agent", {{"summary", "Ada Lovelace"}, {"type", "user_reference"}}},
                   {"data", {{"type", "incident"}, {"incident_key", kGroup}}}}}})
        .dump();
  }
  Told page(const std::string& body, const std::string& signature) {
    return ask("POST", "/hooks/pd", "", body, "", "application/json",
               {{"X-PagerDuty-Signature", signature}});
  }
  Told page(const std::string& body) { return page(body, signed_by("0123456789-signing", body)); }
  Told desk(const std::string& action, std::string_view token = "0123456789-of-the-desk") {
    const Json body{{"action", action},
                    {"alert", {{"alias", kGroup}, {"username", "bob@example.org"}}}};
    return ask("POST", "/hooks/ops", "", body.dump(), token);
  }

  // An open issue that a message of the group has told.
  void tell() {
    (void)ask("POST", "/api/v2/alerts", "", R"([{"labels": {"alertname": "A", "job": "vit"}}])");
    Json listed;
    for (int i = 0; i < 500 && !(listed.is_array() && listed.size() == 1); ++i) {
      listed = ask("GET", "/api/v1/issues").json["items"];
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_THAT(listed, SizeIs(1));
    core::Notification message;
    message.notification_id = "ntf_one";
    message.integration = "pager/pagerduty";
    message.type = "pagerduty";
    message.receiver = "pager";
    message.group_hash = kGroup;
    message.reason = "first";
    message.decided_at = clock_.now();
    core::NotifiedIssue notified;
    notified.issue_key = listed[0]["key"];
    notified.issue.event_id = listed[0]["event_id"];
    message.issues.push_back(notified);
    ingest::PublisherOptions options;
    options.writer = "test";
    options.durable = true;
    auto publisher = transport_->publisher(options);
    ASSERT_TRUE(publisher);
    ASSERT_TRUE((*publisher)->publish(ingest::encode_notification(message)));
    ASSERT_TRUE((*publisher)->flush(std::chrono::seconds(10)));
    // The view reads it, which takes a moment.
    for (int i = 0; i < 500; ++i) {
      const Told told = ask("POST", "/api/v1/acks", "", R"({"what": "ntf_one", "note": "x"})");
      if (told.status == 202) {
        EXPECT_EQ(told.json["ack"]["group"], kGroup);
        EXPECT_EQ(ask("DELETE", "/api/v1/acks/" + std::string(told.json["ack"]["id"])).status, 204);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "the message is not known";
  }
  Json acks() { return ask("GET", "/api/v1/acks").json["items"]; }
};

TEST_F(InboundHooksTest, WhatIsNotSignedByTheSecretIsRefused) {
  tell();
  const std::string body = pagerduty("incident.acknowledged", "e-1");
  EXPECT_EQ(page(body, "").status, 401);
  EXPECT_EQ(page(body, signed_by("0123456789-of-nobody", body)).status, 401);
  EXPECT_EQ(page(body + " ", signed_by("0123456789-signing", body)).status, 401);
  EXPECT_EQ(desk("Acknowledge", "0123456789-of-nobody").status, 401);
  EXPECT_EQ(desk("Acknowledge", "").status, 401);
  EXPECT_EQ(ask("POST", "/hooks/none", "", body, "").status, 401);
  EXPECT_THAT(acks(), SizeIs(0));
  EXPECT_EQ(page(body, signed_by("0123456789-of-nobody", body) + ", " +
                           signed_by("0123456789-old-one", body))
                .status,
            200)
      << "one of several, of the secret before";
  EXPECT_THAT(acks(), SizeIs(1));
}

TEST_F(InboundHooksTest, PagerDutyTakesOnAndGivesBackAndRepeatsChangeNothing) {
  tell();
  const std::string taken = pagerduty("incident.acknowledged", "e-1");
  EXPECT_THAT(page(taken).text, HasSubstr("acknowledged"));
  const Json listed = acks();
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0]["by"], "Ada Lovelace");
  EXPECT_EQ(listed[0]["origin"], "pager/pagerduty") << "the router does not tell it again";
  EXPECT_EQ(listed[0]["group"], kGroup);
  EXPECT_EQ(listed[0]["holds"], true);
  EXPECT_THAT(page(pagerduty("incident.acknowledged", "e-2")).text, HasSubstr("already"));
  EXPECT_THAT(acks(), SizeIs(1));
  EXPECT_EQ(page(pagerduty("incident.unacknowledged", "e-3")).status, 200);
  EXPECT_THAT(acks(), SizeIs(0));
  EXPECT_THAT(page(taken).text, HasSubstr("known already"));
  EXPECT_THAT(acks(), SizeIs(0)) << "a repeat takes nothing on again";
  EXPECT_THAT(page(pagerduty("incident.acknowledged", "e-4", std::chrono::hours(25))).text,
              HasSubstr("too long ago"));
  EXPECT_EQ(page(pagerduty("incident.acknowledged", "e-5", std::chrono::minutes(-10))).status, 400);
  EXPECT_EQ(page(pagerduty("pagey.ping", "e-6")).status, 200);
  EXPECT_THAT(acks(), SizeIs(0));
}

TEST_F(InboundHooksTest, AWordThatComesBackFromAToolBeginsNoLoop) {
  tell();
  ASSERT_EQ(ask("POST", "/api/v1/acks", "", R"({"what": "ntf_one", "note": "mine"})").status, 202);
  EXPECT_THAT(desk("Acknowledge").text, HasSubstr("already"));
  EXPECT_THAT(page(pagerduty("incident.acknowledged", "e-1")).text, HasSubstr("already"));
  ASSERT_THAT(acks(), SizeIs(1));
  EXPECT_EQ(desk("UnAcknowledge").status, 200);
  EXPECT_THAT(acks(), SizeIs(1)) << "a person's own word stays";
}

TEST_F(InboundHooksTest, TheDeskTakesOnAndGivesBack) {
  tell();
  EXPECT_EQ(desk("Create").status, 200);
  EXPECT_THAT(acks(), SizeIs(0));
  EXPECT_EQ(desk("Acknowledge").status, 200);
  ASSERT_THAT(acks(), SizeIs(1));
  EXPECT_EQ(acks()[0]["by"], "bob@example.org");
  EXPECT_EQ(acks()[0]["origin"], "desk/jsm");
  EXPECT_EQ(desk("UnAcknowledge").status, 200);
  EXPECT_THAT(acks(), SizeIs(0));
}

TEST(InboundEvent, IsReadOnlyWhereItIsOne) {
  for (const char* body : {"", "{", "[]", "null", R"({"event": 1})", R"({"event": {"id": "x"}})",
                           R"({"event": {"id": "x", "event_type": "incident.acknowledged"}})"}) {
    EXPECT_FALSE(read_pagerduty_hook(body)) << body;
  }
  EXPECT_FALSE(read_jsm_hook("{}"));
  const auto foreign = read_jsm_hook(R"({"action": "Acknowledge", "alert": {"alias": "../x"}})");
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->group, "") << "no hash of ours";
  EXPECT_FALSE(has_pagerduty_signature("", "0123456789-signing", ""));
  EXPECT_TRUE(has_pagerduty_signature(
      "v1=0000,v1=5031fe3d989c6d1537a013fa6e739da23463fdaec3b70137d828e36ace221bd0", "key",
      "data"));
}

}  // namespace
}  // namespace tocsin::app
