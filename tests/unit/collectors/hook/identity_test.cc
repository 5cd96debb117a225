#include "collectors/hook/identity/identity.h"

#include <gtest/gtest.h>

#include <map>

namespace tocsin::hook {
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

/// Each launcher's words, and what follows from them: rank, of how many, here or not.
struct Started {
  const char* what;
  std::map<std::string, std::string> variables;
  std::uint32_t rank;
  std::uint32_t world;
  bool one_host;
  const char* worker;
};

const Started kStarted[] = {
    {"torchrun",
     {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}},
     3,
     4,
     true,
     "worker_3"},
    {"Horovod by horovodrun",
     {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}, {"HOROVOD_LOCAL_SIZE", "2"}},
     1,
     2,
     true,
     "worker_1"},
    {"Horovod on two hosts",
     {{"HOROVOD_RANK", "5"}, {"HOROVOD_SIZE", "8"}, {"HOROVOD_LOCAL_SIZE", "4"}},
     5,
     8,
     false,
     "worker_5"},
    {"horovodrun in a task of Slurm's",
     {{"HOROVOD_RANK", "1"},
      {"HOROVOD_SIZE", "2"},
      {"HOROVOD_LOCAL_SIZE", "2"},
      {"SLURM_PROCID", "0"},
      {"SLURM_STEP_NUM_TASKS", "1"}},
     1,
     2,
     true,
     "worker_1"},
    {"Open MPI, as Horovod and SageMaker's data parallel library start it",
     {{"OMPI_COMM_WORLD_RANK", "2"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
     2,
     4,
     true,
     "worker_2"},
    {"MVAPICH2",
     {{"MV2_COMM_WORLD_RANK", "2"},
      {"MV2_COMM_WORLD_SIZE", "4"},
      {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}},
     2,
     4,
     false,
     "worker_2"},
    {"MPICH and Intel MPI",
     {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}},
     1,
     2,
     true,
     "worker_1"},
    {"jsrun",
     {{"JSM_NAMESPACE_RANK", "6"}, {"JSM_NAMESPACE_SIZE", "12"}, {"JSM_NAMESPACE_LOCAL_SIZE", "6"}},
     6,
     12,
     false,
     "worker_6"},
    {"mpirun in a task of Slurm's",
     {{"OMPI_COMM_WORLD_RANK", "3"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
      {"SLURM_PROCID", "0"},
      {"SLURM_STEP_NUM_TASKS", "1"}},
     3,
     4,
     true,
     "worker_3"},
    {"srun",
     {{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_TASKS_PER_NODE", "8"}},
     5,
     8,
     true,
     "worker_5"},
    {"JAX", {{"JAX_PROCESS_ID", "1"}, {"JAX_NUM_PROCESSES", "2"}}, 1, 2, false, "worker_1"},
    {"TensorFlow: a worker behind the chief",
     {{"TF_CONFIG",
       R"({"cluster": {"chief": ["localhost:1"], "worker": ["localhost:2", "localhost:3"], "ps": ["localhost:4"]},
                        "task": {"type": "worker", "index": 1}})"}},
     2,
     3,
     true,
     "worker_2"},
    {"TensorFlow: a parameter server",
     {{"TF_CONFIG",
       R"({"cluster": {"worker": ["a:2", "b:3"], "ps": ["c:4", "d:4"]}, "task": {"type": "ps", "index": 1}})"}},
     3,
     2,
     false,
     "ps_1"},
    {"TensorFlow: the evaluator",
     {{"TF_CONFIG",
       R"({"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}})"}},
     1,
     1,
     true,
     "evaluator_0"},
    {"ps-lite: a worker",
     {{"DMLC_ROLE", "worker"},
      {"DMLC_NUM_WORKER", "4"},
      {"DMLC_NUM_SERVER", "2"},
      {"DMLC_WORKER_ID", "3"},
      {"DMLC_PS_ROOT_URI", "127.0.0.1"}},
     3,
     4,
     true,
     "worker_3"},
    {"ps-lite: a server",
     {{"DMLC_ROLE", "server"},
      {"DMLC_NUM_WORKER", "4"},
      {"DMLC_NUM_SERVER", "2"},
      {"DMLC_SERVER_ID", "1"},
      {"DMLC_PS_ROOT_URI", "10.0.0.1"}},
     5,
     4,
     false,
     "server_1"},
    {"ps-lite: the scheduler",
     {{"DMLC_ROLE", "scheduler"},
      {"DMLC_NUM_WORKER", "4"},
      {"DMLC_NUM_SERVER", "2"},
      {"DMLC_PS_ROOT_URI", "127.0.0.1"}},
     6,
     4,
     true,
     "scheduler_0"},
    {"BytePS: two GPUs a worker",
     {{"DMLC_ROLE", "worker"},
      {"DMLC_NUM_WORKER", "2"},
      {"DMLC_WORKER_ID", "1"},
      {"BYTEPS_LOCAL_RANK", "1"},
      {"BYTEPS_LOCAL_SIZE", "2"},
      {"DMLC_PS_ROOT_URI", "127.0.0.1"}},
     3,
     4,
     true,
     "worker_3"},
    {"a launcher's word before TF_CONFIG",
     {{"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})"}},
     1,
     2,
     true,
     "worker_1"},
    {"a TF_CONFIG that says nothing",
     {{"TF_CONFIG", R"({"cluster": [], "task": "x"})"}},
     0,
     1,
     true,
     "worker_0"},
    {"a TF_CONFIG that is none", {{"TF_CONFIG", "{"}}, 0, 1, true, "worker_0"},
};

TEST(Identity, RanksAreWhatTheLauncherSays) {
  for (const Started& one : kStarted) {
    auto variables = one.variables;
    const auto alone = derive_identity({}, machine(variables));
    EXPECT_EQ(alone.has_value(), one.one_host) << one.what;  // several hosts ask for a name
    variables["TOCSIN_RUN"] = "named";
    const auto named = derive_identity({}, machine(variables));
    ASSERT_TRUE(named) << one.what;
    EXPECT_EQ(named->rank, one.rank) << one.what;
    EXPECT_EQ(named->world_size, one.world) << one.what;
    EXPECT_EQ(named->worker, one.worker) << one.what;
  }
}

// horovodrun, and whoever starts parameter servers, starts each process through another parent.
TEST(Identity, ProcessesWithoutACommonParentAgreeByWhatTheyMeetAt) {
  for (std::map<std::string, std::string> variables :
       {std::map<std::string, std::string>{{"HOROVOD_RANK", "0"},
                                           {"HOROVOD_SIZE", "2"},
                                           {"HOROVOD_LOCAL_SIZE", "2"},
                                           {"HOROVOD_GLOO_RENDEZVOUS_PORT", "41234"}},
        {{"DMLC_ROLE", "server"},
         {"DMLC_NUM_WORKER", "1"},
         {"DMLC_NUM_SERVER", "1"},
         {"DMLC_PS_ROOT_URI", "127.0.0.1"},
         {"DMLC_PS_ROOT_PORT", "9091"}}}) {
    ProcessFacts first = machine(variables);
    if (variables.count("DMLC_ROLE") != 0) variables["DMLC_ROLE"] = "worker";
    if (variables.count("HOROVOD_RANK") != 0) variables["HOROVOD_RANK"] = "1";
    ProcessFacts second = machine(variables);
    second.parent_pid = 51;
    const auto one = derive_identity({}, first);
    const auto two = derive_identity({}, second);
    EXPECT_EQ(one->run, two->run);
    EXPECT_EQ(one->launch, two->launch);
    EXPECT_NE(one->worker, two->worker);
    second.script = "other";
    EXPECT_NE(derive_identity({}, second)->run, one->run)
        << "another job that meets at the same place";
  }
}

TEST(Identity, SageMakerAndFluxNameTheRun) {
  const auto job = derive_identity({}, machine({{"TRAINING_JOB_ARN", "arn:aws:x:job/a"},
                                                {"TRAINING_JOB_NAME", "a"},
                                                {"OMPI_COMM_WORLD_RANK", "9"},
                                                {"OMPI_COMM_WORLD_SIZE", "16"},
                                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->run, core::run_uid_v5("sagemaker:arn:aws:x:job/a"));
  EXPECT_EQ(job->platform, "sagemaker");
  EXPECT_EQ(job->rank, 9U);
  const auto flux = derive_identity({}, machine({{"FLUX_JOB_ID", "f23"},
                                                 {"FLUX_URI", "local:///x"},
                                                 {"FLUX_TASK_RANK", "2"},
                                                 {"FLUX_JOB_SIZE", "4"}}));
  EXPECT_EQ(flux->run, core::run_uid_v5("flux:local:///x/f23"));
  EXPECT_EQ(flux->rank, 2U);
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
}  // namespace tocsin::hook
