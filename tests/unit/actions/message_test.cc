#include "actions/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/redact.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;

TEST(Headline, NamesStatusCountSeverityRuleAndJob) {
  auto notification = sample_notification();
  EXPECT_EQ(headline(notification), "[FIRING:1 error] exploding_tensor digits");
  notification.issues.push_back(sample_issue("b"));
  notification.issues[1].issue.rule = "overfit";
  notification.issues[1].issue.severity = core::Severity::critical;
  notification.firing_count = 2;
  EXPECT_EQ(headline(notification), "[FIRING:2 critical] several rules digits");
  EXPECT_EQ(headline(sample_notification("n", core::NotificationKind::close)),
            "[RESOLVED] exploding_tensor digits");
}

TEST(EvidenceSentence, SaysValueLimitStepAndPlace) {
  EXPECT_EQ(evidence_sentence(sample_issue().issue),
            "non_finite is 17, limit >= 1, at step 412 (train) in gradient/conv1.weight, worker_0");
}

TEST(EvidenceSentence, PrintsWhatIsNoNumber) {
  auto issue = sample_issue().issue;
  issue.evidence.observed = {"loss", std::nan("")};
  issue.evidence.threshold.reset();
  issue.step.reset();
  EXPECT_EQ(evidence_sentence(issue), "loss is NaN in gradient/conv1.weight, worker_0");
}

TEST(TextBody, IsWhatAPersonNeeds) {
  EXPECT_EQ(text_body(sample_notification(), {"c1", "https://tocsin.example"}),
            "ERROR  exploding_tensor\n"
            "gradient/conv1.weight holds 17 values that are NaN or infinite.\n"
            "\n"
            "  Seen        non_finite = 17; limit: >= 1\n"
            "  Where       gradient/conv1.weight, worker_0\n"
            "  At          step 412 (train)\n"
            "  Since       2026-01-02 03:04:04 UTC\n"
            "  Run         4e3046d4-8c1f-5278-82e3-ea3595bc5999, attempt 1, job digits\n"
            "  What to do  Lower the learning rate or clip gradients.\n"
            "\n"
            "https://tocsin.example\n"
            "\n"
            "-- \n"
            "Sent by Tocsin to receiver oncall (first), notification ntf_one\n");
}

TEST(TextBody, NamesThePageOfARun) {
  auto notification = sample_notification();
  notification.issues[0].issue.annotations = {{"report", "https://reports.example/digits.html"}};
  EXPECT_THAT(text_body(notification, {"c1", ""}),
              HasSubstr("  Report      https://reports.example/digits.html\n"));
  EXPECT_THAT(html_body(notification, {"c1", ""}),
              HasSubstr("<a href=\"https://reports.example/digits.html\">"));
}

TEST(TextBody, SaysWhatCameBefore) {
  auto notification = sample_notification();
  core::Cause cause;
  cause.rule = "loss_spike";
  cause.unit = "metric=loss";
  cause.mode = core::Mode::train;
  cause.step = 411;
  notification.issues[0].issue.caused_by.push_back(cause);
  EXPECT_THAT(text_body(notification, {}),
              HasSubstr("  Came after  loss_spike (metric=loss) at train step 411\n"));
}

TEST(TextBody, SaysHowAResolvedIssueEnded) {
  const std::string text = text_body(sample_notification("n", core::NotificationKind::close), {});
  EXPECT_THAT(text, HasSubstr("RESOLVED  exploding_tensor"));
  EXPECT_THAT(text, HasSubstr("Until       2026-01-02 03:05:05 UTC (recovered)"));
  EXPECT_THAT(text, Not(HasSubstr("What to do")));
}

TEST(TextBody, CountsWhatItLeavesOut) {
  auto notification = sample_notification();
  notification.truncated = 7;
  EXPECT_THAT(text_body(notification, {}), HasSubstr("7 more are not shown here."));
}

TEST(HtmlBody, EscapesEverythingThatComesFromData) {
  auto notification = sample_notification();
  notification.issues[0].issue.summary = "<img src=x onerror='alert(1)'>&\"";
  notification.issues[0].issue.runbook_url = "javascript:alert(1)";
  const std::string html = html_body(notification, {});
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, HasSubstr("&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;&quot;"));
  EXPECT_THAT(html, Not(HasSubstr("href=\"javascript")));
  notification.issues[0].issue.runbook_url = "https://example.com/a?b=\"c";
  EXPECT_THAT(html_body(notification, {}), HasSubstr("href=\"https://example.com/a?b=&quot;c\""));
}

TEST(Redact, FindsASecretInItsEncodingsToo) {
  const std::string secret = "p@ss word/1";
  EXPECT_EQ(redact("x p@ss word/1 y", {secret}), "x <redacted> y");
  EXPECT_EQ(redact("x p%40ss%20word%2F1 y", {secret}), "x <redacted> y");
  EXPECT_EQ(redact("x " + base64(secret) + " y", {secret}), "x <redacted> y");
  EXPECT_EQ(redact("no", {"no"}), "no");
}

TEST(Printable, CutsBetweenLettersAndRemovesControls) {
  EXPECT_EQ(printable("a\nb\x01", 100), "a b ");
  EXPECT_EQ(printable("aöb", 2), "a");
  EXPECT_EQ(printable("aöb", 3), "aö");
}

}  // namespace
}  // namespace tocsin::actions
