#include "tests/unit/actions/far_side_talk.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

constexpr char kAws[] =
    "aws: {region: eu-central-1, access_key_id: AKIDEXAMPLE, secret_access_key: canary-secret}";
constexpr char kTook[] = "<PublishResponse><MessageId>m-1</MessageId></PublishResponse>";

std::string sns_settings(const std::string& name, const std::string& more = "") {
  return "{topic_arn: 'arn:aws:sns:eu-central-1:123456789012:" + name + "', " + kAws + more + "}";
}

std::string sns_error(const std::string& code, const std::string& message) {
  return "<ErrorResponse><Error><Type>Sender</Type><Code>" + code + "</Code><Message>" + message +
         "</Message></Error></ErrorResponse>";
}

TEST(Sns, ATopicGetsMessageSubjectAndAttributesSigned) {
  TalkBench bench("sns", sns_settings("alarms"));
  bench.answer(200, kTook);
  auto open = told_as(NotificationKind::open, "ntf_one");
  open.issues[0].issue.run.job = "caf\u00e9 \u4e2d";
  EXPECT_EQ(bench.told(open).outcome, OutcomeClass::delivered);
  const HttpRequest& request = bench.http.requests.at(0);
  EXPECT_EQ(request.url, "https://sns.eu-central-1.amazonaws.com");
  ASSERT_TRUE(request.aws.has_value());
  EXPECT_EQ(request.aws->service, "sns");
  EXPECT_THAT(request.body,
              HasSubstr("Action=Publish&Version=2010-03-31&TopicArn=arn%3Aaws%3Asns"));
  EXPECT_THAT(request.body, HasSubstr("&Subject=%5Berror%5D%20caf%3F%20%3F%3A%20gradient"));
  EXPECT_THAT(request.body,
              HasSubstr("&MessageAttributes.entry.2.Name=severity&MessageAttributes.entry.2.Value."
                        "DataType=String&MessageAttributes.entry.2.Value.StringValue=error"));
  EXPECT_THAT(request.body, Not(HasSubstr("MessageGroupId")));
  EXPECT_THAT(*bench.action->render(open), Not(HasSubstr("canary")));
}

TEST(Sns, AFifoTopicTellsTheEndOfAnIncidentFromARepeat) {
  TalkBench bench("sns", sns_settings("alarms.fifo", ", format: json"));
  bench.answer(200, kTook);
  (void)bench.told(told_as(NotificationKind::open, "ntf_one"));
  bench.answer(200, kTook);
  (void)bench.told(told_as(NotificationKind::close, "ntf_two"));
  const std::string group = "&MessageGroupId=" + std::string(TalkBench::kHash);
  EXPECT_THAT(bench.http.requests[0].body, HasSubstr("&MessageDeduplicationId=ntf_one" + group));
  EXPECT_THAT(bench.http.requests[1].body, HasSubstr("&MessageDeduplicationId=ntf_two" + group));
  EXPECT_THAT(bench.http.requests[1].body, HasSubstr("&Message=%7B%22"));
}

TEST(Sns, AnswersMeanWhatTheirCodesMean) {
  TalkBench bench("sns", sns_settings("alarms"));
  const auto means = [&](int status, const std::string& code, const std::string& message = "x") {
    bench.answer(status, sns_error(code, message));
    return bench.told(told_as(NotificationKind::open, "one")).outcome;
  };
  EXPECT_EQ(means(400, "Throttling"), OutcomeClass::throttled);
  EXPECT_EQ(means(403, "AuthorizationError"), OutcomeClass::configuration);
  EXPECT_EQ(means(400, "InvalidClientTokenId"), OutcomeClass::configuration);
  EXPECT_EQ(means(400, "InvalidParameter", "Invalid parameter: TopicArn"),
            OutcomeClass::configuration);
  EXPECT_EQ(means(400, "InvalidParameter", "Invalid parameter: Message too long"),
            OutcomeClass::bad_payload);
  EXPECT_EQ(means(500, "InternalError"), OutcomeClass::transient);
  bench.answer(200, "<html>canary-secret</html>");
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.code, "not_sns");
  EXPECT_THAT(out.detail, Not(HasSubstr("canary")));
}

TEST(Sns, CheckWantsAnAccountAndATopicOfItsRegion) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {sns: {" + settings + "}}}\n").errors;
  };
  EXPECT_THAT(errors("topic_arn: 'arn:aws:sns:us-east-1:1:x', " + std::string(kAws)),
              HasSubstr("the topic is in us-east-1, and aws.region is eu-central-1"));
  EXPECT_THAT(errors("topic_arn: alarms, " + std::string(kAws)), HasSubstr("expected arn:aws:sns"));
  EXPECT_THAT(errors("topic_arn: 'arn:aws:sns:us-east-1:1:x'"), HasSubstr("missing key \"aws\""));
}

TEST(Sns, ATelephoneGetsItsTextFromSmsAndOneThatIsNoneIsLeftOut) {
  TalkBench bench("sms",
                  "{provider: sns, to: ['+4915100000001', '+4915100000002'], from: TOCSIN, " +
                      std::string(kAws) + "}");
  bench.answer(400, sns_error("InvalidParameter", "Invalid parameter: PhoneNumber Reason: no"));
  bench.answer(200, kTook);
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.handles, ::testing::ElementsAre(
                               ::testing::Pair("refused", "+4915100000001 InvalidParameter")));
  const HttpRequest& request = bench.http.requests.back();
  EXPECT_EQ(request.url, "https://sns.eu-central-1.amazonaws.com");
  EXPECT_THAT(request.body, ::testing::EndsWith("&PhoneNumber=%2B4915100000002"));
  EXPECT_THAT(request.body, HasSubstr("AWS.SNS.SMS.SMSType"));
  EXPECT_THAT(request.body, HasSubstr("AWS.SNS.SMS.SenderID"));
  EXPECT_TRUE(request.aws.has_value());
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {sms: {provider: sns, to: ['+4915100000001'], " + settings +
                "}}}\n")
        .errors;
  };
  EXPECT_THAT(errors("account_sid: x"), HasSubstr("missing key \"aws\""));
  EXPECT_THAT(errors("from: no name at all, " + std::string(kAws)),
              HasSubstr("at most 11 letters"));
}

}  // namespace
}  // namespace tocsin::actions
