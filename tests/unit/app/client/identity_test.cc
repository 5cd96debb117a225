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
  facts.start_seconds = 1'767'323'045;
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
  EXPECT_EQ(one->attempt, 3U);
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

TEST(Identity, SlurmJobIsTheRunAndItsRestartsAreAttempts) {
  const auto identity = derive_identity({}, machine({{"SLURM_JOB_ID", "77"},
                                                     {"SLURM_CLUSTER_NAME", "c1"},
                                                     {"SLURM_PROCID", "5"},
                                                     {"SLURM_STEP_NUM_TASKS", "8"},
                                                     {"SLURM_RESTART_COUNT", "1"}}));
  EXPECT_EQ(identity->run, core::run_uid_v5("slurm:c1/77"));
  EXPECT_EQ(identity->rank, 5U);
  EXPECT_EQ(identity->attempt, 2U);
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

TEST(Identity, NamedRunOfOneProcessIsAnAttemptPerStart) {
  EXPECT_EQ(derive_identity({"a", "", "", -1, -1, 0}, machine({}))->attempt, 1'767'323'045U);
  EXPECT_EQ(derive_identity({"a", "", "", -1, -1, 0}, machine({{"TOCSIN_ATTEMPT", "4"}}))->attempt,
            4U);
}

TEST(Identity, NamedRunOfSeveralRanksWarnsThatRestartsLookAlike) {
  const auto identity = derive_identity({"a", "", "", 0, 2, 0}, machine({}));
  EXPECT_EQ(identity->attempt, 1U);
  EXPECT_NE(identity->warning.find("TOCSIN_ATTEMPT"), std::string::npos);
}

TEST(Identity, ThisProcessKnowsItsParent) {
  const ProcessFacts facts = this_process();
  EXPECT_GT(facts.pid, 0);
  EXPECT_GT(facts.start_ticks, 0);
  EXPECT_GT(facts.parent_start_ticks, 0);
  EXPECT_GT(facts.start_seconds, 1'500'000'000);
}

}  // namespace
}  // namespace tocsin::app::client
