// Who writes again what was asked of runs: only the leader, and only what is news.
#include "app/stages/runs.h"

#include <gtest/gtest.h>

#include "app/view/agent_order.h"
#include "core/json.h"
#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

const core::WallTime kAsked = core::wall_time(1767323045678000000);

core::Command profile(std::string by) {
  core::Command out;
  out.command_id = "cmd_look";
  out.action = "profile";
  out.run = core::run_uid_v5("runs stage");
  out.issued_at = kAsked;
  out.expires_at = kAsked + 1min;
  out.requested_by = std::move(by);
  out.args = core::ValueMap{
      {"kind", "trace"}, {"from_step", std::int64_t{400}}, {"steps", std::int64_t{5}}};
  return out;
}

class RunsStageTest : public testing::Test {
 protected:
  RunsStageTest() {
    EXPECT_TRUE(stage_.open(at(0s)));
    stage_.started(0, at(0s));
    core::JobEvent beat;
    beat.phase = core::JobPhase::heartbeat;
    beat.run.uid = profile("").run;
    beat.run.attempt = 1;
    beat.time = kAsked;
    beat.step = 390;
    beat.step_seconds = 0.5;
    tell(ingest::encode_registry(beat, "default"));
  }
  static Instant at(core::Duration since) { return {kAsked + since, since}; }
  void caught_up() {
    (void)stage_.tick({at(1s), [](std::int32_t) { return true; },
                       [](std::int32_t) { return std::optional<core::Duration>(); }});
  }
  void tell(const core::OutRecord& record) {
    EXPECT_FALSE(stage_.handle(ingest::fixture::view_of(record), {at(2s), false}));
  }
  void late() {
    core::Ack ack;
    ack.command_id = "cmd_look";
    ack.action = "profile";
    ack.phase = "refused";
    ack.reason = "too_late: step 405 has begun";
    ack.run = profile("").run;
    ack.attempt = 1;
    ack.step = 405;
    ack.time = kAsked + 1s;
    tell(ingest::encode_ack(ack, "default"));
  }
  std::vector<core::Command> written() {
    std::vector<core::Command> out;
    for (const StageRecord& one : stage_.take(at(2s)).records) {
      out.push_back(*ingest::decode_command(ingest::fixture::view_of(one.record))->command);
    }
    return out;
  }

  RunBoard board_;
  actions::StopLedger stops_;
  actions::StopApprovals approvals_;
  actions::ProfileLedger profiles_;
  bool leads_ = true;
  RunsStage stage_{board_, stops_, approvals_, profiles_, "default", [this] { return leads_; }};
};

TEST_F(RunsStageTest, ATraceThatCameTooLateIsAskedForOnceMore) {
  tell(ingest::encode_command(profile("router"), "/default/router"));
  caught_up();
  late();
  late();
  const auto again = written();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].revision, 2U);
  EXPECT_GT(*core::as<std::int64_t>(core::find(again[0].args, "from_step")), 405);
  EXPECT_EQ(again[0].expires_at, kAsked + 62s);
  tell(ingest::encode_command(again[0], "/default/router"));
  late();
  EXPECT_TRUE(written().empty());
}

TEST_F(RunsStageTest, NotByAProcessThatDoesNotLead) {
  leads_ = false;
  tell(ingest::encode_command(profile("router"), "/default/router"));
  caught_up();
  late();
  EXPECT_TRUE(written().empty());
}

TEST_F(RunsStageTest, NotWhatWasAnsweredBeforeThisProcessKnewEverything) {
  tell(ingest::encode_command(profile("router"), "/default/router"));
  late();
  caught_up();
  EXPECT_TRUE(written().empty());
}

TEST_F(RunsStageTest, NotWhatAPersonAskedForWhoAsksAgainByHand) {
  tell(ingest::encode_command(profile("ann"), "/default/cli"));
  caught_up();
  late();
  EXPECT_TRUE(written().empty());
}

// The topic forgets what is old, and an agent that begins after a month shall know what was asked.
class AskedAgentTest : public RunsStageTest {
 protected:
  AskedAgentTest() {
    AgentOrder order;
    order.settings.interval = 200ms;
    command_ = agent_command(order, "n7", "ann", 3, kAsked);
    caught_up();
  }
  void ask(core::Duration since) {
    const auto record = agent_record(command_, "n7", "/default/api");
    auto view = ingest::fixture::view_of(record);
    view.timestamp = core::nanoseconds(kAsked + since);
    EXPECT_FALSE(stage_.handle(view, {at(since), false}));
  }
  std::vector<core::OutRecord> at_time(core::Duration since) {
    (void)stage_.tick({at(since), [](std::int32_t) { return true; },
                       [](std::int32_t) { return std::optional<core::Duration>(); }});
    std::vector<core::OutRecord> out;
    for (StageRecord& one : stage_.take(at(since)).records) out.push_back(std::move(one.record));
    return out;
  }
  core::Command command_;
};

TEST_F(AskedAgentTest, IsWrittenAgainBeforeItIsForgotten) {
  ask(0s);
  EXPECT_TRUE(at_time(5h).empty());
  const auto again = at_time(6h);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].key, "node:n7/agent");
  const auto decoded = ingest::decode_command(ingest::fixture::view_of(again[0]));
  ASSERT_TRUE(decoded && decoded->command);
  EXPECT_EQ(decoded->command->command_id, command_.command_id);
  EXPECT_EQ(decoded->command->revision, 3U);
  EXPECT_EQ(decoded->command->issued_at, command_.issued_at);
  EXPECT_TRUE(at_time(11h).empty());
  EXPECT_EQ(at_time(12h).size(), 1U);
}

TEST_F(AskedAgentTest, NotWhatIsOverOrTakenBackOrAskedWhereAnotherLeads) {
  command_.expires_at = kAsked + 1h;
  ask(0s);
  EXPECT_TRUE(at_time(7h).empty());
  command_.expires_at.reset();
  ask(7h);
  const auto gone = agent_tombstone("n7");
  EXPECT_FALSE(stage_.handle(ingest::fixture::view_of(gone), {at(8h), false}));
  EXPECT_TRUE(at_time(20h).empty());
  ask(20h);
  leads_ = false;
  EXPECT_TRUE(at_time(40h).empty());
}

// An adjustment whose common step a rank had passed, and what only the leader may do about it.
class SteeredRunsTest : public RunsStageTest {
 protected:
  SteeredRunsTest() {
    stage_.steer_by(&steering_);
    core::Command asked = profile("router");
    asked.command_id = "cmd_adjust";
    asked.action = "adjust/lr";
    asked.args =
        core::ValueMap{{"name", "lr"}, {"value", 0.1}, {"not_before_step", std::int64_t{400}}};
    tell(ingest::encode_command(asked, "/default/router"));
    core::Ack ack;
    ack.command_id = "cmd_adjust";
    ack.action = "adjust/lr";
    ack.phase = "refused";
    ack.reason = "too_late";
    ack.run = asked.run;
    ack.attempt = 1;
    ack.step = 405;
    tell(ingest::encode_ack(ack, "default"));
  }
  actions::SteeringLedger steering_;
};

TEST_F(SteeredRunsTest, AnAdjustmentThatCameTooLateIsWrittenForALaterStep) {
  caught_up();
  const auto again = written();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].command_id, "cmd_adjust");
  EXPECT_EQ(again[0].revision, 2U);
  EXPECT_GT(*core::as<std::int64_t>(core::find(again[0].args, "not_before_step")), 405);
  caught_up();
  EXPECT_TRUE(written().empty());
}

TEST_F(SteeredRunsTest, NotByAProcessThatDoesNotLead) {
  leads_ = false;
  caught_up();
  EXPECT_TRUE(written().empty());
}

}  // namespace
}  // namespace tocsin::app
