#include "tests/unit/actions/chat_post.h"
#include "tests/unit/actions/far_side_talk.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

constexpr char kSlack[] = "{url: 'https://hooks.slack.com/services/T/B/x'}";

TEST(Slack, AMentionInALabelIsText) {
  const auto body = chat_post("slack", kSlack, "<!channel> of <@U1> & more");
  EXPECT_EQ(body["blocks"][1]["text"]["text"], "&lt;!channel&gt; of &lt;@U1&gt; &amp; more");
  EXPECT_THAT(body.dump(), Not(HasSubstr("<!")));
}

TEST(Slack, APageThatIsNotSlacksIsNoDelivery) {
  Workbench bench;
  const auto action = bench.make("slack", kSlack);
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "<html>log in</html>"}});
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::configuration);
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "ok"}});
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::delivered);
}

struct SlackBotBench : TalkBench {
  explicit SlackBotBench(const std::string& more = "")
      : TalkBench("slack", "{token: xoxb-canary, channel: '#training'" + more + "}") {}
  core::AttemptOutcome posted(
      const core::Notification& notification,
      const std::string& answer_body = R"({"ok":true,"channel":"C07","ts":"1700000000.000100"})") {
    answer(200, answer_body);
    return told(notification);
  }
};

const std::vector<std::pair<std::string, std::string>> kRoot{
    {"message_id", "C07 1700000000.000100"}};

TEST(SlackBot, PostsToTheChannelAndKeepsWhereTheMessageIs) {
  SlackBotBench bench;
  const auto out = bench.posted(told_as(NotificationKind::open, "one"));
  EXPECT_THAT(out.handles, ElementsAre(Pair("message_id", "C07 1700000000.000100")));
  EXPECT_EQ(bench.http.requests[0].url, "https://slack.com/api/chat.postMessage");
  EXPECT_EQ(bench.last()["channel"], "#training");
  EXPECT_EQ(bench.header("authorization"), "Bearer xoxb-canary");
  EXPECT_FALSE(bench.last().contains("thread_ts"));
  EXPECT_THAT(*bench.action->render(sample_notification()), Not(HasSubstr("canary")));
}

TEST(SlackBot, TheEndChangesTheRootAndNewsIsANewMessageOrAReply) {
  for (const bool threading : {false, true}) {
    SlackBotBench bench(threading ? ", threading: true" : "");
    bench.posted(told_as(NotificationKind::update, "two", kRoot));
    EXPECT_THAT(bench.asked().back(), HasSubstr("/chat.postMessage"));
    EXPECT_EQ(bench.last().value("thread_ts", ""), threading ? "1700000000.000100" : "");
    bench.posted(told_as(NotificationKind::close, "three", kRoot));
    EXPECT_THAT(bench.asked().back(), HasSubstr("/chat.update"));
    EXPECT_EQ(bench.last()["channel"], "C07") << "a name is not taken there";
    EXPECT_EQ(bench.last()["ts"], "1700000000.000100");
    EXPECT_FALSE(bench.last().contains("unfurl_links"));
  }
}

TEST(SlackBot, OfARootThatWasDeletedTheEndIsPosted) {
  SlackBotBench bench;
  bench.answer(200, R"({"ok":false,"error":"message_not_found"})");
  const auto out = bench.posted(told_as(NotificationKind::close, "two", kRoot));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.size(), 2u);
  EXPECT_THAT(bench.asked().back(), HasSubstr("/chat.postMessage"));
}

TEST(SlackBot, ErrorsStandInAnswersOf200) {
  SlackBotBench bench;
  const auto means = [&](const std::string& error) {
    return bench
        .posted(told_as(NotificationKind::open, "one"), R"({"ok":false,"error":")" + error + "\"}")
        .outcome;
  };
  EXPECT_EQ(means("ratelimited"), OutcomeClass::throttled);
  EXPECT_EQ(means("internal_error"), OutcomeClass::transient);
  EXPECT_EQ(means("fatal_error"), OutcomeClass::transient);
  EXPECT_EQ(means("service_unavailable"), OutcomeClass::transient);
  EXPECT_EQ(means("msg_too_long"), OutcomeClass::bad_payload);
  EXPECT_EQ(means("invalid_blocks"), OutcomeClass::bad_payload);
  EXPECT_EQ(means("msg_blocks_too_long"), OutcomeClass::bad_payload);
  for (const char* error : {"invalid_auth", "token_revoked", "not_in_channel", "channel_not_found",
                            "is_archived", "missing_scope"}) {
    EXPECT_EQ(means(error), OutcomeClass::configuration) << error;
  }
  bench.answer(200, R"({"ok":false,"error":"ratelimited"})", {{"retry-after", "8"}});
  EXPECT_EQ(bench.told(sample_notification()).retry_after, core::Duration(8s));
  EXPECT_EQ(bench.posted(sample_notification(), "<html>log in</html>").code, "not_slack");
  EXPECT_THAT(bench.posted(sample_notification(), R"({"ok":true,"channel":"\"","ts":"1"})").handles,
              IsEmpty());
}

TEST(SlackBot, CheckWantsAWebhookOrABotWithItsChannel) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {slack: {" + settings + "}}}\n").errors;
  };
  EXPECT_THAT(errors("username: x"), HasSubstr("(a webhook), or \"token\" (a bot)"));
  EXPECT_THAT(errors("token: xoxb-1"), HasSubstr("missing key \"channel\""));
  EXPECT_THAT(errors("url: 'https://hooks.slack.com/x', threading: true"),
              HasSubstr("needs token"));
  EXPECT_EQ(errors("token: xoxb-1, channel: C07, threading: true"), "");
}

}  // namespace
}  // namespace tocsin::actions
