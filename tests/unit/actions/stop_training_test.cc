#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;

core::Notification of_run(const core::RunUid& uid, std::uint32_t attempt = 1) {
  auto out = sample_notification();
  out.issues[0].issue.run.uid = uid;
  out.issues[0].issue.run.attempt = attempt;
  return out;
}

TEST(StopTraining, WritesOneFencedCommandForARunAndAttempt) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{armed: true, grace: 30s}");
  auto notification = sample_notification();
  notification.issues.push_back(sample_issue("second"));
  const core::AttemptOutcome out = deliver(*stop, notification);
  EXPECT_EQ(out.outcome, core::OutcomeClass::delivered);
  EXPECT_FALSE(out.declined);
  EXPECT_EQ(out.code, "requested");
  ASSERT_EQ(bench.commands.size(), 1u);
  const core::Command& command = bench.commands[0];
  EXPECT_EQ(command.command_id, "cmd_76sjzs23utzfmje34sq7tnw4rf");
  EXPECT_EQ(command.action, "stop");
  EXPECT_EQ(command.run, kRun);
  EXPECT_EQ(command.attempt, 1u);
  EXPECT_EQ(command.issued_at, kStart);
  EXPECT_EQ(command.expires_at, kStart + 10min);
  EXPECT_EQ(command.requested_by, "router");
  EXPECT_EQ(command.reason.rule, "exploding_tensor");
  EXPECT_FALSE(command.dry_run);
  EXPECT_EQ(
      core::to_json(command.args),
      R"({"mode":"checkpoint_then_stop","deadline":{"ack":"30s","graceful":"10m","total":"15m"},)"
      R"("grace":"30s","allow_force":false,)"
      R"("fence":{"platform":"local","pid":4711,"pid_start":998877,"boot_id":"b","host":"h1"}})");
}

TEST(StopTraining, OnlySaysWhatItWouldDoUntilItIsArmed) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{}");
  const core::AttemptOutcome out = deliver(*stop, sample_notification());
  EXPECT_TRUE(out.declined);
  EXPECT_EQ(out.code, "dry_run");
  EXPECT_THAT(out.detail, HasSubstr("dry run, not armed: would ask digits"));
  EXPECT_TRUE(bench.commands.empty());
}

TEST(StopTraining, AsksAnAttemptOnlyOnce) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{armed: true}");
  deliver(*stop, sample_notification());
  EXPECT_EQ(deliver(*stop, sample_notification("ntf_two")).code, "already_requested");
  EXPECT_EQ(bench.commands.size(), 1u);
  EXPECT_EQ(deliver(*stop, of_run(kRun, 2)).code, "requested");
  EXPECT_EQ(bench.commands.size(), 2u);
  EXPECT_GT(bench.commands[1].revision, bench.commands[0].revision);
}

TEST(StopTraining, AsksAgainWhenTheCommandCouldNotBeWritten) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{armed: true}");
  bench.command_answer = core::unavailable("broker is down");
  EXPECT_EQ(deliver(*stop, sample_notification()).outcome, core::OutcomeClass::transient);
  bench.command_answer = core::ok();
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "requested");
}

struct Guard {
  const char* settings;
  void (*change)(core::Issue&);
  const char* reason;
};

class StopGuard : public ::testing::TestWithParam<Guard> {};

TEST_P(StopGuard, RefusesWithItsReason) {
  Workbench bench;
  bench.environment.current_run = [](const core::RunUid&) {
    return std::optional(core::CurrentRun{1, {}, false, 1, {}, {}});
  };
  const auto stop = bench.make("stop_training", GetParam().settings);
  auto notification = sample_notification();
  GetParam().change(notification.issues[0].issue);
  const core::AttemptOutcome out = deliver(*stop, notification);
  EXPECT_TRUE(out.declined);
  EXPECT_EQ(out.code, "refused");
  EXPECT_THAT(out.detail, HasSubstr(GetParam().reason));
  EXPECT_TRUE(bench.commands.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, StopGuard,
    ::testing::Values(
        Guard{"{armed: true}", [](core::Issue& i) { i.run.uid = {}; }, "names no run"},
        Guard{"{armed: true}", [](core::Issue& i) { i.run.attempt = 0; }, "names no run"},
        Guard{"{armed: true}", [](core::Issue& i) { i.shadow = true; }, "shadow"},
        Guard{"{armed: true}", [](core::Issue& i) { i.labels.set("protected", "true"); },
              "protected"},
        Guard{"{armed: true, deny: [env=prod]}",
              [](core::Issue& i) { i.labels.set("env", "prod"); }, "deny: env=prod"},
        Guard{"{armed: true, allow: ['team=\"nlp\"']}", [](core::Issue&) {}, "is not met"},
        Guard{"{armed: true, min_step: 413}", [](core::Issue&) {},
              "step 412 is below min_step 413"},
        Guard{"{armed: true, min_consecutive: 2}", [](core::Issue&) {}, "seen 1 times"},
        Guard{"{armed: true, allow: [team=vision]}",
              [](core::Issue& i) { i.labels.set("team", "nlp"); }, "allow: team=vision"}));

// What is known of the run when an issue of attempt 5 comes, and what follows.
struct Fence {
  const char* name;
  std::optional<core::CurrentRun> current;
  const char* code;
  core::OutcomeClass outcome;
  bool sent;
  const char* told;  // label `reason` of the issue people get; empty: none
};

class StopFence : public ::testing::TestWithParam<Fence> {};

TEST_P(StopFence, OnlyTheAttemptThatRunsIsStopped) {
  Workbench bench;
  bench.environment.current_run = [](const core::RunUid&) { return GetParam().current; };
  const auto stop = bench.make("stop_training", "{armed: true}");
  const core::AttemptOutcome out = deliver(*stop, of_run(kRun, 5));
  EXPECT_EQ(out.code, GetParam().code);
  EXPECT_EQ(out.outcome, GetParam().outcome);
  ASSERT_EQ(bench.commands.size(), GetParam().sent ? 1u : 0u);
  if (GetParam().sent && GetParam().current) {
    EXPECT_EQ(bench.commands[0].launch, GetParam().current->launch);
  }
  if (std::string_view(GetParam().told).empty()) {
    EXPECT_TRUE(out.issues.empty());
  } else {
    ASSERT_EQ(out.issues.size(), 1u);
    EXPECT_EQ(out.issues[0].rule, "stop_failed");
    EXPECT_EQ(out.issues[0].labels.get("reason"), GetParam().told);
    EXPECT_EQ(out.issues[0].run.attempt, 5u);
  }
}

const std::map<std::string, std::string> kLaunch{{"n1", "1f0c93ab/81402118843000"}};
constexpr auto kDelivered = core::OutcomeClass::delivered;

INSTANTIATE_TEST_SUITE_P(
    Each, StopFence,
    ::testing::Values(Fence{"running", core::CurrentRun{5, kLaunch, false, 1, {}, {}}, "requested",
                            kDelivered, true, ""},
                      Fence{"relaunched", core::CurrentRun{6, kLaunch, false, 1, {}, {}}, "stale",
                            kDelivered, false, "stale"},
                      Fence{"relaunched_and_over", core::CurrentRun{6, kLaunch, true, 1, {}, {}},
                            "stale", kDelivered, false, "stale"},
                      Fence{"ended", core::CurrentRun{5, kLaunch, true, 1, {}, {}}, "already_ended",
                            kDelivered, false, ""},
                      Fence{"registry_behind", core::CurrentRun{4, kLaunch, false, 1, {}, {}},
                            "launch_unknown", core::OutcomeClass::transient, false, ""},
                      Fence{"producer_without_launch", core::CurrentRun{5, {}, false, 1, {}, {}},
                            "requested", kDelivered, true, ""},
                      Fence{"never_heard_of", std::nullopt, "requested", kDelivered, true, ""}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(StopTraining, ManyRanksLeaveAfterAStepThatNoneHasReached) {
  const auto step_for = [](std::uint32_t ranks, std::int64_t step, double seconds) {
    Workbench bench;
    bench.environment.current_run = [&](const core::RunUid&) {
      return std::optional(
          core::CurrentRun{1, kLaunch, false, ranks, step, seconds, kStart - 1s, 2});
    };
    deliver(*bench.make("stop_training", "{armed: true}"), sample_notification());
    const core::Command& command = bench.commands.at(0);
    const core::Value* at = core::find(command.args, "not_before_step");
    // Nobody is signalled or found expired for waiting for the common step.
    const core::Value* ack = core::find(*core::find(command.args, "deadline"), "ack");
    core::Duration wait{};
    if (at != nullptr)
      wait = seconds >= 0.2 ? std::chrono::duration_cast<core::Duration>(seconds * 10s) : 2s;
    EXPECT_EQ(*core::parse_duration(std::get<std::string>(ack->storage())), 30s + wait);
    EXPECT_EQ(command.expires_at, kStart + 10min + wait);
    return at == nullptr ? 0 : std::get<std::int64_t>(at->storage());
  };
  // The issue speaks of step 412, one second before now.
  EXPECT_EQ(step_for(8, 400, 0.5), 412 + 2 + 10);
  EXPECT_EQ(step_for(8, 450, 0.5), 450 + 2 + 10);  // the registry is ahead of the issue
  EXPECT_EQ(step_for(8, 400, 0.01), 412 + 100 + 200);
  EXPECT_EQ(step_for(1, 400, 0.5), 0);  // one rank leaves at once
}

TEST(StopTraining, ManyRanksWhosePaceIsNotKnownYetAreAskedWhenItIs) {
  Workbench bench;
  bench.environment.current_run = [&](const core::RunUid&) {
    return std::optional(core::CurrentRun{1, kLaunch, false, 8, 400, 0.5, kStart - 1s, 1});
  };
  const auto stop = bench.make("stop_training", "{armed: true}");
  const core::AttemptOutcome first = deliver(*stop, sample_notification());
  EXPECT_EQ(first.outcome, core::OutcomeClass::transient);
  EXPECT_EQ(first.code, "pace_unknown");
  EXPECT_TRUE(bench.commands.empty());
  EXPECT_TRUE(first.held);
  bench.clock.advance(10s);  // a run that tells no more is asked all the same
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "requested");
  EXPECT_EQ(*core::as<std::int64_t>(core::find(bench.commands.at(0).args, "not_before_step")),
            412 + 22 + 10);
}

TEST(StopTraining, ATrainerWhoseClockIsAheadIsStoppedAllTheSame) {
  Workbench bench;
  bench.environment.current_run = [&](const core::RunUid&) {
    return std::optional(core::CurrentRun{1, kLaunch, false, 8, 400, 0.5, kStart - 1s, 1});
  };
  auto notification = sample_notification();
  notification.issues[0].issue.time = kStart + 1h;
  const auto stop = bench.make("stop_training", "{armed: true}");
  EXPECT_EQ(deliver(*stop, notification).code, "pace_unknown");
  bench.clock.advance(10s);
  EXPECT_EQ(deliver(*stop, notification).code, "requested");
}

TEST(StopTraining, OfARunNobodyHasHeardOfTheLedgerStillKnowsANewerAttempt) {
  Workbench bench;
  StopLedger ledger;
  core::Command newer;
  newer.action = "stop";
  newer.run = kRun;
  newer.attempt = 9;
  newer.issued_at = kStart;
  ledger.on_command(newer);
  bench.environment.stops = &ledger;
  const auto stop = bench.make("stop_training", "{armed: true}");
  const core::AttemptOutcome out = deliver(*stop, of_run(kRun, 5));
  EXPECT_EQ(out.code, "stale");
  EXPECT_THAT(out.detail, HasSubstr("attempt 9 was asked to stop"));
  EXPECT_TRUE(bench.commands.empty());
}

TEST(StopTraining, ALedgerReadBackKeepsAStopFromBeingSentTwice) {
  Workbench bench;
  deliver(*bench.make("stop_training", "{armed: true}"), sample_notification());
  StopLedger read_back;
  read_back.on_command(bench.commands.at(0));
  bench.environment.stops = &read_back;
  EXPECT_EQ(deliver(*bench.make("stop_training", "{armed: true}"), sample_notification()).code,
            "already_requested");
  EXPECT_EQ(bench.commands.size(), 1u);
}

TEST(StopTraining, WhatItRefusesIsToldOnceAndAsksForNoOtherStop) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{armed: true, deny: [env=prod]}");
  auto notification = sample_notification();
  notification.issues[0].issue.labels.set("env", "prod");
  const auto first = deliver(*stop, notification);
  ASSERT_EQ(first.issues.size(), 1u);
  const core::Issue& told = first.issues[0];
  EXPECT_EQ(told.labels, (core::Labels{{"rule", "stop_failed"},
                                       {"severity", "error"},
                                       {"job", "digits"},
                                       {"run_uid", to_text(kRun)},
                                       {"cluster", "c1"},
                                       {"env", "prod"},
                                       {"reason", "refused"}}));
  EXPECT_EQ(told.severity, core::Severity::error);
  EXPECT_EQ(told.run.uid, kRun);
  EXPECT_EQ(told.summary, "digits was not stopped (attempt 1): deny: env=prod");
  bench.clock.advance(1min);
  EXPECT_EQ(deliver(*stop, notification).issues.at(0).event_id, told.event_id);

  auto again = sample_notification("n2");
  again.issues[0].issue = told;
  const auto loop = deliver(*bench.make("stop_training", "{armed: true}"), again);
  EXPECT_EQ(loop.code, "not_firing");
  EXPECT_TRUE(loop.issues.empty());
  EXPECT_TRUE(bench.commands.empty());
}

TEST(StopTraining, NothingIsToldOfAStopNobodyArmedAndOfARuleInShadow) {
  Workbench bench;
  EXPECT_TRUE(deliver(*bench.make("stop_training", "{deny: [job=digits]}"), sample_notification())
                  .issues.empty());
  auto shadow = sample_notification();
  shadow.issues[0].issue.shadow = true;
  EXPECT_TRUE(deliver(*bench.make("stop_training", "{armed: true}"), shadow).issues.empty());
}

TEST(StopTraining, ANotificationThatExpiresIsAStopThatFailed) {
  const auto loaded = load("receivers: {s: {stop_training: {armed: true}}}");
  core::NullTelemetry telemetry;
  DeliveryLanes lanes(
      lane_options(loaded.receivers, "c1"), [] { return 1.0; }, telemetry);
  auto notification = sample_notification();
  notification.integration = "s/stop_training";
  lanes.enqueue(notification, kStart);
  core::AttemptOutcome down;
  down.outcome = core::OutcomeClass::transient;
  const auto attempt = lanes.next(kStart);
  ASSERT_TRUE(attempt);
  lanes.finished(*attempt, down, kStart + 1s);
  EXPECT_TRUE(lanes.take().issues.empty());
  EXPECT_FALSE(lanes.next(kStart + 10min));
  const auto batch = lanes.take();
  ASSERT_EQ(batch.issues.size(), 1u);
  EXPECT_EQ(batch.issues[0].labels.get("reason"), "expired");
  EXPECT_EQ(batch.issues[0].source, "/c1/rules/stop_failed");
}

TEST(StopTraining, MeetsItsGuardsAtTheirLimits) {
  Workbench bench;
  const auto stop = bench.make(
      "stop_training",
      "{armed: true, min_step: 412, min_consecutive: 1, allow: [job=digits], deny: [env=prod]}");
  EXPECT_EQ(deliver(*stop, sample_notification()).code, "requested");
}

TEST(StopTraining, StopsAtMostSoManyRunsInATime) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{armed: true, max_stops: {count: 2, per: 10m}}");
  for (const char* run : {"a", "b"}) {
    EXPECT_EQ(deliver(*stop, of_run(core::run_uid_for("job", run))).code, "requested");
  }
  const core::AttemptOutcome out = deliver(*stop, of_run(core::run_uid_for("job", "c")));
  EXPECT_EQ(out.code, "refused");
  EXPECT_THAT(out.detail, HasSubstr("max_stops, 2 in the last 10m"));
  EXPECT_EQ(out.issues.at(0).labels.get("reason"), "held_back");
  bench.clock.advance(10min + 1s);
  EXPECT_EQ(deliver(*stop, of_run(core::run_uid_for("job", "c"))).code, "requested");
}

TEST(StopTraining, DoesNothingWhenTheIssueIsOver) {
  Workbench bench;
  const auto stop = bench.make("stop_training", "{armed: true}");
  const core::AttemptOutcome out =
      deliver(*stop, sample_notification("n", core::NotificationKind::close));
  EXPECT_TRUE(out.declined);
  EXPECT_EQ(out.code, "not_firing");
  EXPECT_TRUE(bench.commands.empty());
}

TEST(StopTraining, RefusesDeadlinesThatContradictEachOther) {
  EXPECT_THAT(load("receivers: {s: {stop_training: {deadline: {graceful: 20m}}}}").errors,
              HasSubstr("graceful is longer than total"));
}

}  // namespace
}  // namespace tocsin::actions
