#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;

core::CurrentRun going() {
  core::CurrentRun out;
  out.attempt = 1;
  out.world_size = 2;
  out.step = 400;
  out.step_seconds = 0.5;
  out.step_at = kStart - 2s;
  return out;
}

// A bench whose run goes on.
struct ProfileBench : Workbench {
  explicit ProfileBench(core::CurrentRun run = going()) : current(std::move(run)) {
    environment.current_run = [this](const core::RunUid&) { return current; };
  }
  std::optional<core::CurrentRun> current;
};

core::Notification of_episode(std::uint64_t episode, core::WallTime began = kStart - 1s) {
  auto out = sample_notification();
  out.issues[0].episode = episode;
  out.issues[0].issue.starts_at = began;
  return out;
}

TEST(ProfileTraining, AsksOnceForStacksAndTheSameStepsOfAllRanks) {
  ProfileBench bench;
  const auto action = bench.make("profile_training", "{trace: 5}");
  const core::AttemptOutcome out = deliver(*action, sample_notification());
  EXPECT_EQ(out.outcome, core::OutcomeClass::delivered);
  EXPECT_EQ(out.code, "requested");
  EXPECT_FALSE(out.declined);
  ASSERT_EQ(bench.commands.size(), 1U);
  const core::Command& command = bench.commands[0];
  EXPECT_EQ(command.action, "profile");
  EXPECT_EQ(command.run, kRun);
  EXPECT_TRUE(command.ranks.empty());
  EXPECT_EQ(command.expires_at, kStart + 60s);
  EXPECT_EQ(command.reason.rule, "exploding_tensor");
  // 400, four steps since it was told, and three seconds; at least ten steps.
  EXPECT_EQ(core::to_json(command.args),
            R"({"kind":"trace","tell":true,"from_step":414,"steps":5,"asked":1})");
}

TEST(ProfileTraining, TheFirstStepIsFurtherAheadInAYoungRunAndInAQuickOne) {
  ProfileBench bench;
  bench.current->step_seconds = 0.01;
  bench.current->step_at = kStart;
  deliver(*bench.make("profile_training", "{trace: 1}"), sample_notification());
  bench.current->step = 10;
  deliver(*bench.make("profile_training", "{trace: 1}"), sample_notification());
  const auto from = [&](std::size_t which) {
    return *core::as<std::int64_t>(core::find(bench.commands.at(which).args, "from_step"));
  };
  EXPECT_EQ(from(0), 400 + 300);
  EXPECT_EQ(from(1), 10 + 1200);
}

TEST(ProfileTraining, OfStacksAloneNoPaceIsNeeded) {
  ProfileBench bench;
  bench.current->step_seconds.reset();
  const auto action = bench.make("profile_training", "{}");
  EXPECT_EQ(deliver(*action, sample_notification()).code, "requested");
  EXPECT_EQ(core::to_json(bench.commands.at(0).args), R"({"kind":"stacks","tell":true,"asked":1})");
  const core::AttemptOutcome held =
      deliver(*bench.make("profile_training", "{trace: 2, stacks: false}"), sample_notification());
  EXPECT_EQ(held.outcome, core::OutcomeClass::transient);
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.code, "pace_unknown");
  EXPECT_EQ(bench.commands.size(), 1U);
}

TEST(ProfileTraining, AnEpisodeAsksOnceAndTheNextOneWithinTheBudget) {
  ProfileBench bench;
  const auto action = bench.make("profile_training", "{every: 10m, most: 2}");
  deliver(*action, of_episode(1));
  EXPECT_EQ(deliver(*action, of_episode(1)).code, "already_requested");
  const core::AttemptOutcome soon = deliver(*action, of_episode(2));
  EXPECT_TRUE(soon.declined);
  EXPECT_EQ(soon.code, "too_soon");
  EXPECT_THAT(soon.detail, HasSubstr("less than 10m ago"));
  bench.clock.advance(10min);
  EXPECT_EQ(deliver(*action, of_episode(2, kStart)).code, "requested");
  ASSERT_EQ(bench.commands.size(), 2U);
  EXPECT_NE(bench.commands[0].command_id, bench.commands[1].command_id);
  EXPECT_LT(bench.commands[0].revision, bench.commands[1].revision);
  bench.clock.advance(1h);
  EXPECT_EQ(deliver(*action, of_episode(3)).code, "too_many");
  bench.current->attempt = 2;
  auto next = of_episode(4);
  next.issues[0].issue.run.attempt = 2;
  EXPECT_EQ(deliver(*action, next).code, "requested") << "another attempt";
}

TEST(ProfileTraining, ARouterThatStartsAnewWritesTheSameCommand) {
  ProfileBench bench;
  deliver(*bench.make("profile_training", "{}"), sample_notification());
  bench.clock.advance(4h);
  deliver(*bench.make("profile_training", "{}"), sample_notification("ntf_repeat"));
  ASSERT_EQ(bench.commands.size(), 2U);
  EXPECT_EQ(bench.commands[0].command_id, bench.commands[1].command_id);
  EXPECT_EQ(bench.commands[0].revision, bench.commands[1].revision)
      << "a hook takes an id and revision once";
}

// What a router reads of `commands` when it starts: of each slot the newest.
TEST(ProfileTraining, TheBudgetOutlivesTheRouter) {
  ProfileBench bench;
  ProfileLedger before;
  bench.environment.profiles = &before;
  const char* limits = "{every: 10m, most: 3}";
  deliver(*bench.make("profile_training", limits), of_episode(1));
  bench.clock.advance(11min);
  deliver(*bench.make("profile_training", limits), of_episode(2, kStart));
  ASSERT_EQ(bench.commands.size(), 2U);
  ProfileLedger after;
  after.on_command(bench.commands[1]);
  bench.environment.profiles = &after;
  const auto action = bench.make("profile_training", limits);
  EXPECT_EQ(deliver(*action, of_episode(2, kStart)).code, "already_requested");
  EXPECT_EQ(deliver(*action, of_episode(3)).code, "too_soon");
  bench.clock.advance(11min);
  EXPECT_EQ(deliver(*action, of_episode(3)).code, "requested");
  bench.clock.advance(11min);
  EXPECT_EQ(deliver(*action, of_episode(4)).code, "too_many");
  EXPECT_EQ(core::to_json(bench.commands.at(2).args), R"({"kind":"stacks","tell":true,"asked":3})");
}

TEST(ProfileTraining, WhatPeopleAskForTakesNothingFromTheBudget) {
  ProfileBench bench;
  deliver(*bench.make("profile_training", "{}"), of_episode(1));
  core::Command person = bench.commands.at(0);
  person.requested_by = "ann";
  person.command_id = "cmd_person";
  ProfileLedger ledger;
  ledger.on_command(person);
  bench.environment.profiles = &ledger;
  EXPECT_EQ(deliver(*bench.make("profile_training", "{most: 1}"), of_episode(2)).code, "requested");
}

core::Ack too_late(const core::Command& command, std::int64_t step) {
  core::Ack out;
  out.command_id = command.command_id;
  out.revision = command.revision;
  out.action = "profile";
  out.phase = "refused";
  out.reason = "too_late: step " + std::to_string(step) + " has begun";
  out.run = command.run;
  out.attempt = command.attempt;
  out.rank = 1;
  out.step = step;
  out.time = command.issued_at + 1s;
  return out;
}

TEST(ProfileTraining, WhoWasAskedTooLateIsAskedOnceMoreForALaterStep) {
  ProfileBench bench;
  ProfileLedger ledger;
  bench.environment.profiles = &ledger;
  deliver(*bench.make("profile_training", "{trace: 5}"), sample_notification());
  const core::Command first = bench.commands.at(0);
  const core::Ack late = too_late(first, 430);
  const auto again = ledger.on_ack(late, *bench.current, kStart + 2s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->command_id, first.command_id);
  EXPECT_EQ(again->revision, first.revision + 1);
  EXPECT_EQ(again->expires_at, kStart + 62s);
  // Step 430 a second ago, at half a second each, and nine seconds.
  EXPECT_EQ(core::to_json(again->args),
            R"({"kind":"trace","tell":true,"steps":5,"asked":1,"from_step":450,"again":true})");
  EXPECT_FALSE(ledger.on_ack(late, *bench.current, kStart + 2s)) << "the other ranks' answers";
  EXPECT_FALSE(ledger.on_ack(too_late(*again, 460), *bench.current, kStart + 9s)) << "once";
  bench.clock.advance(11min);
  EXPECT_EQ(deliver(*bench.make("profile_training", "{most: 2}"), of_episode(9)).code, "requested")
      << "it was one request";
}

TEST(ProfileTraining, NobodyIsAskedAgainForWhatIsOver) {
  ProfileBench bench;
  ProfileLedger ledger;
  bench.environment.profiles = &ledger;
  deliver(*bench.make("profile_training", "{trace: 5}"), sample_notification());
  const core::Ack late = too_late(bench.commands.at(0), 430);
  EXPECT_FALSE(ledger.on_ack(late, *bench.current, kStart + 61s)) << "nobody answers any more";
  core::Ack busy = late;
  busy.reason = "busy: another trace goes on";
  EXPECT_FALSE(ledger.on_ack(busy, *bench.current, kStart + 2s));
  core::CurrentRun another = *bench.current;
  another.attempt = 2;
  EXPECT_FALSE(ledger.on_ack(late, another, kStart + 2s));
  core::Ack older = late;
  older.revision -= 1;
  EXPECT_FALSE(ledger.on_ack(older, *bench.current, kStart + 2s));
}

TEST(ProfileTraining, WhatDoesNotGoOnIsAskedNothing) {
  ProfileBench bench;
  const auto action = bench.make("profile_training", "{}");
  bench.current->ended = true;
  EXPECT_EQ(deliver(*action, sample_notification()).code, "ended");
  bench.current = going();
  bench.current->attempt = 2;
  EXPECT_EQ(deliver(*action, sample_notification()).code, "stale");
  bench.current.reset();
  EXPECT_EQ(deliver(*action, sample_notification()).code, "ended");
  EXPECT_TRUE(
      deliver(*action, sample_notification("ntf_end", core::NotificationKind::close)).declined);
  EXPECT_TRUE(bench.commands.empty());
}

TEST(ProfileTraining, WhatCouldNotBeWrittenTakesNothingFromTheBudget) {
  ProfileBench bench;
  const auto action = bench.make("profile_training", "{most: 1}");
  bench.command_answer = core::unavailable("no broker");
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::transient);
  bench.command_answer = {};
  EXPECT_EQ(deliver(*action, sample_notification()).code, "requested");
}

TEST(ProfileTraining, NothingToAskForIsRefused) {
  EXPECT_THAT(load("receivers: {a: {profile_training: {stacks: false}}}\n").errors,
              HasSubstr("nothing to ask for"));
}

std::uint64_t revision_of(ProfileBench& bench) { return bench.commands.back().revision; }

TEST(ProfileTraining, RevisionsOfARunOnlyGrow) {
  ProfileBench bench;
  ProfileLedger ledger;
  bench.environment.profiles = &ledger;
  const auto action = bench.make("profile_training", "{every: 1s}");
  deliver(*action, of_episode(1, kStart - 1s));
  const auto first = revision_of(bench);
  bench.clock.advance(1min);
  // An issue that began before is told later.
  deliver(*action, of_episode(2, kStart - 1h));
  ASSERT_EQ(bench.commands.size(), 2U);
  EXPECT_GT(revision_of(bench), first);
}

TEST(ProfileTraining, RevisionsGrowOverARestartAnotherAttemptAndWhatPeopleWrote) {
  ProfileBench bench;
  ProfileLedger before;
  bench.environment.profiles = &before;
  deliver(*bench.make("profile_training", "{}"), of_episode(1, kStart - 1s));
  core::Command by_hand = bench.commands.back();
  by_hand.command_id = "cmd_by_hand";
  by_hand.requested_by = "user";
  by_hand.attempt = 9;
  by_hand.revision += 5000;
  ProfileLedger after;
  bench.environment.profiles = &after;
  after.on_command(by_hand);  // the topic keeps the newest of the slot, and is read again
  bench.clock.advance(1h);
  bench.current->attempt = 2;
  auto next = of_episode(1, kStart - 1s);
  next.issues[0].issue.run.attempt = 2;
  deliver(*bench.make("profile_training", "{}"), next);
  ASSERT_EQ(bench.commands.size(), 2U);
  EXPECT_GT(revision_of(bench), by_hand.revision);
}

TEST(ProfileTraining, AnIssueFromTheFutureDoesNotShutThosePeopleWriteOut) {
  ProfileBench bench;
  deliver(*bench.make("profile_training", "{}"), of_episode(1, core::WallTime::max()));
  ASSERT_EQ(bench.commands.size(), 1U);
  EXPECT_LE(revision_of(bench), static_cast<std::uint64_t>(core::nanoseconds(kStart) / 1'000'000));
}

}  // namespace
}  // namespace tocsin::actions
