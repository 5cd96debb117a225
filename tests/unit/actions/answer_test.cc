// Buttons and links by which people answer a message: what they are about, and where they stand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "actions/actions.h"
#include "tests/unit/actions/far_side_talk.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace testing_support;
using Purpose = AnswerTarget::Purpose;

constexpr char kBot[] = "{token: xoxb-1, channel: '#training'}";
constexpr char kMail[] = "{to: [ops@example.com], host: smtp.example.com}";
const std::string kSigned(32, 'z');

core::Notification about_an_incident() {
  core::Notification out = sample_notification();
  out.group_hash = TalkBench::kHash;
  out.issues[0].issue_key = "abcdefghijklmnopqrstuvwxy2";
  return out;
}

nlohmann::json blocks_of(const AnswerWays& ways, const core::Notification& notification) {
  Workbench bench;
  bench.environment.answers = ways;
  deliver(*bench.make("slack", kBot), notification);
  return nlohmann::json::parse(bench.http.requests.at(0).body)["blocks"];
}
std::vector<std::string> buttons_of(const AnswerWays& ways,
                                    const core::Notification& notification) {
  std::vector<std::string> out;
  for (const auto& block : blocks_of(ways, notification)) {
    if (block["type"] != "actions") continue;
    for (const auto& button : block["elements"]) out.push_back(button["text"]["text"]);
  }
  return out;
}

AnswerWays with_buttons(bool stops = false) {
  AnswerWays out;
  out.buttons["oncall/slack"].stops = stops;
  return out;
}

TEST(AnswerTarget, IsReadBackFromItsTextAndFromNoOther) {
  AnswerTarget target;
  target.purpose = Purpose::silence;
  target.group = "a1b2c3d4e5f60718";
  target.generation = 3;
  target.issue_key = "abcdefghijklmnopqrstuvwxy2";
  target.episode = 2;
  EXPECT_EQ(AnswerTarget::parse(target.text()), target);
  target.until = std::chrono::floor<std::chrono::seconds>(kStart);
  EXPECT_EQ(AnswerTarget::parse(target.text()), target);
  AnswerTarget stop;
  stop.purpose = Purpose::approve_stop;
  stop.stop = "cmd_76sjzs23ut";
  EXPECT_EQ(AnswerTarget::parse(stop.text()), stop);
  for (const std::string& text :
       {std::string(), std::string("ack"), target.text() + "-1", "x" + target.text(),
        std::string("ack-a1b2c3d4e5f60718-01-k-1-0"), std::string("approve-ack_1"),
        std::string("ack-A1B2C3D4E5F60718-1-k-1-0"), std::string("ack-a1b2c3d4e5f60718-1-k-1--1"),
        std::string("cancel-cmd_") + std::string(200, 'a'), std::string("silence-cmd_76sj")}) {
    EXPECT_FALSE(AnswerTarget::parse(text)) << text;
  }
}

TEST(SlackButtons, StandOnlyWhereClicksAreHeardAndSomethingFires) {
  const auto message = about_an_incident();
  EXPECT_THAT(buttons_of({}, message), IsEmpty());
  EXPECT_THAT(buttons_of(with_buttons(), message), ElementsAre("Acknowledge", "Silence 1 h"));
  auto taken = message;
  taken.issues[0].acknowledged = core::AckTold{"ada", "mine", kStart, std::nullopt};
  EXPECT_THAT(buttons_of(with_buttons(), taken), ElementsAre("Silence 1 h"));
  auto digest = message;
  digest.reason = "digest";
  EXPECT_THAT(buttons_of(with_buttons(), digest), IsEmpty());
  auto over = sample_notification("ntf_two", core::NotificationKind::close);
  over.group_hash = TalkBench::kHash;
  EXPECT_THAT(buttons_of(with_buttons(true), over), IsEmpty());
}

TEST(SlackButtons, SayWhatTheyDoAndCarryIt) {
  const auto blocks = blocks_of(with_buttons(), about_an_incident());
  const auto& buttons = blocks.back()["elements"];
  EXPECT_EQ(blocks.back()["block_id"], "tocsin");
  EXPECT_EQ(buttons[0]["action_id"], "tocsin_ack");
  EXPECT_EQ(buttons[0]["value"], "ack-a1b2c3d4e5f60718-1-abcdefghijklmnopqrstuvwxy2-1-0");
  EXPECT_FALSE(buttons[0].contains("confirm")) << "it can be taken back";
  EXPECT_EQ(buttons[1]["action_id"], "tocsin_silence");
  const std::string question = buttons[1]["confirm"]["text"]["text"];
  EXPECT_THAT(question, HasSubstr("all of run 4e3046d4-8c1f-5278-82e3-ea3595bc5999 (digits)"));
  EXPECT_THAT(question, HasSubstr("Stops go on"));
}

TEST(SlackButtons, AStopThatWaitsIsOfferedWhereSomebodyMayDecide) {
  auto message = about_an_incident();
  core::Issue& issue = message.issues[0].issue;
  issue.rule = "stop_waits";
  issue.evidence.values = core::ValueMap{{"command_id", "cmd_76sjzs23ut"}};
  EXPECT_THAT(buttons_of(with_buttons(false), message), ElementsAre("Acknowledge", "Silence 1 h"));
  EXPECT_THAT(buttons_of(with_buttons(true), message),
              ElementsAre("Stop the run", "Let it run", "Acknowledge", "Silence 1 h"));
  const auto stop = blocks_of(with_buttons(true), message).back()["elements"][0];
  EXPECT_EQ(stop["value"], "approve-cmd_76sjzs23ut");
  EXPECT_EQ(stop["style"], "danger");
  EXPECT_EQ(stop["confirm"]["confirm"]["text"], "Stop it");
  // Among others of its run: not what the message is named for.
  auto followed = about_an_incident();
  followed.issues.push_back(message.issues[0]);
  followed.issues[0].issue.severity = core::Severity::critical;
  EXPECT_THAT(buttons_of(with_buttons(true), followed),
              ElementsAre("Stop the run", "Let it run", "Acknowledge", "Silence 1 h"));
  followed.issues.push_back(message.issues[0]);
  EXPECT_THAT(buttons_of(with_buttons(true), followed), ElementsAre("Acknowledge", "Silence 1 h"))
      << "of two, nobody could say which is meant";
  issue.evidence.values = core::ValueMap{{"command_id", "rm -rf"}};
  EXPECT_THAT(buttons_of(with_buttons(true), message), ElementsAre("Acknowledge", "Silence 1 h"));
}

TEST(SlackButtons, IssuesOfTheRouterItselfHaveNone) {
  auto message = about_an_incident();
  message.issues[0].issue.source = "/c1/router";
  EXPECT_THAT(buttons_of(with_buttons(true), message), IsEmpty());
}

TEST(Silenced, IsTheRunElseTheRuleWhereItIs) {
  const auto of_a_run = about_an_incident().issues[0].issue;
  EXPECT_THAT(silenced_labels(of_a_run), ElementsAre(std::pair<std::string, std::string>(
                                             "run_uid", "4e3046d4-8c1f-5278-82e3-ea3595bc5999")));
  core::Issue of_a_node;
  of_a_node.labels = {{"rule", "disk_full"}, {"node", "a17"}, {"disk", "sda"}};
  EXPECT_EQ(silenced_words(of_a_node), "rule disk_full, node a17");
  EXPECT_THAT(silenced_labels(core::Issue()), IsEmpty());
}

struct LinkBench : Workbench {
  LinkBench() {
    environment.external_url = "https://alarms.example";
    environment.answers.links =
        AnswerLinks{std::chrono::hours(24), [this](std::string_view text) {
                      signed_texts.emplace_back(text);
                      return fails ? core::Result<std::string>(core::invalid_argument("unreadable"))
                                   : core::Result<std::string>(kSigned);
                    }};
  }
  // Without soft line breaks.
  static std::string unfolded(std::string text) {
    for (std::size_t at = text.find("=\r\n"); at != std::string::npos; at = text.find("=\r\n"))
      text.erase(at, 3);
    return text;
  }
  std::vector<std::string> signed_texts;
  bool fails = false;
};

constexpr const char* kAckLink =
    "https://alarms.example/act/ack-a1b2c3d4e5f60718-1-abcdefghijklmnopqrstuvwxy2-1-1767409445";

TEST(MailLinks, AreSignedWhenTheMailIsSentAndNotInWhatIsStored) {
  LinkBench bench;
  const auto mail = bench.make("email", kMail);
  auto message = about_an_incident();
  message.rendered = *mail->render(message);
  EXPECT_THAT(bench.signed_texts, IsEmpty());
  EXPECT_THAT(message.rendered, Not(HasSubstr(kSigned)));
  deliver(*mail, message);
  const std::string sent = LinkBench::unfolded(bench.mailer.mails.at(0).message);
  const std::string link = std::string(kAckLink) + "-" + kSigned;
  EXPECT_THAT(sent, HasSubstr("Acknowledge\r\n  " + link + "\r\n")) << "as text";
  EXPECT_THAT(sent, HasSubstr("href=3D\"" + link + "\">Acknowledge</a>")) << "as HTML";
  EXPECT_THAT(sent, HasSubstr("/act/silence-a1b2c3d4e5f60718"));
  EXPECT_THAT(sent, Not(HasSubstr("unsigned")));
  EXPECT_EQ(bench.signed_texts.size(), 2u);
  std::size_t begin = 0;
  for (const std::string& raw = bench.mailer.mails[0].message; begin < raw.size();) {
    const std::size_t end = std::min(raw.find("\r\n", begin), raw.size());
    EXPECT_LE(end - begin, 76u) << raw.substr(begin, end - begin);
    begin = end + 2;
  }
}

TEST(MailLinks, TextOfOthersThatLooksLikeOneIsNotSigned) {
  LinkBench bench;
  auto message = about_an_incident();
  message.issues[0].issue.summary =
      "https://alarms.example/act/ack-ffffffffffffffff-1-abcdefghijklmnopqrstuvwxy2-1-1767409445-"
      "0unsigned0";
  deliver(*bench.make("email", kMail), message);
  EXPECT_THAT(bench.mailer.mails.at(0).message, Not(HasSubstr("ffffffffffffffff-1-abc" + kSigned)));
  for (const std::string& text : bench.signed_texts) EXPECT_THAT(text, HasSubstr("a1b2c3d4e5f6"));
}

TEST(MailLinks, AMailGoesOutWhereTheSecretCannotBeRead) {
  LinkBench bench;
  bench.fails = true;
  EXPECT_EQ(deliver(*bench.make("email", kMail), about_an_incident()).outcome,
            core::OutcomeClass::delivered);
  EXPECT_THAT(LinkBench::unfolded(bench.mailer.mails.at(0).message), HasSubstr("-0unsigned0"));
}

TEST(MailLinks, AreLeftOutOfAnEndAndWithoutASecret) {
  Workbench plain;
  plain.environment.external_url = "https://alarms.example";
  deliver(*plain.make("email", kMail), about_an_incident());
  EXPECT_THAT(plain.mailer.mails.at(0).message, Not(HasSubstr("/act/")));
  LinkBench bench;
  auto over = sample_notification("ntf_two", core::NotificationKind::close);
  over.group_hash = TalkBench::kHash;
  deliver(*bench.make("email", kMail), over);
  EXPECT_THAT(LinkBench::unfolded(bench.mailer.mails.at(0).message), Not(HasSubstr("/act/")));
}

TEST(WebhookLinks, StandInABodyOfTheUsersAndNoRecordOfAnAttemptHasThem) {
  LinkBench bench;
  const auto hook =
      bench.make("webhook",
                 "{url: 'https://hooks.example/x', format: template, body: "
                 "'{\"ack\": \"{{#answers}}{{#lines}}{{value}} {{/lines}}{{/answers}}\"}'}");
  bench.http.answers.push_back({HttpFailure::none, "", {400, {}, "no: " + kSigned}});
  const auto out = deliver(*hook, about_an_incident());
  EXPECT_THAT(bench.http.requests.at(0).body, HasSubstr(std::string(kAckLink) + "-" + kSigned));
  EXPECT_THAT(out.detail, Not(HasSubstr(kSigned)));
}

TEST(ClickReply, GoesOnlyWhereItsPlaceSays) {
  EXPECT_EQ(click_reply_problem({}), "");
  EXPECT_THAT(click_reply_problem({"https://hooks.slack.com/x", {}}), HasSubstr("alone"));
  EXPECT_THAT(click_reply_problem({"http://hooks.slack.com", {}}), HasSubstr("https"));
  EXPECT_NE(click_reply_problem({"https://a@hooks.slack.com", {}}), "");
  EXPECT_NE(click_reply_problem({"https://hooks.slack.com", {"nowhere"}}), "");
  const auto replies = http_click_replies({});
  for (const char* url : {"", "https://hooks.slack.com.evil.example/x", "http://hooks.slack.com/x",
                          "https://hooks.slack.com@evil.example/x", "https://hooks.slack.com",
                          "file:///etc/passwd"}) {
    const auto sent = replies->reply(url, "{}");
    ASSERT_FALSE(sent) << url;
    EXPECT_EQ(sent.error().code, core::Code::invalid_argument) << url;
  }
}

}  // namespace
}  // namespace tocsin::actions
