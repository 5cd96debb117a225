#include "app/client/identity.h"

#include <gtest/gtest.h>

#include <map>

namespace tocsin::app::client {
namespace {

ProcessFacts machine(std::map<std::string, std::string> variables) {
  ProcessFacts facts;
  facts.environment = [variables](const std::string& name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  facts.boot_id = "boot";
  facts.host = "host";
  facts.script = "train";
  facts.pid = 100;
  facts.start_ticks = 7;
  facts.parent_pid = 50;
  facts.parent_start_ticks = 3;
  facts.opened = 81'402'118'843'000;
  facts.opened_seconds = 1'767'323'045;
  return facts;
}

TEST(Identity, NamedRunHasTheUidOfJobAndName) {
  const auto identity = derive_identity({"exploding", "digits", "", -1, -1, 0}, machine({}));
  EXPECT_EQ(core::to_text(identity->run), "4e3046d4-8c1f-5278-82e3-ea3595bc5999");
  EXPECT_EQ(identity->worker, "worker_0");
}

TEST(Identity, UuidIsTakenAsItIs) {
  const std::string uid = "4e3046d4-8c1f-5278-82e3-ea3595bc5999";
  const auto identity =
      derive_identity({}, machine({{"TOCSIN_RUN", uid}, {"TOCSIN_JOB", "other"}}));
  EXPECT_EQ(core::to_text(identity->run), uid);
  EXPECT_EQ(identity->job, "other");
}

TEST(Identity, ArgumentBeatsTheEnvironment) {
  const auto named = derive_identity({"a", "j", "", -1, -1, 0}, machine({}));
  const auto both = derive_identity({"a", "j", "", -1, -1, 0},
                                    machine({{"TOCSIN_RUN", "b"}, {"TOCSIN_JOB", "k"}}));
  EXPECT_EQ(named->run, both->run);
}

TEST(Identity, OneProcessWithoutALauncherIsAFreshRunOfAttemptOne) {
  const auto first = derive_identity({}, machine({}));
  const auto second = derive_identity({}, machine({}));
  EXPECT_NE(first->run, second->run);
  EXPECT_EQ(first->attempt, 1U);
  EXPECT_EQ(first->job, "train");
}

TEST(Identity, TorchrunRanksAgreeWithoutTalking) {
  std::map<std::string, std::string> variables{
      {"TORCHELASTIC_RUN_ID", "abc"}, {"TORCHELASTIC_RESTART_COUNT", "2"}, {"WORLD_SIZE", "4"}};
  variables["RANK"] = "1";
  const auto one = derive_identity({}, machine(variables));
  variables["RANK"] = "3";
  const auto three = derive_identity({}, machine(variables));
  EXPECT_EQ(one->run, three->run);
  EXPECT_EQ(one->run, core::run_uid_v5("torchelastic:abc"));
  EXPECT_EQ(one->launch, three->launch);
  EXPECT_EQ(three->rank, 3U);
  EXPECT_EQ(three->worker, "worker_3");
  EXPECT_EQ(three->world_size, 4U);
}

TEST(Identity, TorchrunIdNoneOnOneHostFallsBackToTheParentProcess) {
  const std::map<std::string, std::string> variables{{"TORCHELASTIC_RUN_ID", "none"},
                                                     {"WORLD_SIZE", "2"},
                                                     {"LOCAL_WORLD_SIZE", "2"},
                                                     {"RANK", "1"}};
  const auto identity = derive_identity({}, machine(variables));
  EXPECT_EQ(identity->run, core::run_uid_v5("local:boot/50/3"));
}

TEST(Identity, SlurmJobIsTheRunAndItsRestartsAreLaunches) {
  const auto identity = derive_identity({}, machine({{"SLURM_JOB_ID", "77"},
                                                     {"SLURM_CLUSTER_NAME", "c1"},
                                                     {"SLURM_PROCID", "5"},
                                                     {"SLURM_STEP_NUM_TASKS", "8"},
                                                     {"SLURM_STEP_ID", "0"},
                                                     {"SLURM_RESTART_COUNT", "1"}}));
  EXPECT_EQ(identity->run, core::run_uid_v5("slurm:c1/77"));
  EXPECT_EQ(identity->rank, 5U);
  EXPECT_EQ(identity->attempt, 1'767'323'045U);
  EXPECT_EQ(identity->launch, "slurm:c1/77.0/1");
  EXPECT_EQ(identity->platform, "slurm");
}

TEST(Identity, SlurmBatchScriptIsNoStep) {
  const auto identity = derive_identity(
      {}, machine({{"SLURM_JOB_ID", "77"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
  EXPECT_EQ(identity->world_size, 1U);
}

TEST(Identity, SeveralHostsWithoutANameAskForOne) {
  const auto identity =
      derive_identity({}, machine({{"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}}));
  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().message.find("run="), std::string::npos);
}

TEST(Identity, AttemptOfANamedRunIsWhenItsClientOpenedUnlessSomebodyCounts) {
  EXPECT_EQ(derive_identity({"a", "", "", -1, -1, 0}, machine({}))->attempt, 1'767'323'045U);
  EXPECT_EQ(derive_identity({"a", "", "", -1, -1, 0}, machine({{"TOCSIN_ATTEMPT", "4"}}))->attempt,
            4U);
  EXPECT_EQ(derive_identity({"a", "", "", -1, -1, 9}, machine({{"TOCSIN_ATTEMPT", "4"}}))->attempt,
            9U);
}

// Every launch under torchrun counts its restarts from 0: as an attempt, the second launch of a
// named run would be the first again.
TEST(Identity, RestartCountsAreNoAttempts) {
  std::map<std::string, std::string> variables{{"TORCHELASTIC_RUN_ID", "none"},
                                               {"TORCHELASTIC_RESTART_COUNT", "0"},
                                               {"WORLD_SIZE", "2"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"MASTER_ADDR", "localhost"},
                                               {"MASTER_PORT", "29500"}};
  ProcessFacts first = machine(variables);
  ProcessFacts second = machine(variables);
  second.opened_seconds += 60;
  const auto one = derive_identity({"a", "", "", 0, 2, 0}, first);
  const auto two = derive_identity({"a", "", "", 0, 2, 0}, second);
  EXPECT_GT(two->attempt, one->attempt);
  EXPECT_EQ(two->launch, one->launch);  // a fixed port and no id: the key alone does not tell
  EXPECT_EQ(one->launch, "torchelastic:none/0@localhost:29500");
}

TEST(Identity, ThisProcessKnowsItsParent) {
  const ProcessFacts facts = this_process();
  EXPECT_GT(facts.pid, 0);
  EXPECT_GT(facts.start_ticks, 0);
  EXPECT_GT(facts.parent_start_ticks, 0);
  EXPECT_GT(facts.opened_seconds, 1'500'000'000);
  EXPECT_GT(facts.opened, 0);
  EXPECT_EQ(facts.boot_id.size(), 36U);
}

}  // namespace
}  // namespace tocsin::app::client
