#include "actions/message/headline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing_support;

core::Notification firing() {
  core::Notification out = stopped_notification();
  core::Issue& issue = out.issues[0].issue;
  issue.status = core::IssueStatus::firing;
  issue.resolution = core::Resolution::none;
  issue.ends_at.reset();
  issue.ending.reset();
  out.runs.clear();
  return out;
}

core::Notification over(core::Resolution resolution) {
  core::Notification out = firing();
  core::Issue& issue = out.issues[0].issue;
  out.kind = core::NotificationKind::close;
  out.firing = false;
  issue.status = core::IssueStatus::resolved;
  issue.resolution = resolution;
  issue.ends_at = kStart + 60s;
  issue.ending = core::Ending{"Back to normal for metric loss.", "iss_end", 310, 310};
  return out;
}

core::Notification with_stop(const std::string& state, bool checkpoint) {
  core::Notification out = firing();
  core::RunTold told = stopped_run();
  told.outcome.clear();
  told.exit_code.reset();
  told.stop->state = state;
  if (!checkpoint) told.stop->checkpoint.reset();
  out.runs = {told};
  return out;
}

TEST(Headline, SaysSeverityJobFirstSignAndWhatBecameOfIt) {
  EXPECT_EQ(headline(firing()), "[error] llm-7b: loss is NaN since step 302");
  EXPECT_EQ(headline(stopped_notification()),
            "[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint saved");
}

TEST(Headline, SaysHowAStopStands) {
  const auto ends = [](const core::Notification& notification) {
    const std::string line = headline(notification);
    const std::string before = "[error] llm-7b: loss is NaN since step 302";
    EXPECT_THAT(line, StartsWith(before));
    return line.substr(before.size());
  };
  EXPECT_EQ(ends(with_stop("requested", false)), " – stop requested");
  EXPECT_EQ(ends(with_stop("cooperative", false)), " – stopping");
  EXPECT_EQ(ends(with_stop("checkpointing", false)), " – stopping, saving a checkpoint");
  EXPECT_EQ(ends(with_stop("checkpointing", true)), " – stopping, checkpoint saved");
  EXPECT_EQ(ends(with_stop("stopped", true)), " – stopped, checkpoint saved");
  EXPECT_EQ(ends(with_stop("stopped", false)), " – stopped, no checkpoint");
  EXPECT_EQ(ends(with_stop("refused", false)), " – stop refused");
  EXPECT_EQ(ends(with_stop("failed", false)), " – stop failed");
  EXPECT_EQ(ends(with_stop("expired", false)), " – stop not answered");
}

TEST(Headline, OfARunThatEndedByItself) {
  auto notification = stopped_notification();
  core::RunTold& run = notification.runs[0];
  run.stop.reset();
  run.outcome = "failed";
  run.exit_code = 1;
  EXPECT_THAT(headline(notification), EndsWith("since step 302 – job failed, exit code 1"));
  run.outcome = "completed";
  run.exit_code = 0;
  EXPECT_THAT(headline(notification), EndsWith("since step 302 – job completed"));
  run.outcome = "lost";
  run.exit_code.reset();
  EXPECT_THAT(headline(notification), EndsWith("since step 302 – job lost"));
}

TEST(Headline, DoesNotSayTwiceThatAJobFailed) {
  auto notification = firing();
  notification.issues[0].issue.annotations = {{"title", "job has failed"}};
  notification.issues[0].issue.step.reset();
  notification.runs = {stopped_run()};
  notification.runs[0].stop.reset();
  notification.runs[0].outcome = "failed";
  notification.runs[0].exit_code = 139;
  EXPECT_EQ(headline(notification), "[error] llm-7b: job has failed – exit code 139");
}

TEST(Headline, OfAResolvedOneSaysWhatItWasAndWhyItIsOver) {
  EXPECT_EQ(headline(over(core::Resolution::recovered)),
            "[resolved] llm-7b: loss was NaN from step 302 to 310 – recovered");
  EXPECT_THAT(headline(over(core::Resolution::expired)), EndsWith("to 310 – no longer reported"));
  EXPECT_THAT(headline(over(core::Resolution::manual)), EndsWith("to 310 – resolved by hand"));
  EXPECT_THAT(headline(over(core::Resolution::rule_removed)), EndsWith("to 310 – rule removed"));
  EXPECT_THAT(headline(over(core::Resolution::rule_changed)), EndsWith("to 310 – rule changed"));
  auto ended = over(core::Resolution::job_ended);
  EXPECT_THAT(headline(ended), EndsWith("to 310 – job ended"));
  ended.runs = {stopped_run()};
  EXPECT_EQ(headline(ended),
            "[resolved] llm-7b: loss was NaN from step 302 to 310 – stopped, checkpoint saved");
}

TEST(Headline, NeverSaysThatAnEndedEpisodeFires) {
  for (const auto resolution :
       {core::Resolution::recovered, core::Resolution::expired, core::Resolution::manual,
        core::Resolution::superseded, core::Resolution::rule_removed}) {
    auto notification = over(resolution);
    notification.kind = core::NotificationKind::open;  // ended before the first message
    EXPECT_THAT(headline(notification), StartsWith("[resolved]"));
  }
  EXPECT_THAT(headline(stopped_notification()), Not(HasSubstr("FIRING")));
}

TEST(Headline, PutsEachVerbOfATitleIntoThePast) {
  auto notification = over(core::Resolution::recovered);
  auto& title = notification.issues[0].issue.annotations[0].second;
  for (const auto& [present, past] : {std::pair{"gradients are noise", "gradients were noise"},
                                      std::pair{"loss has jumped", "loss had jumped"},
                                      std::pair{"trees have no splits", "trees had no splits"},
                                      std::pair{"loss does not fall", "loss did not fall"},
                                      std::pair{"losses do not fall", "losses did not fall"}}) {
    title = present;
    EXPECT_THAT(headline(notification), HasSubstr(std::string(": ") + past + " from step"));
  }
}

TEST(Headline, StepsOfAnEvaluationAreNamedSo) {
  auto notification = firing();
  notification.issues[0].issue.mode = core::Mode::eval;
  EXPECT_THAT(headline(notification), EndsWith("since eval step 302"));
}

TEST(Headline, NamesTheWorstThatFiresAndNoCountInPlaceOfAName) {
  auto notification = firing();
  notification.issues.insert(notification.issues.begin(),
                             over(core::Resolution::recovered).issues.front());
  notification.issues.push_back(sample_issue("b"));
  notification.issues.back().issue.rule = "overfit";
  notification.firing_count = 2;
  EXPECT_THAT(headline(notification), StartsWith("[error] llm-7b and 1 other: loss is NaN since"));
  EXPECT_THAT(headline(notification), Not(HasSubstr("several")));
}

TEST(Headline, NamesTheWorstAlsoWhereItsRunHasEndedAndALesserOneStillFires) {
  auto notification = stopped_notification();  // an error that ended with its job, which is news
  notification.issues.insert(notification.issues.begin(), firing().issues.front());
  core::Issue& lesser = notification.issues.front().issue;
  lesser.severity = core::Severity::warning;
  lesser.rule = "loss_not_decreasing";
  lesser.annotations = {{"title", "loss (train) is more than twice its first value"},
                        {"summary", "loss (train) is 2.659e+04 at step 183."}};
  notification.firing = true;
  notification.firing_count = 1;
  EXPECT_EQ(headline(notification),
            "[error] llm-7b: loss is NaN since step 302 – stopped, checkpoint saved");
}

TEST(Headline, WithoutATitleBeginsLikeTheSummary) {
  auto notification = firing();
  core::Issue& issue = notification.issues[0].issue;
  issue.annotations.clear();
  issue.step.reset();
  issue.summary = "Disk /data is nearly full: 97 % used (limit 90 %).";
  EXPECT_EQ(headline(notification), "[error] llm-7b: Disk /data is nearly full");
  issue.summary.clear();
  issue.evidence = {};
  issue.labels = {{"rule", "disk_full"}};
  issue.rule = "disk_full";
  EXPECT_EQ(headline(notification), "[error] llm-7b: disk_full");
}

TEST(Headline, CannotBeReorderedForgedOrBroken) {
  auto notification = firing();
  core::Issue& issue = notification.issues[0].issue;
  issue.run.job = "a\r\nSubject: [resolved]\u202egnp\u2066\u200b\x1b[2J\u2028";
  issue.annotations = {{"title", "loss\u202e is \u2069NaN\u0085"}};
  const std::string line = headline(notification);
  for (const char* bad :
       {"\r", "\n", "\u202e", "\u2066", "\u2069", "\u200b", "\x1b", "\u2028", "\u0085"}) {
    EXPECT_THAT(line, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(line, StartsWith("[error] a  Subject: [resolved] gnp"));
}

TEST(Headline, IsCutBetweenCharactersWithAMarkAndKeepsTheOutcome) {
  auto notification = stopped_notification();
  for (std::size_t size = 40; size < 140; ++size) {
    std::string name;
    for (std::size_t i = 0; i < size; ++i) name += "ö";
    notification.issues[0].issue.run.job = name;
    notification.issues[0].issue.annotations = {{"title", name + " is NaN"}};
    const std::string line = headline(notification);
    EXPECT_LE(line.size(), 200u);
    EXPECT_FALSE(core::first_invalid_utf8(line));
    EXPECT_THAT(line, HasSubstr("…"));
    EXPECT_THAT(line, EndsWith(" – stopped, checkpoint saved"));
  }
}

TEST(Headline, OfAMessageWithoutIssuesIsStillOne) {
  core::Notification empty;
  EXPECT_EQ(headline(empty), "[issue]");
}

}  // namespace
}  // namespace tocsin::actions
