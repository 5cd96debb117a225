// Clicks in Slack: what they say, who may, and what is answered; without sockets.
#include "app/api/slack_click.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/api/slack_reply.h"
#include "app/serve/session_table.h"
#include "core/fields/stop_request.h"
#include "tests/unit/app/told_incident.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string percent_encoded(const std::string& text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
  }
  return out;
}

Json payload_of(const std::string& value, const std::string& user = "U0ADA") {
  const Json button{{"type", "button"},
                    {"action_id", "tocsin_" + value.substr(0, value.find('-'))},
                    {"text", {{"type", "plain_text"}, {"text", "x"}, {"emoji", true}}},
                    {"value", value}};
  const Json other{{"type", "button"},
                   {"action_id", "tocsin_silence"},
                   {"text", {{"type", "plain_text"}, {"text", "y"}}},
                   {"value", "silence-1"}};
  return {{"type", "block_actions"},
          {"team", {{"id", "T1"}}},
          {"user", {{"id", user}, {"username", "ada"}, {"team_id", "T1"}}},
          {"response_url", "https://hooks.slack.com/actions/T1/1/x"},
          {"message",
           {{"text", "loss is NaN"},
            {"blocks",
             {{{"type", "section"}, {"text", {{"type", "mrkdwn"}, {"text", "loss is NaN"}}}},
              {{"type", "actions"}, {"block_id", "tocsin"}, {"elements", {button, other}}}}}}},
          {"actions", {button}}};
}
std::string form_of(const Json& payload) { return "payload=" + percent_encoded(payload.dump()); }

TEST(SlackSignature, IsAsSlacksOwnExampleHasIt) {
  constexpr std::string_view kSecret = "8f742231b10e8888abcd99yyyzzz85a5";
  const std::string body =
      "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id="
      "G8PSS9T3V"
      "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
      "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F"
      "96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."
      "803a0bc887a14d10d2c447fce8b6703c";
  constexpr std::string_view kHeader =
      "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
  EXPECT_TRUE(has_slack_signature(kHeader, "1531420618", kSecret, body));
  EXPECT_FALSE(has_slack_signature(kHeader, "1531420619", kSecret, body));
  EXPECT_FALSE(has_slack_signature(kHeader, "1531420618", "another", body));
  EXPECT_FALSE(has_slack_signature(kHeader, "1531420618", kSecret, body + " "));
  EXPECT_FALSE(has_slack_signature("", "", kSecret, ""));
  EXPECT_EQ(slack_timestamp("1531420618"), core::parse_rfc3339("2018-07-12T18:36:58Z"));
  for (const char* text : {"", "x", "-1", "1531420618 ", "99999999999999999999", "1e9"})
    EXPECT_FALSE(slack_timestamp(text)) << text;
}

TEST(SlackClick, IsReadOnlyWhereItIsOneOfOurButtons) {
  const auto click = read_slack_click(form_of(payload_of("ack-1")));
  ASSERT_TRUE(click && *click);
  EXPECT_EQ((*click)->value, "ack-1");
  EXPECT_EQ(slack_person(**click), "slack:ada (U0ADA)");
  EXPECT_TRUE((*click)->of_our_workspace);
  for (const char* body : {"", "payload", "payload=%7B", "payload=1", "payload=%ZZ", "x=1"})
    EXPECT_FALSE(read_slack_click(body)) << body;
  auto nobody = payload_of("ack-1");
  nobody["user"].erase("id");
  EXPECT_FALSE(read_slack_click(form_of(nobody)));
  auto evil = payload_of("ack-1");
  evil["user"]["id"] = "U1)\n";
  EXPECT_FALSE(read_slack_click(form_of(evil)));
  auto foreign = payload_of("ack-1");
  foreign["actions"][0]["action_id"] = "of_another_app";
  const auto left_alone = read_slack_click(form_of(foreign));
  EXPECT_TRUE(left_alone && !*left_alone);
  auto guest = payload_of("ack-1");
  guest["user"]["team_id"] = "T2";
  EXPECT_FALSE((*read_slack_click(form_of(guest)))->of_our_workspace);
}

TEST(SlackReply, ChangesTheMessageAndEscapesWhatOthersWrote) {
  auto click = **read_slack_click(form_of(payload_of("ack-1")));
  Json changed = Json::parse(slack_changed_message(click, "Acknowledged by <!channel> & co."));
  EXPECT_EQ(changed["replace_original"], true);
  ASSERT_THAT(changed["blocks"], SizeIs(3));
  EXPECT_EQ(changed["blocks"][0]["text"]["text"], "loss is NaN");
  EXPECT_EQ(changed["blocks"][1]["elements"][0]["text"],
            "Acknowledged by &lt;!channel&gt; &amp; co.");
  ASSERT_THAT(changed["blocks"][2]["elements"], SizeIs(1)) << "the button pressed is gone";
  EXPECT_EQ(changed["blocks"][2]["elements"][0]["value"], "silence-1");
  click.message = core::Value();
  EXPECT_EQ(slack_changed_message(click, "x"), "");
  EXPECT_EQ(Json::parse(slack_whisper("<b>"))["text"], "&lt;b&gt;");
  EXPECT_EQ(Json::parse(slack_whisper("x"))["response_type"], "ephemeral");
}

TEST(SlackReply, ADecidedStopHasNeitherOfItsButtons) {
  Json payload = payload_of("approve-cmd_1");
  auto& elements = payload["message"]["blocks"][1]["elements"];
  elements.push_back(elements[0]);
  elements.back()["value"] = "cancel-cmd_1";
  const auto click = **read_slack_click(form_of(payload));
  const Json changed = Json::parse(slack_changed_message(click, "Stop approved."));
  ASSERT_THAT(changed["blocks"][2]["elements"], SizeIs(1));
  EXPECT_EQ(changed["blocks"][2]["elements"][0]["value"], "silence-1");
}

constexpr const char* kSlackConfig = R"(
http:
  auth:
    tokens:
      - {name: shift, role: operator, token: "${SHIFT}"}
  inbound:
    - {name: chat, type: slack, integrations: [people/slack], secret: 0123456789-signing,
       operators: [U0ADA], stoppers: [U0EVE], replies_to: 'https://localhost:1'}
route: {receiver: people}
receivers: {people: {slack: {token: xoxb-1, channel: '#x'}}}
)";

class SlackHookTest : public ToldIncidentTest {
 protected:
  [[nodiscard]] const char* config_text() const override { return kSlackConfig; }

  Told post(const std::string& body, core::Duration ago = core::Duration(0),
            std::string_view secret = "0123456789-signing") {
    static constexpr std::string_view kHex = "0123456789abcdef";
    const std::string at = std::to_string(
        std::chrono::duration_cast<std::chrono::seconds>((clock_.now() - ago).time_since_epoch())
            .count());
    std::string signature = "v0=";
    for (const auto byte : keyed_hash(secret, "v0:" + at + ":" + body))
      signature += {kHex[byte >> 4U], kHex[byte & 15U]};
    return ask("POST", "/hooks/chat", "", body, "", "application/x-www-form-urlencoded",
               {{"X-Slack-Signature", signature}, {"X-Slack-Request-Timestamp", at}});
  }
  Told click(const std::string& value, const std::string& user = "U0ADA") {
    return post(form_of(payload_of(value, user)));
  }
  std::string ack_of(const std::string& key) {
    return "ack-" + std::string(kGroupHash).substr(0, 16) + "-1-" + key + "-1-0";
  }
};

TEST_F(SlackHookTest, AClickIsAnsweredAtOnceAndDoneBehindIt) {
  const std::string value = ack_of(tell());
  const Told told = click(value);
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.text, "");
  EXPECT_TRUE(comes_true([&] { return items("/api/v1/acks").size() == 1; }));
  EXPECT_EQ(items("/api/v1/acks")[0]["by"], "slack:ada (U0ADA)");
  EXPECT_EQ(items("/api/v1/acks")[0]["origin"], "people/slack");
}

TEST_F(SlackHookTest, OnlyWhoMayIsObeyedAndOnlyWhatSlackSignedNow) {
  const std::string value = ack_of(tell());
  const std::string body = form_of(payload_of(value));
  EXPECT_EQ(post(body, std::chrono::minutes(6)).status, 401);
  EXPECT_EQ(post(body, std::chrono::minutes(-6)).status, 401);
  EXPECT_EQ(post(body, {}, "0123456789-of-nobody").status, 401);
  EXPECT_EQ(post("payload=%7B").status, 400);
  EXPECT_EQ(click(value, "U0BOB").status, 200) << "Slack has done its part";
  EXPECT_EQ(click("approve-cmd_76sj", "U0ADA").status, 200);
  EXPECT_EQ(click(value, "U0EVE").status, 200) << "a stopper may do what an operator may";
  EXPECT_TRUE(comes_true([&] { return items("/api/v1/acks").size() == 1; }));
  EXPECT_EQ(items("/api/v1/acks")[0]["by"], "slack:ada (U0EVE)")
      << "clicks are done in their order";
  for (const Json& one : items("/api/v1/audit")) EXPECT_NE(one["what"], "stop.approved");
}

TEST_F(SlackHookTest, AStopThatWaitsIsRejectedAndOneThatWasAskedForIsNotWithdrawn) {
  core::StopRequest request;
  request.id = "cmd_76sjzs23ut";
  request.run.uid = core::run_uid_for("digits", "one");
  request.run.attempt = 1;
  request.terms = core::ValueMap{};
  request.asked_at = clock_.now();
  request.until = clock_.now() + std::chrono::hours(1);
  request.run.job = "digits";
  request.reason.summary = "loss is NaN";
  core::StopRequest approved = core::decided(request, "approved", "ada", clock_.now());
  approved.id = "cmd_approved";
  publish({core::stop_request_record(request), core::stop_request_record(approved)});
  const auto word_on = [&](const std::string& id) -> Json {
    const Json listed = ask("GET", "/api/v1/stops", "all=true").json["items"];
    for (const Json& one : listed) {
      if (one["command_id"] == id) return one["approval"];
    }
    return {};
  };
  ASSERT_TRUE(comes_true([&] { return !word_on("cmd_approved").is_null(); }));
  EXPECT_EQ(click("cancel-cmd_approved", "U0EVE").status, 200);
  EXPECT_EQ(click("cancel-cmd_76sjzs23ut", "U0EVE").status, 200);
  EXPECT_TRUE(comes_true([&] { return word_on(request.id).value("state", "") == "rejected"; }));
  EXPECT_EQ(word_on(request.id)["decided_by"], "slack:ada (U0EVE)");
  const Json changes = items("/api/v1/audit");
  ASSERT_THAT(changes, SizeIs(1)) << "the other had its word: nothing was written";
  EXPECT_EQ(changes[0]["what"], "stop.cancelled");
  EXPECT_EQ(changes[0]["role"], "stopper");
  EXPECT_EQ(word_on("cmd_approved")["state"], "approved");
}

}  // namespace
}  // namespace tocsin::app
