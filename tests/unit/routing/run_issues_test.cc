// What the end, the next attempt and the loss of a run mean for its issues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/issue_life_fixture.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using core::JobPhase;
using core::Resolution;
using ::testing::ElementsAre;

using RunIssues = IssueLifeTest;

TEST_F(RunIssues, TheEndOfAJobResolvesItsIssues) {
  h.job(JobPhase::started, 1);
  h.fire(kRunA);
  h.fire(kLiving);
  h.at(1min);
  h.job(JobPhase::ended, 1);
  EXPECT_FALSE(view(kRunA).firing);
  EXPECT_EQ(view(kRunA).issue.resolution, Resolution::job_ended);
  EXPECT_TRUE(view(kLiving).firing);
  h.at(6min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0", "some_resolved update oncall 1/1"));
}

TEST_F(RunIssues, AnIssueThatGoesOnInAnotherRunEndsWithThatOne) {
  const std::string other = "00000000-8c1f-5278-82e3-ea3595bc5999";
  const core::Labels disk{{"rule", "disk_full"}, {"host", "a"}};
  const auto in_run = [&](const std::string& run) {
    core::Issue report = h.issue(disk, IssueStatus::firing);
    report.run.uid = *core::parse_run_uid(run);
    report.run.attempt = 1;
    return report;
  };
  h.job(JobPhase::started, 1);
  h.report(in_run(kRun));
  h.report(in_run(other));
  h.job(JobPhase::ended, 1);
  EXPECT_TRUE(view(disk).firing) << "it was the run before";
  h.job(JobPhase::started, 2);
  core::Issue back = in_run(kRun);
  back.run.attempt = 2;
  h.report(back);
  h.job(JobPhase::ended, 2);
  EXPECT_FALSE(view(disk).firing);
}

TEST_F(RunIssues, AHigherAttemptSupersedesTheIssuesOfLowerOnes) {
  h.job(JobPhase::started, 1);
  h.fire(kRunA);
  h.at(1s);
  h.job(JobPhase::started, 2);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved superseded"));
  core::Issue again = h.issue(kRunA, IssueStatus::firing);
  again.run.attempt = 2;
  again.starts_at = kStart;  // its clock is behind
  h.report(again);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved superseded", "2 firing"));
  h.job(JobPhase::ended, 1);  // late, of the old attempt
  EXPECT_TRUE(view(kRunA).firing);
}

TEST_F(RunIssues, ANextAttemptWhoseProducerCountsFromTheBeginningAgainIsNotStale) {
  h.fire(kRunA);
  h.resolve(kRunA);
  h.fire(kRunA);
  h.at(1min);
  core::Issue next = h.issue(kRunA, IssueStatus::firing);
  next.run.attempt = 2;
  next.sequence = 1;
  h.report(next);
  EXPECT_TRUE(view(kRunA).firing);
  EXPECT_EQ(view(kRunA).episodes, 2U);
  EXPECT_EQ(h.router().stats().stale, 0U);
  core::Issue resolve = h.issue(kRunA, IssueStatus::resolved);
  resolve.run.attempt = 2;
  resolve.sequence = 2;
  h.report(resolve);
  EXPECT_FALSE(view(kRunA).firing);
}

TEST_F(RunIssues, AnIssueOfTheNextAttemptSupersedesEvenBeforeItsJobEvent) {
  h.fire(kRunA);
  h.at(1s);
  core::Issue next = h.issue(kRunA, IssueStatus::firing);
  next.run.attempt = 2;
  h.report(next);
  EXPECT_THAT(history(), ElementsAre("1 firing", "1 resolved superseded", "2 firing"));
  core::Issue late = h.issue(kRunA, IssueStatus::resolved);
  late.run.attempt = 1;
  h.report(late);
  EXPECT_TRUE(view(kRunA).firing);
  h.job(JobPhase::ended, 1);
  EXPECT_TRUE(view(kRunA).firing);
}

TEST_F(RunIssues, AnIssueReportedAfterTheEndOfItsRunDoesNotStayOpen) {
  h.job(JobPhase::started, 1);
  h.at(1s);
  h.job(JobPhase::ended, 1);
  h.fire(kRunA);
  EXPECT_FALSE(view(kRunA).firing);
  EXPECT_EQ(h.router().stats().firing, 0U);
  EXPECT_EQ(h.router().stats().late_issues, 1U);
  EXPECT_EQ(h.router().stats().orphan_resolves, 0U);
  h.at(10min);
  EXPECT_THAT(h.said(),
              ElementsAre("first open oncall 0/1 over", "all_resolved close oncall 0/1 over"))
      << "it is news all the same";
}

// Its labels name no run: two runs find the same issue, one after the other, within one episode.
class FoundByTwoRuns : public IssueLifeTest {
 protected:
  void found_by(const core::RunUid& run) {
    core::Issue issue = h.issue(kLiving, IssueStatus::firing);
    issue.run.uid = run;
    h.report(issue);
    h.at(h.now() + 1s - kStart);
  }
  core::RunUid first_ = *core::parse_run_uid(kRun);
  core::RunUid other_{{1, 2, 3}};
};

TEST_F(FoundByTwoRuns, TheEndOfTheFirstLeavesAnIssueThatTheOtherFoundSince) {
  found_by(first_);
  found_by(other_);
  h.job(JobPhase::ended, 1);
  EXPECT_TRUE(view(kLiving).firing);
  EXPECT_EQ(view(kLiving).episodes, 1U);
}

TEST_F(FoundByTwoRuns, TheEndOfTheLastOneEndsIt) {
  found_by(other_);
  found_by(first_);
  h.job(JobPhase::ended, 1);
  EXPECT_FALSE(view(kLiving).firing);
  EXPECT_EQ(view(kLiving).issue.resolution, Resolution::job_ended);
  EXPECT_EQ(view(kLiving).episodes, 1U);
}

TEST_F(RunIssues, ARunWithoutSignsOfLifeIsLostAndFoundAgain) {
  h.options.limits.job_lost_after = 2min;
  h.open();
  h.job(JobPhase::started, 1);
  h.fire(kRunA);
  h.at(1min);
  h.job(JobPhase::heartbeat, 1);
  h.at(2min + 59s);
  EXPECT_TRUE(view(kRunA).firing);
  h.at(4min);
  EXPECT_FALSE(view(kRunA).firing);
  const core::Labels lost{{"rule", "job_lost"}, {"job", "digits"}, {"run_uid", kRun}};
  EXPECT_TRUE(view(lost).firing);
  EXPECT_EQ(view(lost).issue.starts_at, kStart + 3min);
  h.job(JobPhase::heartbeat, 1);
  EXPECT_FALSE(view(lost).firing);
}

TEST_F(RunIssues, AHeartbeatThatNobodyWaitsForWritesNoState) {
  h.job(JobPhase::started, 1);
  const auto before = h.changelog;
  h.at(1min);
  h.job(JobPhase::heartbeat, 1);
  EXPECT_EQ(h.changelog, before);
  h.at(2h);
  h.job(JobPhase::heartbeat, 1);
  EXPECT_NE(h.changelog, before);
}

TEST_F(RunIssues, ARunIsForgottenSomeTimeAfterItsEnd) {
  h.job(JobPhase::started, 1);
  h.at(1min);
  h.job(JobPhase::ended, 1);
  EXPECT_EQ(h.changelog.count("run/" + kRun), 1U);
  h.at(25h);
  EXPECT_EQ(h.changelog.count("run/" + kRun), 0U);
}

}  // namespace
}  // namespace tocsin::routing
