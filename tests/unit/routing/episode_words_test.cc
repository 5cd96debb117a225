// An episode keeps the words it was found with; how it ended is told beside them.
#include <gmock/gmock.h>

#include "tests/unit/routing/issue_life_fixture.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using core::Resolution;
using core::Severity;
using ::testing::ElementsAre;

const core::Labels kNan{{"job", "digits"},
                        {"metric", "loss"},
                        {"rule", "exploding_tensor"},
                        {"run_uid", kRun},
                        {"severity", "error"}};

class EpisodeWords : public IssueLifeTest {
 protected:
  core::Issue found(const std::string& summary = "loss is NaN", std::int64_t step = 302) {
    core::Issue issue = h.issue(kNan, IssueStatus::firing);
    issue.run.attempt = 1;
    issue.summary = summary;
    issue.description = "three of 120 tensors";
    issue.recommendation = "lower the learning rate";
    issue.step = step;
    issue.evidence.threshold = core::NamedNumber{"limit", 1};
    return issue;
  }
  core::Issue ended(Resolution resolution = Resolution::job_ended, std::int64_t step = 357) {
    core::Issue issue = h.issue(kNan, IssueStatus::resolved);
    issue.run.attempt = 1;
    issue.summary = "The job ended while this fired.";
    issue.step = step;
    issue.resolution = resolution;
    return issue;
  }
  static void expect_found(const core::Issue& issue) {
    EXPECT_EQ(issue.summary, "loss is NaN");
    EXPECT_EQ(issue.description, "three of 120 tensors");
    EXPECT_EQ(issue.recommendation, "lower the learning rate");
    EXPECT_EQ(issue.step, 302);
    EXPECT_TRUE(issue.evidence.threshold.has_value());
  }
};

TEST_F(EpisodeWords, AResolveOfAnyProducerLeavesThemAndIsTheEnding) {
  h.report(found());
  const std::string first = view(kNan).issue.event_id;
  h.report(found("still NaN", 310));
  h.report(ended());
  const core::Issue& issue = view(kNan).issue;
  expect_found(issue);
  EXPECT_EQ(issue.event_id, first);
  ASSERT_TRUE(issue.ending);
  EXPECT_EQ(issue.ending->summary, "The job ended while this fired.");
  EXPECT_EQ(issue.ending->step, 357);
  EXPECT_EQ(issue.resolution, Resolution::job_ended);
}

TEST_F(EpisodeWords, AResolveThatSaysTheEndItselfIsTakenAtItsWord) {
  h.report(found());
  core::Issue end = ended();
  end.summary = "loss is NaN";
  end.ending = core::Ending{"Back to normal for metric loss.", {}, 360, 400};
  h.report(end);
  expect_found(view(kNan).issue);
  EXPECT_EQ(view(kNan).issue.ending->summary, "Back to normal for metric loss.");
  EXPECT_EQ(view(kNan).issue.ending->step, 360);
}

TEST_F(EpisodeWords, AResolveThatRepeatsWhatWasFoundSaysNothingOfTheEnd) {
  h.report(found());
  core::Issue end = ended();
  end.summary = "loss is NaN";
  h.report(end);
  EXPECT_EQ(view(kNan).issue.ending->summary, "");
}

TEST_F(EpisodeWords, AMoreSevereReportTakesOverAndALesserOneDoesNot) {
  core::Labels worse = kNan;
  worse.set("severity", "critical");
  h.report(found());
  core::Issue raised = found("all tensors are NaN", 305);
  raised.labels = worse;
  raised.severity = Severity::critical;
  h.report(raised);
  h.report(found("one tensor is NaN", 310));
  EXPECT_EQ(view(kNan).issue.summary, "all tensors are NaN");
  EXPECT_EQ(view(kNan).issue.severity, Severity::critical);
  EXPECT_EQ(view(kNan).issue.labels.get("severity"), "critical");
}

TEST_F(EpisodeWords, TheyAreKeptThroughKillsAndReadFromOlderRecords) {
  h.report(found());
  h.crash();
  h.report(found("still NaN", 310));
  h.crash();
  h.report(ended());
  h.crash();
  expect_found(view(kNan).issue);
  EXPECT_EQ(view(kNan).issue.ending->summary, "The job ended while this fired.");
}

TEST_F(EpisodeWords, AnEndFromBeforeTheNewestReportEndsNothing) {
  h.report(found());
  core::Issue late = ended();
  h.at(1s);
  h.report(found("still NaN", 310));
  late.sequence = 0;
  late.source = "/other";
  h.report(late);  // of a time before the newest report
  EXPECT_TRUE(view(kNan).firing);
}

TEST_F(EpisodeWords, WhatEndsWithItsJobBeforeAnybodyHeardIsToldOnceAsItIs) {
  h.tree.group_by = {{"job", "run_uid"}};
  h.tree.group_wait = 30s;
  h.open();
  h.report(found());
  h.at(100ms);
  h.report(ended());
  h.at(5s);
  ASSERT_EQ(h.sent.size(), 1U) << "an end is told within seconds, not after group_wait";
  const core::Notification& message = h.sent.front();
  EXPECT_FALSE(message.firing);
  EXPECT_EQ(message.reason, "first");
  EXPECT_EQ(message.firing_count, 0U);
  EXPECT_EQ(message.resolved_count, 1U);
  const core::Issue& told = message.issues.front().issue;
  expect_found(told);
  EXPECT_EQ(told.status, IssueStatus::resolved);
  EXPECT_EQ(told.resolution, Resolution::job_ended);
  EXPECT_TRUE(told.ends_at);
  EXPECT_EQ(told.ending->summary, "The job ended while this fired.");
}

TEST_F(EpisodeWords, WhoKeepsNoIncidentOpenHearsOfSuchAnEndOnlyOnce) {
  Integration mail = webhook("mail");
  mail.stateful = false;
  h.integrations = {webhook("oncall"), mail};
  h.integrations[1].receiver = "oncall";
  h.open();
  h.report(found());
  h.report(ended());
  h.at(1h);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 0/1 over", "first open mail 0/1 over",
                                    "all_resolved close oncall 0/1 over"));
}

TEST_F(EpisodeWords, WhatRecoversBeforeAnybodyHeardIsToldToNobody) {
  h.report(found());
  h.report(ended(Resolution::recovered));
  h.at(1h);
  EXPECT_TRUE(h.said().empty());
}

TEST_F(EpisodeWords, TheRouterSaysAnEndThatNoProducerSaid) {
  h.report(found());
  h.job(core::JobPhase::ended, 1);
  expect_found(view(kNan).issue);
  EXPECT_EQ(view(kNan).issue.ending->summary, "The job ended while this fired.");
  core::Issue said = ended();
  said.summary = "";
  said.ending = core::Ending{"The job ended while this fired for metric loss.", {}, 357, {}};
  h.report(said);
  EXPECT_EQ(view(kNan).issue.ending->step, 357) << "the producer knows more";
}

}  // namespace
}  // namespace tocsin::routing
