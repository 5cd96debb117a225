// Links in mails, over a journal, without sockets: GET does nothing, POST does what the page says, once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/actions.h"
#include "app/serve/link_seal.h"
#include "tests/unit/app/told_incident.h"

namespace tocsin::app {
namespace {

using actions::AnswerTarget;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Purpose = AnswerTarget::Purpose;

constexpr const char* kLinkConfig = R"(
http:
  external_url: https://alarms.example
  links: {secret: 0123456789-links-secret, previous_secret: 0123456789-before-that}
  auth:
    tokens:
      - {name: shift, role: operator, token: "${SHIFT}"}
route: {receiver: people}
receivers: {people: {publish_metric: {}}}
)";

class LinkPagesTest : public ToldIncidentTest {
 protected:
  [[nodiscard]] const char* config_text() const override { return kLinkConfig; }

  [[nodiscard]] AnswerTarget target(Purpose purpose, const std::string& key,
                                    core::Duration left = std::chrono::hours(1)) const {
    AnswerTarget out;
    out.purpose = purpose;
    out.group = std::string(kGroupHash).substr(0, AnswerTarget::kGroupDigits);
    out.issue_key = key;
    out.until = std::chrono::floor<std::chrono::seconds>(clock_.now() + left);
    return out;
  }
  static std::string link_of(const AnswerTarget& target,
                             const char* secret = "0123456789-links-secret") {
    LinkConfig config;
    config.secret = config::Secret::from_value(secret);
    return "/act/" + target.text() + "-" + *LinkSeal(config).sign(target.text());
  }
  Told show(const std::string& link) { return ask("GET", link, "", "", ""); }
  Told press(const std::string& link, const std::string& form = "") {
    return ask("POST", link, "", form, "", "application/x-www-form-urlencoded");
  }
};

TEST_F(LinkPagesTest, APageSaysWhatHappensAndOnlyAPostDoesIt) {
  const std::string link = link_of(target(Purpose::acknowledge, tell()));
  const Told page = show(link);
  EXPECT_EQ(page.status, 200) << page.text;
  EXPECT_THAT(page.text, HasSubstr("Acknowledge this incident?"));
  EXPECT_THAT(page.text, HasSubstr("<form method=\"post\">"));
  EXPECT_THAT(page.text, Not(HasSubstr("<script")));
  EXPECT_THAT(page.text, Not(HasSubstr(link.substr(5)))) << "the link stands in no page";
  EXPECT_THAT(page.header("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(page.header("Referrer-Policy"), "no-referrer");
  EXPECT_EQ(page.header("Cache-Control"), "no-store");
  EXPECT_EQ(ask("HEAD", link, "", "", "").status, 200);
  EXPECT_THAT(items("/api/v1/acks"), SizeIs(0)) << "a scanner that follows links does nothing";

  const Told done = press(link, "name=Ada+%3Cb%3E");
  EXPECT_EQ(done.status, 200);
  EXPECT_THAT(done.text, HasSubstr("Acknowledged by Ada &lt;b&gt; (by link)."));
  const Json acks = items("/api/v1/acks");
  ASSERT_THAT(acks, SizeIs(1));
  EXPECT_EQ(acks[0]["by"], "Ada <b> (by link)");
  EXPECT_EQ(acks[0]["origin"], "link");
  EXPECT_EQ(acks[0]["group"], kGroupHash);
  EXPECT_THAT(show(link).text, HasSubstr("Acknowledged already by Ada"));
  EXPECT_THAT(press(link).text, HasSubstr("Acknowledged already by Ada"));
  EXPECT_THAT(items("/api/v1/acks"), SizeIs(1)) << "used: nothing is left to do";
  const Json change = items("/api/v1/audit")[0];
  EXPECT_EQ(change["what"], "ack.set");
  EXPECT_EQ(change["who"], "Ada <b> (by link)");
  EXPECT_EQ(change["by"], "signature");
}

TEST_F(LinkPagesTest, ASilenceIsBegunOnceForAnHourAndHoldsBackNoStop) {
  const std::string link = link_of(target(Purpose::silence, tell()));
  EXPECT_THAT(show(link).text, HasSubstr("rule A, job vit"));
  EXPECT_THAT(press(link).text, HasSubstr("Silenced until"));
  const Json silences = items("/api/v1/silences");
  ASSERT_THAT(silences, SizeIs(1));
  EXPECT_EQ(silences[0]["matchers"], R"({rule="A",job="vit"})");
  EXPECT_EQ(silences[0]["actions"], "notify");
  EXPECT_THAT(press(link).text, HasSubstr("Silenced already until"));
  EXPECT_THAT(items("/api/v1/silences"), SizeIs(1));
  const std::string id = silences[0]["id"];
  EXPECT_EQ(ask("DELETE", "/api/v1/silences/" + id).status, 204);
  EXPECT_THAT(press(link).text, HasSubstr("This link was used"));
  EXPECT_THAT(items("/api/v1/silences"), SizeIs(1)) << "not begun again";
}

TEST_F(LinkPagesTest, WhatWeHaveNotSignedIsRefused) {
  const std::string key = tell();
  const AnswerTarget good = target(Purpose::acknowledge, key);
  const std::string link = link_of(good);
  const std::string signature = link.substr(link.size() - LinkSeal::kSignature);
  EXPECT_EQ(press(link_of(good, "0123456789-of-nobody")).status, 403);
  EXPECT_EQ(press("/act/" + good.text() + "-0unsigned0").status, 403);
  EXPECT_EQ(press(link.substr(0, link.size() - 1)).status, 403) << "cut off";
  // A signature is of one purpose, one incident, one end.
  EXPECT_EQ(press("/act/" + target(Purpose::silence, key).text() + "-" + signature).status, 403);
  EXPECT_EQ(press("/act/" + target(Purpose::acknowledge, key, std::chrono::hours(9)).text() + "-" +
                  signature)
                .status,
            403);
  AnswerTarget stop;
  stop.purpose = Purpose::approve_stop;
  stop.stop = "cmd_76sjzs23ut";
  EXPECT_EQ(press(link_of(stop)).status, 403) << "no link decides on a stop";
  AnswerTarget endless = good;
  endless.until.reset();
  EXPECT_EQ(press(link_of(endless)).status, 403);
  EXPECT_THAT(items("/api/v1/acks"), SizeIs(0));
  EXPECT_EQ(press(link_of(good, "0123456789-before-that")).status, 200)
      << "signed before a rotation";
}

TEST_F(LinkPagesTest, ALinkIsOverWithItsTimeItsEpisodeAndItsIncident) {
  const std::string key = tell();
  const auto late = target(Purpose::acknowledge, key, -std::chrono::seconds(2));
  EXPECT_EQ(press(link_of(late)).status, 410);
  EXPECT_THAT(show(link_of(late)).text, HasSubstr("This link expired at"));
  const std::string link = link_of(target(Purpose::acknowledge, key));
  ASSERT_EQ(show(link).status, 200);
  (void)tell(1, 2);
  EXPECT_EQ(press(link).status, 410);
  EXPECT_THAT(press(link).text, HasSubstr("fires again"));
  (void)tell(2, 2);
  EXPECT_THAT(press(link).text, HasSubstr("Another one has begun since"));
  AnswerTarget unknown = target(Purpose::acknowledge, key);
  unknown.group = "ffffffffffffffff";
  EXPECT_EQ(press(link_of(unknown)).status, 410);
  EXPECT_THAT(items("/api/v1/acks"), SizeIs(0));
}

}  // namespace
}  // namespace tocsin::app
