// What a message says of its runs, and how soon it comes when one ends or begins.
#include <gmock/gmock.h>

#include "tests/unit/routing/issue_life_fixture.h"

namespace tocsin::routing {
namespace {

using core::IssueStatus;
using core::JobPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kOther = "9f1c0000-0000-4000-8000-000000000001";

class RunTold : public ::testing::Test {
 protected:
  RunTold() {
    h.tree.group_by = {{"job", "run_uid"}};
    h.options.limits.retention = 24h;
  }
  core::Issue issue(const std::string& rule, IssueStatus status = IssueStatus::firing,
                    const std::string& run = kRun, std::uint32_t attempt = 1) {
    core::Issue out = h.issue({{"job", "digits"}, {"rule", rule}, {"run_uid", run}}, status);
    out.run.attempt = attempt;
    out.run.job = "digits";
    out.summary = rule + " was found";
    return out;
  }
  core::Issue recovered(const std::string& rule) {
    core::Issue out = issue(rule, IssueStatus::resolved);
    out.resolution = core::Resolution::recovered;
    return out;
  }
  core::JobEvent job(JobPhase phase, std::uint32_t attempt = 1) {
    core::JobEvent event;
    event.phase = phase;
    event.run.uid = *core::parse_run_uid(kRun);
    event.run.attempt = attempt;
    event.run.job = "digits";
    event.time = h.now();
    event.world_size = 2;
    event.step = 357;
    event.launch = {{"node-7", "ab/1"}, {"node-8", "cd/2"}};
    event.labels = {{"team", "nlp"}};
    return event;
  }
  void tell(const core::JobEvent& event) {
    h.router().on_job(event, h.now());
    h.commit();
  }
  void end(const std::string& outcome) {
    core::JobEvent event = job(JobPhase::ended);
    event.outcome = outcome;
    event.exit_code = 77;
    event.ended_at = h.now();
    tell(event);
  }
  core::Command stop(const std::string& rule) {
    core::Command out;
    out.command_id = "cmd_1";
    out.action = "stop";
    out.run = *core::parse_run_uid(kRun);
    out.requested_by = rule.empty() ? "ada@desk" : "router";
    out.reason.rule = rule;
    out.reason.summary = "loss is NaN";
    out.issued_at = h.now();
    out.args = core::ValueMap{{"mode", "checkpoint_then_stop"}};
    return out;
  }
  void ask(const std::string& rule) {
    h.router().on_stop(stop(rule), h.now());
    h.commit();
  }
  void answer(const std::string& phase, std::uint32_t rank, const std::string& path = "",
              std::uint32_t attempt = 1) {
    core::Ack ack;
    ack.command_id = "cmd_1";
    ack.action = "stop";
    ack.phase = phase;
    ack.run = *core::parse_run_uid(kRun);
    ack.attempt = attempt;
    ack.rank = rank;
    ack.node = "node-7";
    ack.step = 305;
    ack.checkpoint_path = path;
    ack.checkpoint_bytes = path.empty() ? 0 : 42;
    if (phase == "stopped") ack.exit_code = 77;
    ack.time = h.now();
    h.router().on_ack(ack, h.now());
    h.commit();
  }
  void stop_and_end(const std::string& rule) {
    ask(rule);
    for (std::uint32_t rank : {0U, 1U}) answer("accepted", rank);
    answer("checkpoint_done", 0, "/ckpt/305.pt");
    for (std::uint32_t rank : {0U, 1U}) answer("stopped", rank);
    end("stopped_by_rule");
  }
  Harness h;
};

TEST_F(RunTold, TheFirstMessageOfAStoppedRunSaysStopCheckpointAndOutcome) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  h.at(100ms);
  stop_and_end("nan");
  h.at(3s);
  ASSERT_EQ(h.sent.size(), 1U);
  ASSERT_EQ(h.sent[0].runs.size(), 1U);
  const core::RunTold& run = h.sent[0].runs[0];
  EXPECT_EQ(run.run.job, "digits");
  EXPECT_EQ(run.outcome, "stopped_by_rule");
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_EQ(run.step, 357);
  EXPECT_EQ(run.world_size, 2U);
  EXPECT_THAT(run.hosts, ElementsAre("node-7", "node-8"));
  EXPECT_EQ(run.labels.get("team"), "nlp");
  ASSERT_TRUE(run.stop);
  EXPECT_EQ(run.stop->rule, "nan");
  EXPECT_EQ(run.stop->requested_by, "router");
  EXPECT_EQ(run.stop->state, "stopped");
  EXPECT_EQ(run.stop->checkpoint, (core::Checkpoint{"/ckpt/305.pt", "node-7", 42, 305}));
  EXPECT_EQ(run.stop->answers, (core::StopAnswers{2, 2, 2, 2, 0}));
  EXPECT_EQ(run.stop->exit_code, 77);
}

TEST_F(RunTold, AStopIsToldAlthoughItsReasonRecoveredBeforeTheRunWasGone) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  h.at(100ms);
  ask("nan");
  h.at(150ms);
  h.report(recovered("nan"));
  end("stopped_by_rule");
  h.at(4s);
  ASSERT_EQ(h.sent.size(), 1U);
  ASSERT_EQ(h.sent[0].issues.size(), 1U);
  EXPECT_EQ(h.sent[0].issues[0].issue.resolution, core::Resolution::recovered);
  ASSERT_EQ(h.sent[0].runs.size(), 1U);
  EXPECT_EQ(h.sent[0].runs[0].outcome, "stopped_by_rule");
  ASSERT_TRUE(h.sent[0].runs[0].stop);
  EXPECT_EQ(h.sent[0].runs[0].stop->rule, "nan");
  h.at(1h);
  ASSERT_EQ(h.sent.size(), 2U);  // what keeps an incident open hears of its end
  EXPECT_EQ(h.sent[1].kind, core::NotificationKind::close);
}

TEST_F(RunTold, WhatRecoversBesideAStopThatItDidNotAskForIsNoNews) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("slow"));
  h.at(100ms);
  ask("nan");
  h.at(150ms);
  h.report(recovered("slow"));
  end("stopped_by_rule");
  h.at(1h);
  EXPECT_TRUE(h.sent.empty());
}

TEST_F(RunTold, AKillBetweenAnyTwoEventsChangesNothingOfIt) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  h.crash();
  ask("nan");
  h.crash();
  answer("accepted", 0);
  h.crash();
  answer("checkpoint_done", 0, "/ckpt/305.pt");
  h.crash();
  answer("stopped", 0);
  h.crash();
  end("stopped_by_rule");
  h.crash();
  h.at(3s);
  ASSERT_EQ(h.sent.size(), 1U);
  ASSERT_TRUE(h.sent[0].runs.at(0).stop);
  EXPECT_EQ(h.sent[0].runs[0].stop->checkpoint->path, "/ckpt/305.pt");
  EXPECT_EQ(h.sent[0].runs[0].stop->state, "stopped");
}

TEST_F(RunTold, AnswersMayBeReadBeforeTheCommand) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  answer("accepted", 0);
  answer("checkpoint_done", 0, "/ckpt/305.pt");
  ask("nan");
  end("stopped_by_rule");
  h.at(3s);
  ASSERT_TRUE(h.sent.at(0).runs.at(0).stop);
  EXPECT_EQ(h.sent[0].runs[0].stop->rule, "nan");
  EXPECT_EQ(h.sent[0].runs[0].stop->checkpoint->host, "node-7");
}

TEST_F(RunTold, AStopThatAPersonAskedForEndsTheRunAsOneOfAPerson) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  stop_and_end("");
  h.at(3s);
  EXPECT_EQ(h.sent.at(0).runs.at(0).outcome, "stopped_by_person");
  EXPECT_EQ(h.sent[0].runs[0].stop->requested_by, "ada@desk");
}

TEST_F(RunTold, ARunThatHangsInItsStopIsToldSoonWithWhatIsKnown) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  ask("nan");
  answer("accepted", 0);
  h.at(9s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.at(11s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  EXPECT_EQ(h.sent[0].runs.at(0).stop->state, "cooperative");
}

TEST_F(RunTold, AnAttemptThatWasStoppedIsStillToldWhenTheNextOneRuns) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  stop_and_end("nan");
  tell(job(JobPhase::started, 2));
  answer("stopped", 0, "", 1);
  h.at(3s);
  const core::RunTold& run = h.sent.at(0).runs.at(0);
  EXPECT_EQ(run.run.attempt, 1U);
  EXPECT_EQ(run.stop->checkpoint->path, "/ckpt/305.pt");
  EXPECT_FALSE(h.router().find_run(*core::parse_run_uid(kRun))->stop.has_value());
}

TEST_F(RunTold, TheEndOfARunThatWasToldIsToldWithinSeconds) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  h.at(31s);
  EXPECT_THAT(h.said(), ElementsAre("first open oncall 1/0"));
  h.at(60s);
  end("completed");
  h.at(63s);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
}

TEST_F(RunTold, ThatAJobFailedIsToldWithinSecondsAlsoWhereItsRunWasTold) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  h.at(60s);
  (void)h.said();
  end("failed");
  h.report(issue("job_failed"));
  h.at(63s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 1/1"));
}

TEST_F(RunTold, InAGroupOfAJobAnotherRunIsNewsAtOnce) {
  h.tree.group_by = {{"job"}};
  h.open();
  h.report(issue("nan"));
  h.at(60s);
  (void)h.said();
  h.report(issue("dead_relu"));  // of the same run: at the next turn of the group
  h.at(70s);
  EXPECT_THAT(h.said(), IsEmpty());
  h.report(issue("nan", IssueStatus::firing, kOther));
  h.at(73s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 3/0"));
}

TEST_F(RunTold, TheNextAttemptOfARunIsNewsAtOnce) {
  h.open();
  tell(job(JobPhase::started));
  h.report(issue("nan"));
  h.at(60s);
  (void)h.said();
  h.report(issue("nan", IssueStatus::firing, kRun, 2));
  h.at(63s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 1/0"));
}

TEST_F(RunTold, RunsOfOneGroupThatEndOneAfterTheOtherDoNotEachMakeAMessage) {
  h.tree.group_by = {{"job"}};
  h.open();
  for (int i = 0; i < 20; ++i) {
    core::Issue one = issue("nan" + std::to_string(i), IssueStatus::firing, kOther, 1);
    h.report(one);
  }
  h.at(31s);
  (void)h.said();
  for (int i = 0; i < 20; ++i) {
    h.at(60s + std::chrono::seconds(i));
    core::Issue over = issue("nan" + std::to_string(i), IssueStatus::resolved, kOther, 1);
    over.resolution = core::Resolution::job_ended;
    h.report(over);
  }
  h.at(100s);
  EXPECT_LE(h.said().size(), 4U);
}

TEST_F(RunTold, AMessageIsNamedByItsFirstSign) {
  h.tree.group_by = {{"rule", "run_uid"}};
  h.open();
  core::Issue nan = issue("nan");
  nan.labels.set("severity", "error");
  h.report(nan);
  core::Issue after = issue("dead_relu");
  after.labels.set("severity", "critical");
  after.severity = core::Severity::critical;
  after.caused_by = {{nan.event_id, core::issue_key(nan.labels), "nan", "", {}, {}, {}}};
  h.report(after);
  h.at(31s);
  const core::Notification& message = h.sent.at(0);
  ASSERT_EQ(message.issues.size(), 2U);
  const std::string rule = message.issues[0].issue.rule;
  EXPECT_EQ(message.group_labels.get("rule"), rule);
  EXPECT_EQ(message.common_labels.get("rule"), rule);
  EXPECT_EQ(message.common_labels.get("severity"),
            core::to_string(message.issues[0].issue.severity));
}

}  // namespace
}  // namespace tocsin::routing
