#include "actions/message/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/message/episode_words.h"
#include "actions/transport/redact.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing_support;

const Sender kSender{"c1", "https://tocsin.example", {"--out", "/data/tocsin-data"}};

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
  EXPECT_EQ(text_body(sample_notification(), kSender),
            "[error] digits: gradient/conv1.weight holds 17 values that are NaN or infinite since "
            "step 412\n"
            "\n"
            "gradient/conv1.weight holds 17 values that are NaN or infinite.\n"
            "\n"
            "  Observed    non_finite = 17; limit: >= 1\n"
            "  Where       gradient/conv1.weight, worker_0\n"
            "  At          step 412 (train)\n"
            "  Since       2026-01-02 03:04:04 UTC\n"
            "  Rule        exploding_tensor\n"
            "\n"
            "What to do\n"
            "  Lower the learning rate or clip gradients.\n"
            "\n"
            "Run\n"
            "  Job         digits\n"
            "  Run         4e3046d4-8c1f-5278-82e3-ea3595bc5999, attempt 1\n"
            "  Host        h1\n"
            "\n"
            "Links\n"
            "  Issue       iss_6c5duorosylmw5zjzjdy55lrk5\n"
            "  Page        https://tocsin.example/issues/gkqdesrf3zwa7lyoanc6on5boe/1\n"
            "  Tocsin      https://tocsin.example\n"
            "\n"
            "Next\n"
            "  # Show this issue\n"
            "  tocsin issues show iss_6c5duorosylmw5zjzjdy55lrk5 --out /data/tocsin-data\n"
            "  # Show the run\n"
            "  tocsin status 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --out /data/tocsin-data\n"
            "  # Take it on: no repeats and no escalation\n"
            "  tocsin ack iss_6c5duorosylmw5zjzjdy55lrk5 --note 'looking at it' --out "
            "/data/tocsin-data\n"
            "  # Mute it for two hours\n"
            "  tocsin silence add --run 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --for 2h --comment "
            "known --out /data/tocsin-data\n"
            "\n"
            "-- \n"
            "Sent by Tocsin to receiver oncall (first), notification ntf_one\n");
}

TEST(TextBody, HandsOverARunThatWasStopped) {
  EXPECT_EQ(
      text_body(stopped_notification(), kSender),
      "[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint saved\n"
      "\n"
      "loss became NaN at train step 302 on worker_0.\n"
      "Its largest magnitude was 5.2 at step 301.\n"
      "\n"
      "  Observed    non_finite = 1; limit: >= 1\n"
      "  Where       loss, worker_0\n"
      "  At          step 302 (train)\n"
      "  Since       2026-01-02 03:04:04 UTC\n"
      "  Rule        exploding_tensor\n"
      "\n"
      "What Tocsin did\n"
      "  Stop        cmd_7f3k, requested at 2026-01-02 03:04:05 UTC by rule exploding_tensor "
      "(checkpoint_then_stop)\n"
      "  Replies     8 of 8 ranks stopped at step 414, exit code 77\n"
      "  Checkpoint  gpu-17:/data/digits/414.pt (step 414, 1.3 GB)\n"
      "  Run ended   stopped by rule, exit code 77, last step 414, 2026-01-02 03:04:07 UTC after "
      "10m 2s\n"
      "\n"
      "What to do\n"
      "  Lower the learning rate or clip gradients.\n"
      "\n"
      "Run\n"
      "  Job         llm-7b\n"
      "  Run         4e3046d4-8c1f-5278-82e3-ea3595bc5999, attempt 1\n"
      "  Hosts       gpu-17, gpu-18\n"
      "  Ranks       8\n"
      "  Labels      owner=ada, team=vision, dataset=mnist\n"
      "\n"
      "Links\n"
      "  Issue       iss_6c5duorosylmw5zjzjdy55lrk5\n"
      "  Page        https://tocsin.example/issues/gkqdesrf3zwa7lyoanc6on5boe/1\n"
      "  Tocsin      https://tocsin.example\n"
      "\n"
      "Next\n"
      "  # Show this issue\n"
      "  tocsin issues show iss_6c5duorosylmw5zjzjdy55lrk5 --out /data/tocsin-data\n"
      "  # Show the run\n"
      "  tocsin status 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --out /data/tocsin-data\n"
      "  # Write a report about the run\n"
      "  tocsin report 4e3046d4-8c1f-5278-82e3-ea3595bc5999 --out /data/tocsin-data\n"
      "\n"
      "-- \n"
      "Sent by Tocsin to receiver oncall (first), notification ntf_stopped\n");
}

/// A run of twenty issues: the loss, then gradients one after the other, of two rules.
core::Notification twenty() {
  core::Notification out = stopped_notification();
  for (int i = 1; i < 20; ++i) {
    core::NotifiedIssue next = sample_issue("gradient/layer" + std::to_string(i) + ".weight");
    next.issue.annotations = {{"title", "gradient/layer" + std::to_string(i) + ".weight has NaN"}};
    next.issue.run.job = "llm-7b";
    next.issue.step = 302 + i;
    next.issue.description = std::string(1500, 'd');
    if (i > 10) next.issue.rule = "update_large";
    if (i > 10)
      next.issue.recommendation = "Lower the learning rate, warm it up, or clip gradients.";
    next.issue.status = core::IssueStatus::resolved;
    next.issue.resolution = core::Resolution::job_ended;
    out.issues.push_back(std::move(next));
  }
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

TEST(TextBody, FoldsWhatFollowedIntoOneListAndSaysEachAdviceOnce) {
  const std::string text = text_body(twenty(), kSender);
  EXPECT_LT(text.size(), 5000u);
  EXPECT_EQ(count(text, "19 issues followed\n"), 1u);
  for (int i = 1; i < 20; ++i) {
    const std::string name = "gradient/layer" + std::to_string(i) + ".weight has NaN";
    EXPECT_EQ(
        count(text, "  ERROR    " + name + " (step " + std::to_string(302 + i) + ", worker_0, "),
        1u);
  }
  EXPECT_EQ(count(text, "Lower the learning rate or clip gradients."), 1u);
  EXPECT_EQ(count(text, "Lower the learning rate, warm it up, or clip gradients."), 1u);
  EXPECT_EQ(count(text, std::string(100, 'd')), 0u);
  // In the order in which a person reads.
  std::size_t before = 0;
  for (const char* part :
       {"[error] llm-7b: loss is NaN since step 302 – stopped", "loss became NaN",
        "What Tocsin did", "Checkpoint  gpu-17:/data/digits/414.pt", "What to do",
        "19 issues followed", "\nRun\n", "\nLinks\n", "\nNext\n", "tocsin issues show iss_"}) {
    const std::size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    EXPECT_GE(at, before) << part;
    before = at;
  }
}

TEST(HtmlBody, OfTwentyIssuesIsShort) {
  const std::string html = html_body(twenty(), kSender);
  EXPECT_LT(html.size(), 12'000u);
  EXPECT_EQ(count(html, "<li>gradient/layer"), 19u);
  EXPECT_EQ(count(html, "clip gradients."), 2u);
  EXPECT_EQ(
      count(html,
            "<h1>[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint saved</h1>"),
      1u);
}

TEST(TextBody, StaysShortHoweverManyAndHowLongTheyAre) {
  auto notification = twenty();
  notification.firing = false;
  const std::string megabyte(1 << 20, 'x');
  core::Issue& lead = notification.issues[0].issue;
  lead.summary = lead.description = lead.recommendation = lead.runbook_url = megabyte;
  lead.evidence.observed.name = megabyte;
  notification.runs[0].hosts.assign(5000, megabyte.substr(0, 1000));
  for (int i = 0; i < 1000; ++i)
    notification.runs[0].labels.set("label" + std::to_string(i), megabyte.substr(0, 1000));
  for (int i = 0; i < 500; ++i) {
    notification.issues.push_back(sample_issue("t" + std::to_string(i)));
    notification.issues.back().issue.recommendation = std::to_string(i) + megabyte.substr(0, 5000);
  }
  for (int i = 0; i < 100; ++i) notification.runs.push_back(notification.runs[0]);
  const std::string text = text_body(notification, kSender);
  EXPECT_LT(text.size(), 32u * 1024);
  EXPECT_THAT(text, HasSubstr("519 issues followed\n"));
  EXPECT_THAT(text, HasSubstr("… 489 more issues are not shown.\n"));
  EXPECT_THAT(text, HasSubstr("… 4992 more\n"));  // hosts
  EXPECT_LT(html_body(notification, kSender).size(), 48u * 1024);
}

TEST(TextBody, EveryShortenedTextHasAMark) {
  auto notification = sample_notification();
  core::Issue& issue = notification.issues[0].issue;
  issue.summary = std::string(5000, 's');
  issue.description = std::string(5000, 'd');
  issue.recommendation = std::string(5000, 'r');
  issue.labels.set("metric", std::string(5000, 'm'));
  const std::string text = text_body(notification, kSender);
  for (const char* end : {"s…", "d…", "r…", "m…"}) EXPECT_THAT(text, HasSubstr(end));
}

TEST(TextBody, NamesThePageOfARun) {
  auto notification = sample_notification();
  notification.issues[0].issue.annotations = {{"report", "https://reports.example/digits.html"}};
  EXPECT_THAT(text_body(notification, {"c1", "", {}}),
              HasSubstr("  Report      https://reports.example/digits.html\n"));
  EXPECT_THAT(html_body(notification, {"c1", "", {}}),
              HasSubstr("<a href=\"https://reports.example/digits.html\">"));
  notification = stopped_notification();
  notification.runs[0].report = "https://reports.example/llm.html";
  EXPECT_THAT(text_body(notification, kSender),
              HasSubstr("  Report      https://reports.example/llm.html\n"));
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
              HasSubstr("  Caused by   loss_spike (metric=loss) at train step 411\n"));
  notification.issues[0].issue.caused_by.push_back(cause);  // another kind of the same finding
  EXPECT_THAT(text_body(notification, {}),
              HasSubstr("  Caused by   loss_spike (metric=loss) at train step 411\n"));
}

TEST(TextBody, SaysWhatWasFoundAndHowItEnded) {
  auto notification = sample_notification("n", core::NotificationKind::close);
  notification.issues[0].issue.ending =
      core::Ending{"Back to normal for metric loss.", "iss_e", 420, 420};
  const std::string text = text_body(notification, {});
  EXPECT_THAT(text, StartsWith("[resolved] digits: "));
  EXPECT_THAT(text, HasSubstr("from step 412 to 420 – recovered\n"));
  EXPECT_THAT(text, HasSubstr("gradient/conv1.weight holds 17 values that are NaN or infinite.\n"));
  EXPECT_THAT(text, HasSubstr("  Observed    non_finite = 17; limit: >= 1\n"));
  EXPECT_THAT(text,
              HasSubstr("How it ended\n  Ended       recovered at step 420, 2026-01-02 03:05:05 "
                        "UTC, after 1m 1s\n  Reason      Back to normal for metric loss.\n"));
  EXPECT_THAT(text, Not(HasSubstr("What to do")));
}

TEST(TextBody, OfAnIssueWithoutARunNamesNoRun) {
  auto notification = sample_notification();
  notification.issues[0].issue.run = {};
  notification.issues[0].issue.labels = {{"rule", "disk_full"}, {"node", "n1"}};
  const std::string text = text_body(notification, kSender) + html_body(notification, kSender);
  EXPECT_THAT(text, Not(HasSubstr("00000000")));
  EXPECT_THAT(text, Not(HasSubstr("attempt 0")));
}

TEST(TextBody, ARunThatGoesOnIsSaidToGoOn) {
  auto notification = sample_notification();
  notification.runs = {stopped_run()};
  notification.runs[0].outcome.clear();
  notification.runs[0].stop.reset();
  EXPECT_THAT(text_body(notification, kSender),
              HasSubstr("What Tocsin did\n  Stop        not requested; the run continues\n"));
}

TEST(TextBody, TellsWhyNoCheckpointWasSavedAndWhoAsked) {
  auto notification = stopped_notification();
  core::StopTold& stop = *notification.runs[0].stop;
  stop.checkpoint.reset();
  stop.checkpoint_failure = "No space left on device";
  stop.rule.clear();
  stop.requested_by = "ada@node-7";
  stop.reason = "wrong learning rate";
  const std::string text = text_body(notification, kSender);
  EXPECT_THAT(text, StartsWith("[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint "
                               "failed\n"));
  EXPECT_THAT(text, HasSubstr("  Checkpoint  not saved: No space left on device\n"));
  EXPECT_THAT(text, HasSubstr(" by ada@node-7 (checkpoint_then_stop)\n"));
  EXPECT_THAT(text, HasSubstr("  Reason      wrong learning rate\n"));
}

TEST(TextBody, TheShortFormStillSaysWhatWasFoundAndWhatBecameOfIt) {
  auto notification = twenty();
  notification.minimal = true;
  const std::string text = text_body(notification, kSender);
  EXPECT_LT(text.size(), 1200u);
  for (const char* part : {"loss is NaN since step 302 – stopped, checkpoint saved",
                           "loss became NaN at train step 302", "19 more issues are not shown.",
                           "tocsin issues show iss_"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(TextBody, CountsWhatItLeavesOut) {
  auto notification = sample_notification();
  notification.truncated = 7;
  const std::string text = text_body(notification, {});
  EXPECT_THAT(text, HasSubstr("7 issues followed\n  … 7 more issues are not shown."));
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
  EXPECT_EQ(printable("a\nb\x01\u202e", 100), "a b  ");
  EXPECT_EQ(printable("aöb", 4), "aöb");
  EXPECT_EQ(printable("aöbcd", 5), "a…");
}

}  // namespace
}  // namespace tocsin::actions
