#include "actions/message/sms_text.h"
#include "core/text.h"
#include "tests/unit/actions/far_side_talk.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

constexpr char kTwilio[] =
    "account_sid: AC0123456789abcdef0123456789abcdef, auth_token: canary-token, from: "
    "'+15005550006'";

struct SmsBench : TalkBench {
  explicit SmsBench(const std::string& to = "'+4915100000001'", const std::string& more = "")
      : TalkBench("sms", "{to: [" + to + "], " + kTwilio + more + "}") {}
  void sent() { answer(201, R"({"sid":"SM1","status":"queued"})"); }
  void refused(int code, int status = 400) {
    answer(status, R"({"code":)" + std::to_string(code) + R"(,"message":"no"})");
  }
};

TEST(Sms, ANumberIsSentTheFindingByAForm) {
  SmsBench bench;
  bench.sent();
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "one")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.asked().back(),
            "POST /2010-04-01/Accounts/AC0123456789abcdef0123456789abcdef/Messages.json");
  EXPECT_THAT(bench.http.requests.back().body,
              StartsWith("To=%2B4915100000001&From=%2B15005550006&Body=%5Berror%5D%20digits"));
  EXPECT_THAT(bench.http.requests.back().headers,
              ::testing::Contains(Pair("content-type", "application/x-www-form-urlencoded")));
}

TEST(Sms, OfLittleWeightNothingIsSent) {
  SmsBench bench;
  auto open = told_as(NotificationKind::open, "one");
  open.issues[0].issue.severity = core::Severity::warning;
  const auto out = bench.told(open);
  EXPECT_TRUE(out.declined);
  EXPECT_TRUE(bench.http.requests.empty());
  SmsBench all("'+4915100000001'", ", min_severity: warning");
  all.sent();
  EXPECT_FALSE(all.told(open).declined);
}

TEST(Sms, ANumberThatOptedOutIsLeftOutAndTheOthersAreReached) {
  SmsBench bench("'+4915100000001', '+4915100000002'");
  bench.refused(21610);
  bench.sent();
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.handles, ElementsAre(Pair("refused", "+4915100000001 21610")));
}

TEST(Sms, WhatFailsAfterSomebodyWasReachedIsPutOffAndNobodyHasItTwice) {
  SmsBench bench("'+4915100000001', '+4915100000002', '+4915100000003'");
  bench.sent();
  bench.refused(20429, 429);
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.handles, ElementsAre(Pair("put_off", "+4915100000002, +4915100000003")));
  EXPECT_EQ(bench.http.requests.size(), 2u);
  bench.sent();
  (void)bench.told(told_as(NotificationKind::open, "one/x", {{"only_to", "+4915100000003"}}));
  EXPECT_THAT(bench.http.requests.back().body, StartsWith("To=%2B4915100000003"));
  EXPECT_EQ(bench.http.requests.size(), 3u);
}

TEST(Sms, WithoutAnAnswerNothingIsSentASecondTime) {
  SmsBench bench("'+4915100000001', '+4915100000002'");
  bench.http.answers.push_back({HttpFailure::no_answer, "timeout", {}});
  bench.sent();
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_FALSE(out.confirmed);
  EXPECT_TRUE(out.handles.empty());
}

TEST(Sms, AnswersMeanWhatTheirCodesMeanAndTheTokenIsShownNowhere) {
  SmsBench bench;
  const auto means = [&](int code, int status) {
    bench.refused(code, status);
    return bench.told(told_as(NotificationKind::open, "one")).outcome;
  };
  EXPECT_EQ(means(20003, 401), OutcomeClass::configuration);
  EXPECT_EQ(means(21606, 400), OutcomeClass::configuration);
  EXPECT_EQ(means(20429, 429), OutcomeClass::throttled);
  EXPECT_EQ(means(21611, 400), OutcomeClass::throttled);
  EXPECT_EQ(means(21617, 400), OutcomeClass::bad_payload);
  EXPECT_EQ(means(21211, 400), OutcomeClass::bad_payload) << "the only number";
  EXPECT_EQ(means(20500, 500), OutcomeClass::transient);
  bench.answer(200, "<html>canary-token</html>");
  const auto foreign = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(foreign.code, "not_twilio");
  EXPECT_THAT(foreign.detail, Not(HasSubstr("canary")));
  EXPECT_THAT(*bench.action->render(sample_notification()), Not(HasSubstr("canary")));
}

TEST(Sms, PartsAreCountedAsTelephonesDo) {
  EXPECT_EQ(sms_parts(std::string(160, 'a')), 1u);
  EXPECT_EQ(sms_parts(std::string(161, 'a')), 2u);
  EXPECT_EQ(sms_parts(std::string(306, 'a')), 2u);
  EXPECT_EQ(sms_parts(std::string(307, 'a')), 3u);
  EXPECT_EQ(sms_parts(std::string(81, '[')), 2u) << "a bracket counts twice";
  std::string wide;
  for (int i = 0; i < 70; ++i) wide += "\u4e2d";
  EXPECT_EQ(sms_parts(wide), 1u);
  EXPECT_EQ(sms_parts(wide + "a"), 2u);
  std::string emoji;
  for (int i = 0; i < 36; ++i) emoji += "\U0001F525";
  EXPECT_EQ(sms_parts(emoji), 2u) << "each is two units";
  EXPECT_EQ(sms_plain("a \u2013 b\u2026 \u201cc\u201d"), "a - b... \"c\"");
}

TEST(Sms, ALongMessageIsTwoPartsCutBetweenCharactersWithTheIdAtItsEnd) {
  auto notification = sample_notification();
  core::Issue& issue = notification.issues[0].issue;
  EXPECT_THAT(sms_text(notification), EndsWith("\niss_6c5duorosylmw5zjzjdy55lrk5"));
  issue.summary.clear();
  for (int i = 0; i < 300; ++i) issue.summary += "\u4e2d\U0001F525";
  const std::string wide = sms_text(notification);
  EXPECT_EQ(sms_parts(wide), 2u);
  EXPECT_EQ(core::first_invalid_utf8(wide), std::nullopt);
  EXPECT_THAT(wide, HasSubstr("...\niss_6c5duorosylmw5zjzjdy55lrk5"));
  issue.summary = std::string(900, 'x');
  const std::string plain = sms_text(notification);
  EXPECT_EQ(sms_parts(plain), 2u);
  EXPECT_GT(plain.size(), 290u) << "the room is used";
}

TEST(Sms, CheckWantsNumbersASenderAndAnAccount) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {sms: {" + settings + "}}}\n").errors;
  };
  EXPECT_THAT(errors("to: ['0151'], " + std::string(kTwilio)), HasSubstr("is no number"));
  EXPECT_THAT(errors("to: [], " + std::string(kTwilio)), HasSubstr("at least one number"));
  EXPECT_THAT(errors("to: ['+4915100000001'], account_sid: AC1, auth_token: t, from: X"),
              HasSubstr("AC and 32 hexadecimal digits"));
  EXPECT_THAT(errors("to: ['+4915100000001'], messaging_service_sid: MG1, " + std::string(kTwilio)),
              HasSubstr("either from or messaging_service_sid"));
}

}  // namespace
}  // namespace tocsin::actions
