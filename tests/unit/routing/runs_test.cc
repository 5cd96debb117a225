// Runs: their newest attempt, and which issues end with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using core::JobPhase;
using core::Resolution;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const core::Labels kNan{{"rule", "nan"}, {"run_uid", kRun}, {"tensor", "a"}};

core::Labels about_the_end(const std::string& rule) {
  return {{"rule", rule}, {"severity", "error"}, {"run_uid", kRun}};
}

class Runs : public ::testing::Test {
 protected:
  RunView run() {
    const auto found = h.router().find_run(*core::parse_run_uid(kRun));
    if (!found) throw std::runtime_error("the router does not know the run");
    return *found;
  }
  core::JobEvent event(JobPhase phase, std::uint32_t attempt) {
    core::JobEvent out;
    out.phase = phase;
    out.run.uid = *core::parse_run_uid(kRun);
    out.run.attempt = attempt;
    out.run.job = "digits";
    out.time = h.now();
    return out;
  }
  void tell(const core::JobEvent& event) {
    h.router().on_job(event, h.now());
    h.commit();
  }
  core::Issue of_attempt(std::uint32_t attempt, const core::Labels& labels = kNan) {
    core::Issue issue = h.issue(labels, IssueStatus::firing);
    issue.run.attempt = attempt;
    return issue;
  }
  bool firing(const core::Labels& labels) {
    return h.router().find_issue(core::issue_key(labels))->firing;
  }
  Harness h;
};

TEST_F(Runs, AreKnownByTheirNewestAttempt) {
  h.open();
  EXPECT_FALSE(h.router().find_run(*core::parse_run_uid(kRun)));
  core::JobEvent started = event(JobPhase::started, 1);
  started.launch = {{"node-a", "00aa/1"}};
  tell(started);
  EXPECT_EQ(run().attempt, 1U);
  EXPECT_THAT(run().launch, ElementsAre(std::pair("node-a", "00aa/1")));
  h.at(10s);
  core::JobEvent beat = event(JobPhase::heartbeat, 1);
  beat.launch = {{"node-a", "00aa/1"}, {"node-b", "00bb/2"}};
  beat.step = 40;
  beat.step_seconds = 0.25;
  tell(beat);
  h.crash();
  EXPECT_EQ(run().launch.size(), 2U) << "a launch is written down at once";
  EXPECT_EQ(run().step, 40);
  EXPECT_EQ(run().step_seconds, 0.25);
  EXPECT_EQ(run().step_time, kStart + 10s);
  h.at(20s);
  core::JobEvent ended = event(JobPhase::ended, 1);
  ended.outcome = "failed";
  tell(ended);
  h.crash();
  EXPECT_EQ(run().ended_at, kStart + 20s);
  EXPECT_EQ(run().outcome, "failed");
  tell(event(JobPhase::started, 2));
  EXPECT_EQ(run().attempt, 2U);
  EXPECT_EQ(run().ended_at, std::nullopt);
  EXPECT_THAT(run().launch, IsEmpty()) << "of the new attempt nothing is known yet";
  EXPECT_EQ(run().step, std::nullopt);
  tell(beat);
  EXPECT_THAT(run().launch, IsEmpty()) << "what an earlier attempt says late changes nothing";
}

TEST_F(Runs, AnIssueMayNameTheNextAttemptFirst) {
  h.open();
  tell(event(JobPhase::started, 1));
  h.report(of_attempt(1));
  h.at(1s);
  h.report(of_attempt(2, about_the_end("other")));
  EXPECT_EQ(run().attempt, 2U);
  EXPECT_FALSE(firing(kNan)) << "of the attempt before";
  h.crash();
  EXPECT_EQ(run().attempt, 2U);
}

TEST_F(Runs, APageThatWasWrittenIsNamedInWhatIsToldAfterwards) {
  const core::Labels failed = about_the_end("job_failed");
  h.tree.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 5min}};
  h.open();
  tell(event(JobPhase::started, 2));
  h.report(of_attempt(2, failed));
  h.report(of_attempt(2));
  h.at(1min);
  core::RunRef of = event(JobPhase::ended, 2).run;
  of.attempt = 1;
  h.router().on_report(of, "old.html", h.now());
  EXPECT_EQ(run().report, "") << "of the attempt before";
  of.attempt = 2;
  h.router().on_report(of, "/pages/digits.html", h.now());
  h.commit();
  h.crash();
  EXPECT_EQ(run().report, "/pages/digits.html");
  const std::size_t before = h.sent.size();
  for (const core::Notification& one : h.sent) {
    EXPECT_THAT(one.issues.front().issue.annotations, IsEmpty()) << "there was none yet";
  }
  h.at(10min);
  ASSERT_GT(h.sent.size(), before);
  EXPECT_THAT(h.sent.back().issues.front().issue.annotations,
              ElementsAre(std::pair("report", "/pages/digits.html")));
  tell(event(JobPhase::started, 3));
  EXPECT_EQ(run().report, "") << "the next attempt has none";
}

TEST_F(Runs, WhatAProducerCallsItsReportStays) {
  h.open();
  tell(event(JobPhase::started, 1));
  h.router().on_report(event(JobPhase::ended, 1).run, "ours.html", h.now());
  core::Issue issue = of_attempt(1);
  issue.annotations = {{"report", "theirs"}};
  h.report(issue);
  h.at(1min);
  EXPECT_THAT(h.sent.back().issues.front().issue.annotations,
              ElementsAre(std::pair("report", "theirs")));
}

TEST_F(Runs, ALateIssueOfAnEarlierAttemptReachesPeopleAndNoActionOfItsRule) {
  h.integrations = {webhook("oncall"), webhook("stop")};
  h.rule_actions = {{"nan", {"stop"}}};
  h.open();
  tell(event(JobPhase::started, 2));
  h.report(of_attempt(1));
  EXPECT_FALSE(firing(kNan));
  EXPECT_EQ(h.router().stats().late_issues, 1U);
  h.at(1h);
  EXPECT_THAT(h.said(),
              ElementsAre("first open oncall 0/1 over", "all_resolved close oncall 0/1 over"));
}

TEST_F(Runs, AnIssueThatWaitedWhileItsRunWentOnReachesNoActionOfItsRule) {
  h.integrations = {webhook("oncall"), webhook("stop")};
  h.rule_actions = {{"nan", {"stop"}}};
  h.open();
  h.router().set_behind(true, h.now());
  h.report(of_attempt(1));
  tell(event(JobPhase::started, 2));
  h.router().set_behind(false, h.now());
  h.at(10min);
  EXPECT_THAT(h.said(),
              ElementsAre("first open oncall 0/1 over", "all_resolved close oncall 0/1 over"));
}

TEST_F(Runs, WhatAnActionDeclinedOfAJobThatIsOverIsNotAskedForAgain) {
  h.integrations = {webhook("oncall"), webhook("stop")};
  h.rule_actions = {{"nan", {"stop"}}};
  h.open();
  tell(event(JobPhase::started, 1));
  h.report(of_attempt(1));
  h.at(1s);
  tell(event(JobPhase::ended, 1));
  int asked = 0;
  for (int minutes = 1; minutes < 60; minutes += 5) {
    h.at(std::chrono::minutes(minutes));
    for (const core::Notification& sent : std::exchange(h.sent, {})) {
      const bool stop = sent.receiver == "stop";
      asked += stop ? 1 : 0;
      h.deliver(sent, stop ? core::DeliveryState::cancelled : core::DeliveryState::delivered);
    }
  }
  EXPECT_EQ(asked, 1);
}

TEST_F(Runs, AnIssueWithoutAnAttemptIsOfNoneInParticular) {
  h.open();
  tell(event(JobPhase::started, 2));
  h.report(of_attempt(0));
  EXPECT_TRUE(firing(kNan)) << "not taken for an earlier attempt";
  tell(event(JobPhase::started, 3));
  EXPECT_TRUE(firing(kNan));
  h.report(of_attempt(3));
  h.report(of_attempt(0));
  EXPECT_EQ(h.router().stats().stale, 0U);
  EXPECT_EQ(run().attempt, 3U);
  tell(event(JobPhase::ended, 3));
  EXPECT_FALSE(firing(kNan)) << "the run is over, whichever attempt it was";
}

TEST_F(Runs, IssuesAboutTheEndOutliveIt) {
  h.open();
  for (const char* rule : {"job_failed", "job_lost", "stop_failed"}) {
    h.changelog.clear();
    h.stop_until(0s);
    h.open();
    tell(event(JobPhase::started, 1));
    h.report(of_attempt(1, about_the_end(rule)));
    tell(event(JobPhase::ended, 1));
    EXPECT_TRUE(firing(about_the_end(rule)));
    h.at(1min);
    EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0")) << rule;
    tell(event(JobPhase::started, 2));
    EXPECT_FALSE(firing(about_the_end(rule))) << "the next attempt";
    h.at(10min);
    EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  }
}

TEST_F(Runs, AnIssueAboutTheEndThatComesAfterItIsToldAndEndsWithTime) {
  h.open();
  tell(event(JobPhase::started, 1));
  tell(event(JobPhase::ended, 1));
  h.report(of_attempt(1, about_the_end("job_failed")));
  h.at(1min);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(23h);
  EXPECT_TRUE(firing(about_the_end("job_failed")));
  h.at(25h);
  EXPECT_THAT(h.said().back(), "all_resolved close oncall 0/1 over");
}

TEST_F(Runs, ARunThatWasGivenUpForLostMayComeBack) {
  h.open();
  tell(event(JobPhase::started, 1));
  core::JobEvent lost = event(JobPhase::ended, 1);
  lost.outcome = "lost";
  h.at(10s);
  lost.time = h.now();
  tell(lost);
  EXPECT_TRUE(run().ended_at);
  h.at(20s);
  tell(event(JobPhase::heartbeat, 1));
  EXPECT_FALSE(run().ended_at);
  h.report(of_attempt(1));
  EXPECT_TRUE(firing(kNan)) << "it is watched again";
}

TEST_F(Runs, OneThatOnlyAnIssueNamedIsNeverLost) {
  h.options.limits.job_lost_after = 1min;
  h.open();
  h.report(of_attempt(1));
  h.at(1h);
  EXPECT_FALSE(run().lost);
  EXPECT_TRUE(firing(kNan));
}

}  // namespace
}  // namespace tocsin::routing
