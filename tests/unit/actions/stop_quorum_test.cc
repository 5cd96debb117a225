// Stops that wait for other rules, that are cancelled when what asked recovers, and those of a rule that
// flags too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fields/stop_request.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing_support;

core::NotifiedIssue found_by(const std::string& rule, const std::string& run = "") {
  core::NotifiedIssue out = sample_issue();
  out.issue.rule = rule;
  out.issue.labels.set("rule", rule);
  if (!run.empty()) {
    out.issue.run.uid = core::run_uid_for("job", run);
    out.issue.run.job = run;
    out.issue.labels.set("run_uid", to_text(out.issue.run.uid));
    out.issue.labels.set("job", run);
  }
  out.issue_key = core::issue_key(out.issue.labels);
  return out;
}

core::Notification about(const core::NotifiedIssue& issue) {
  core::Notification out = sample_notification();
  out.issues = {issue};
  return out;
}

struct GuardBench : Workbench {
  GuardBench() {
    environment.approvals = &approvals;
    environment.stops = &ledger;
    environment.firing = &firing;
    environment.running_runs = [this] { return running; };
    environment.current_run = [](const core::RunUid&) {
      core::CurrentRun out;
      out.attempt = 1;
      out.launch = {{"h1", "b/1"}};
      return std::optional(out);
    };
    approvals.name_place(environment.place);
    firing.complete();
  }
  void fires(const core::NotifiedIssue& one) { fires(one, 1); }
  void fires(const core::NotifiedIssue& one, std::uint64_t episode) {
    const core::Issue& issue = one.issue;
    firing.began(one.issue_key, episode,
                 {issue.run.uid, issue.run.attempt, issue.rule, issue.shadow});
  }
  void runs(const std::string& job) {
    const auto one = found_by("x", job).issue;
    running.push_back({one.run, {{"job", job}, {"env", "prod"}}});
  }
  core::AttemptOutcome tell(core::Action& stop, const core::NotifiedIssue& one) {
    fires(one);
    return deliver(stop, about(one));
  }
  StopApprovals::Due due(core::Duration after) {
    return approvals.due(ledger, environment.current_run, "c1", kStart + after, &firing);
  }
  [[nodiscard]] core::StopRequest newest() const {
    return *core::read_stop_request(*records.back().value);
  }
  StopApprovals approvals;
  StopLedger ledger;
  FiringIssues firing;
  std::vector<core::RunningRun> running;
};

constexpr char kTwoRules[] = "{armed: true, quorum: {count: 2}}";

TEST(StopQuorum, OneRuleAloneStopsNothingAndTellsNobody) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", kTwoRules);
  const auto out = bench.tell(*stop, found_by("loss_nan"));
  EXPECT_EQ(out.code, "awaiting_quorum");
  EXPECT_THAT(out.detail, HasSubstr("quorum: 1 of 2 rules (loss_nan)"));
  EXPECT_THAT(out.issues, IsEmpty());
  EXPECT_THAT(bench.commands, IsEmpty());
  // The same rule on another tensor is no second rule.
  auto again = found_by("loss_nan");
  again.issue.labels.set("tensor", "other");
  again.issue_key = core::issue_key(again.issue.labels);
  EXPECT_EQ(bench.tell(*stop, again).code, "awaiting_quorum");
  EXPECT_THAT(bench.due(1h).commands, IsEmpty());
}

TEST(StopQuorum, TheSecondRuleStopsTheRun) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", kTwoRules);
  bench.tell(*stop, found_by("loss_nan"));
  EXPECT_EQ(bench.tell(*stop, found_by("exploding_tensor")).code, "requested");
  ASSERT_EQ(bench.commands.size(), 1u);
  bench.ledger.on_command(bench.commands[0]);
  EXPECT_THAT(bench.due(1min).commands, IsEmpty()) << "asked for once";
}

// Nobody routes the second rule to the stop: the one that waits goes on by itself, also after a restart.
TEST(StopQuorum, ARuleThatIsToldElsewhereCountsToo) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", kTwoRules);
  bench.tell(*stop, found_by("loss_nan"));
  const core::StopRequest kept = bench.newest();

  GuardBench restarted;
  restarted.approvals.on_record(kept.id, kept);
  restarted.fires(found_by("loss_nan"));
  EXPECT_THAT(restarted.due(1min).commands, IsEmpty());
  restarted.fires(found_by("exploding_tensor"));
  const auto due = restarted.due(2min);
  ASSERT_EQ(due.commands.size(), 1u);
  EXPECT_EQ(core::text_at(due.commands[0].args, "approved_by"), "quorum");
  EXPECT_EQ(due.decided.at(0).state, "approved");
  EXPECT_THAT(restarted.due(3min).commands, IsEmpty());
}

TEST(StopQuorum, OfAnotherRunOrInShadowNoneCounts) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", kTwoRules);
  bench.fires(found_by("exploding_tensor", "other"));
  auto shadow = found_by("vanishing_tensor");
  shadow.issue.shadow = true;
  bench.fires(shadow);
  EXPECT_EQ(bench.tell(*stop, found_by("loss_nan")).code, "awaiting_quorum");
}

TEST(StopQuorum, OnlyTheNamedRulesCount) {
  GuardBench bench;
  const auto stop = bench.make(
      "stop_training", "{armed: true, quorum: {count: 2, rules: [loss_nan, exploding_tensor]}}");
  bench.fires(found_by("vanishing_tensor"));
  EXPECT_EQ(bench.tell(*stop, found_by("loss_nan")).code, "awaiting_quorum");
  EXPECT_EQ(bench.tell(*stop, found_by("exploding_tensor")).code, "requested");
}

TEST(StopQuorum, ThenAPersonIsAskedWhereThatIsWanted) {
  GuardBench bench;
  const auto stop =
      bench.make("stop_training", "{armed: true, approval: always, quorum: {count: 2}}");
  bench.tell(*stop, found_by("loss_nan"));
  bench.fires(found_by("exploding_tensor"));
  const auto due = bench.due(1min);
  EXPECT_THAT(due.commands, IsEmpty());
  ASSERT_EQ(due.decided.size(), 1u);
  EXPECT_EQ(due.decided[0].state, "waiting");
  EXPECT_EQ(due.decided[0].why, "approval: always");
  ASSERT_EQ(due.issues.size(), 1u);
  EXPECT_EQ(due.issues[0].rule, "stop_waits");
  EXPECT_THAT(due.issues[0].recommendation, HasSubstr("--out /data/tocsin-data"));
}

TEST(StopQuorum, TheLimitHoldsForItToo) {
  GuardBench bench;
  const auto stop = bench.make(
      "stop_training", "{armed: true, max_stops: {count: 1, per: 10m}, quorum: {count: 2}}");
  bench.tell(*stop, found_by("loss_nan"));
  core::Command other;
  other.command_id = "cmd_other";
  other.action = "stop";
  other.run = core::run_uid_for("job", "other");
  other.requested_by = "router";
  other.issued_at = kStart;
  bench.ledger.on_command(other);
  bench.fires(found_by("exploding_tensor"));
  const auto due = bench.due(1min);
  EXPECT_THAT(due.commands, IsEmpty());
  EXPECT_EQ(bench.approvals.find(bench.newest().id)->state, "held_back");
  EXPECT_EQ(due.issues.at(0).labels.get("reason"), "held_back");
}

TEST(StopRecovery, AStopThatWaitsIsCancelledWithItsIssue) {
  for (const char* settings : {kTwoRules, "{armed: true, approval: always}"}) {
    GuardBench bench;
    const auto stop = bench.make("stop_training", settings);
    bench.tell(*stop, found_by("loss_nan"));
    EXPECT_THAT(bench.due(1min).decided, IsEmpty());
    bench.firing.over(found_by("loss_nan").issue_key, 1);
    const auto due = bench.due(2min);
    ASSERT_EQ(due.decided.size(), 1u) << settings;
    EXPECT_EQ(due.decided[0].state, "recovered");
    for (const core::Issue& one : due.issues) {
      EXPECT_EQ(one.rule, "stop_waits");
      EXPECT_EQ(one.resolution, core::Resolution::recovered);
    }
    EXPECT_THAT(bench.due(1h).decided, IsEmpty());
  }
}

TEST(StopRecovery, NotWhileAnotherIssueAsksForIt) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: always}");
  bench.tell(*stop, found_by("loss_nan"));
  bench.tell(*stop, found_by("exploding_tensor"));
  const core::StopRequest kept = bench.newest();
  ASSERT_EQ(kept.also.size(), 1u);
  EXPECT_EQ(kept.also[0].rule, "exploding_tensor");
  bench.firing.over(found_by("loss_nan").issue_key, 1);
  EXPECT_THAT(bench.due(1min).decided, IsEmpty());
  bench.firing.over(found_by("exploding_tensor").issue_key, 1);
  EXPECT_EQ(bench.due(2min).decided.at(0).state, "recovered");
}

TEST(StopRecovery, NothingIsConcludedBeforeTheRouterKnows) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: always}");
  bench.tell(*stop, found_by("loss_nan"));
  bench.firing.start_over();
  EXPECT_THAT(bench.due(1min).decided, IsEmpty());
}

TEST(StopRecovery, WhatFiresAgainAsksAgain) {
  GuardBench bench;
  const auto stop = bench.make("stop_training", "{armed: true, approval: always}");
  const auto first = bench.tell(*stop, found_by("loss_nan"));
  bench.firing.over(found_by("loss_nan").issue_key, 1);
  bench.due(1min);
  bench.clock.advance(5min);
  auto again = found_by("loss_nan");
  again.episode = 2;
  bench.fires(again, 2);
  const auto out = deliver(*stop, about(again));
  EXPECT_EQ(out.code, "awaiting_approval");
  EXPECT_EQ(bench.newest().asked_at, kStart + 5min);
  EXPECT_NE(out.issues.at(0).event_id, first.issues.at(0).event_id) << "else nobody hears of it";
  EXPECT_GT(out.issues[0].sequence, first.issues[0].sequence);
}

TEST(StopSuspect, ARuleThatFlagsMostJobsStopsNoneOfThem) {
  GuardBench bench;
  for (const char* job : {"a", "b", "c", "d", "e"}) bench.runs(job);
  const auto stop = bench.make("stop_training", "{armed: true, max_stops: {count: 9}}");
  EXPECT_EQ(bench.tell(*stop, found_by("loss_nan", "a")).code, "requested");
  EXPECT_EQ(bench.tell(*stop, found_by("loss_nan", "b")).code, "requested");
  const auto third = bench.tell(*stop, found_by("loss_nan", "c"));
  EXPECT_EQ(third.code, "awaiting_approval");
  EXPECT_THAT(third.detail, HasSubstr("loss_nan flags 3 of 5 running jobs in 10m"));
  ASSERT_EQ(third.issues.size(), 1u);
  EXPECT_EQ(third.issues[0].rule, "stop_suspect");
  EXPECT_THAT(third.issues[0].summary, HasSubstr("No job is stopped for rule loss_nan"));
  EXPECT_THAT(third.issues[0].recommendation, HasSubstr("tocsin stops list --out"));
  bench.clock.advance(1min);
  const auto fourth = bench.tell(*stop, found_by("loss_nan", "d"));
  EXPECT_EQ(fourth.issues.at(0).event_id, third.issues[0].event_id) << "one notice for all";
  EXPECT_EQ(bench.commands.size(), 2u);
  EXPECT_EQ(bench.tell(*stop, found_by("exploding_tensor", "e")).code, "requested")
      << "another rule is not suspected";
}

TEST(StopSuspect, OfFewJobsNothingIsConcluded) {
  GuardBench bench;
  for (const char* job : {"a", "b", "c"}) bench.runs(job);
  const auto stop = bench.make("stop_training", "{armed: true, max_stops: {count: 9}}");
  for (const char* job : {"a", "b", "c"}) {
    EXPECT_EQ(bench.tell(*stop, found_by("loss_nan", job)).code, "requested");
  }
}

TEST(StopSuspect, WhatWasFlaggedLongAgoDoesNotCount) {
  GuardBench bench;
  for (const char* job : {"a", "b", "c", "d"}) bench.runs(job);
  const auto stop = bench.make("stop_training", "{armed: true}");
  for (const char* job : {"a", "b", "c", "d"}) {
    EXPECT_EQ(bench.tell(*stop, found_by("loss_nan", job)).code, "requested") << job;
    bench.clock.advance(11min);
  }
}

TEST(StopSuspect, ItIsOverWithTheLastWord) {
  GuardBench bench;
  for (const char* job : {"a", "b", "c", "d"}) bench.runs(job);
  const auto stop = bench.make(
      "stop_training", "{armed: true, max_stops: {count: 9}, max_fraction: {of_running: 0.1}}");
  bench.tell(*stop, found_by("loss_nan", "a"));
  bench.tell(*stop, found_by("loss_nan", "b"));
  const auto first = *core::read_stop_request(*bench.records[0].value);
  const auto second = *core::read_stop_request(*bench.records[1].value);
  bench.approvals.on_record(first.id, core::decided(first, "rejected", "ada", kStart + 1min));
  EXPECT_THAT(bench.due(1min).issues, IsEmpty());
  bench.approvals.on_record(second.id, core::decided(second, "rejected", "ada", kStart + 2min));
  const auto due = bench.due(2min);
  ASSERT_EQ(due.issues.size(), 1u);
  EXPECT_EQ(due.issues[0].rule, "stop_suspect");
  EXPECT_EQ(due.issues[0].status, core::IssueStatus::resolved);
  EXPECT_THAT(bench.due(3min).issues, IsEmpty());
}

TEST(StopPrefix, AllJobsOfTheNameAreStoppedWithinMaxJobs) {
  GuardBench bench;
  for (const char* job : {"bert-1", "bert-2", "gpt-1"}) bench.runs(job);
  const auto stop = bench.make("stop_training", "{armed: true, prefix: bert-, max_jobs: 2}");
  const auto out = bench.tell(*stop, found_by("loss_nan", "bert-1"));
  EXPECT_EQ(out.code, "requested");
  ASSERT_EQ(bench.commands.size(), 2u);
  EXPECT_EQ(bench.commands[0].run, found_by("x", "bert-1").issue.run.uid);
  EXPECT_EQ(bench.commands[1].run, found_by("x", "bert-2").issue.run.uid);
  EXPECT_THAT(bench.commands[1].reason.summary, HasSubstr("(found in bert-1)"));
}

TEST(StopPrefix, MoreThanOneMatchStopsNoneUnlessItIsAllowed) {
  GuardBench bench;
  for (const char* job : {"bert-1", "bert-2"}) bench.runs(job);
  const auto stop = bench.make("stop_training", "{armed: true, prefix: bert-}");
  const auto out = bench.tell(*stop, found_by("loss_nan", "bert-1"));
  EXPECT_EQ(out.code, "refused");
  EXPECT_THAT(bench.commands, IsEmpty());
  ASSERT_EQ(out.issues.size(), 1u);
  EXPECT_EQ(out.issues[0].rule, "stop_failed");
  EXPECT_THAT(out.issues[0].summary,
              HasSubstr("prefix \"bert-\" matches 2 running jobs (bert-1, bert-2), max_jobs is 1"));
}

TEST(StopPrefix, EachJobKeepsItsOwnGuards) {
  GuardBench bench;
  bench.runs("bert-1");
  const auto stop = bench.make("stop_training", "{armed: true, prefix: bert-, deny: [env=prod]}");
  EXPECT_EQ(bench.tell(*stop, found_by("loss_nan", "gpt-1")).code, "refused")
      << "env is the label of the job that would be stopped";
  EXPECT_THAT(bench.commands, IsEmpty());
}

TEST(StopDryRun, NothingIsSentWhereItHolds) {
  GuardBench all;
  all.environment.stops_dry_run = true;
  EXPECT_EQ(deliver(*all.make("stop_training", "{armed: true}"), sample_notification()).code,
            "dry_run");
  GuardBench some;
  const auto stop =
      some.make("stop_training", "{armed: true, dry_run: [rule=loss_nan, route=night]}");
  const auto of_rule = some.tell(*stop, found_by("loss_nan"));
  EXPECT_EQ(of_rule.code, "dry_run");
  EXPECT_THAT(of_rule.detail, HasSubstr("dry_run: rule=loss_nan"));
  auto of_route = about(found_by("exploding_tensor"));
  of_route.route_id = "night";
  EXPECT_EQ(deliver(*stop, of_route).code, "dry_run");
  EXPECT_THAT(some.commands, IsEmpty());
  EXPECT_EQ(some.tell(*stop, found_by("exploding_tensor")).code, "requested");
}

TEST(StopSettings, SayWhatTheyWouldDo) {
  const auto intent = [](const std::string& settings) {
    const auto loaded = load("receivers: {s: {stop_training: " + settings + "}}");
    EXPECT_EQ(loaded.errors, "");
    return loaded.receivers.integrations.at(0).config->intents().at(0);
  };
  EXPECT_THAT(intent("{}"),
              HasSubstr("dry run, not armed: would ask the run to checkpoint_then_stop"));
  EXPECT_THAT(intent("{armed: true}"), HasSubstr("armed: asks the run"));
  EXPECT_THAT(intent("{armed: true}"),
              HasSubstr("SIGTERM after 30s without an answer, no SIGKILL"));
  EXPECT_THAT(intent("{armed: true, allow_force: true}"), HasSubstr("SIGKILL 1m later"));
  EXPECT_THAT(intent("{armed: true, prefix: b, max_jobs: 3, approval: always}"),
              HasSubstr("up to 3 running jobs named \"b…\""));
}

TEST(StopSettings, ContradictionsAreErrors) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {s: {stop_training: " + settings + "}}").errors;
  };
  EXPECT_THAT(errors("{quorum: {count: 3, rules: [a, b]}}"), HasSubstr("it would never be met"));
  EXPECT_THAT(errors("{max_jobs: 2}"), HasSubstr("expected a prefix"));
  EXPECT_THAT(errors("{max_fraction: {of_running: 1.5}}"), HasSubstr("of_running"));
  EXPECT_THAT(errors("{dry_run: [night]}"), HasSubstr("expected label=value"));
}

TEST(StopQuorum, ARequestComesBackWhole) {
  GuardBench bench;
  const auto stop = bench.make(
      "stop_training",
      "{armed: true, max_stops: {count: 7, per: 2m}, quorum: {count: 2, rules: [a, loss_nan]}}");
  bench.tell(*stop, found_by("loss_nan"));
  const core::Value waiting = bench.newest().quorum;
  EXPECT_EQ(core::to_json(*core::find(waiting, "rules")), R"(["a","loss_nan"])");
  EXPECT_EQ(core::to_json(*core::find(waiting, "count")), "2");
  EXPECT_EQ(core::to_json(*core::find(waiting, "max_stops")), "7");
  EXPECT_EQ(core::text_at(waiting, "per"), "2m");
}

}  // namespace
}  // namespace tocsin::actions
