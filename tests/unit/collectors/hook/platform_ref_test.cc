// What a hook reports of the platform that runs its job.
#include <gtest/gtest.h>

#include <map>

#include "collectors/hook/identity/identity.h"

namespace tocsin::hook {
namespace {

ProcessFacts pod_or_task(std::map<std::string, std::string> variables) {
  ProcessFacts facts;
  facts.environment = [variables](const std::string& name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  facts.boot_id = "boot";
  facts.host = "host";
  facts.script = "train";
  facts.opened_seconds = 1'767'323'045;
  return facts;
}

// What a stop by the platform compares: each field that a process can know, and no other.
TEST(PlatformRef, EachPlatformReportsItsFence) {
  struct Place {
    const char* platform;
    std::map<std::string, std::string> variables;
    core::ValueMap ref;
  };
  const core::Value opened(std::int64_t{1'767'323'045});
  const auto pod = [](std::map<std::string, std::string> more) {
    more.emplace("POD_NAME", "bert-0-x");
    more.emplace("TOCSIN_K8S_NAMESPACE", "ml");
    more.emplace("TOCSIN_K8S_JOB", "bert");
    return more;
  };
  const auto in_pod = [&](const char* uid) {
    core::ValueMap out;
    if (uid != nullptr) out.emplace_back("uid", uid);
    out.insert(out.end(),
               {{"name", "bert"}, {"namespace", "ml"}, {"pod", "bert-0-x"}, {"opened", opened}});
    return out;
  };
  const std::vector<Place> places{
      {"k8s-job", pod({{"TOCSIN_K8S_JOB_UID", "u1"}}), in_pod("u1")},
      {"jobset", pod({{"TOCSIN_K8S_JOB_UID", "u1"}, {"TOCSIN_K8S_KIND", "JobSet"}}), in_pod("u1")},
      {"pytorchjob", pod({{"TOCSIN_K8S_KIND", "PyTorchJob"}}), in_pod(nullptr)},
      {"trainjob", pod({{"TOCSIN_K8S_KIND", "TrainJob"}}), in_pod(nullptr)},
      {"rayjob", pod({{"TOCSIN_K8S_KIND", "RayJob"}}), in_pod(nullptr)},
      {"slurm",
       {{"SLURM_JOB_ID", "77"},
        {"SLURM_CLUSTER_NAME", "c1"},
        {"SLURM_RESTART_COUNT", "2"},
        {"SLURM_JOB_START_TIME", "1767323000"},
        {"SLURM_JOB_USER", "ada"}},
       {{"job_id", "77"},
        {"cluster", "c1"},
        {"restart_cnt", 2},
        {"start_time", std::int64_t{1'767'323'000}},
        {"user", "ada"},
        {"opened", opened}}},
      {"slurm",
       {{"SLURM_JOB_ID", "77"}},
       {{"job_id", "77"}, {"cluster", ""}, {"restart_cnt", 0}, {"opened", opened}}},
      {"sagemaker",
       {{"TRAINING_JOB_ARN", "arn:aws:x:job/a"}, {"TRAINING_JOB_NAME", "a"}},
       {{"name", "a"}, {"arn", "arn:aws:x:job/a"}, {"opened", opened}}},
      {"ray",
       {{"RAY_JOB_SUBMISSION_ID", "raysubmit_a"}},
       {{"submission_id", "raysubmit_a"}, {"opened", opened}}},
  };
  for (const Place& place : places) {
    const auto identity = derive_identity({}, pod_or_task(place.variables));
    ASSERT_TRUE(identity) << place.platform;
    EXPECT_EQ(identity->platform, place.platform);
    EXPECT_EQ(core::to_json(identity->platform_ref), core::to_json(core::Value(place.ref)))
        << place.platform;
  }
}

// A kind that Tocsin cannot stop is still told apart from a Job, which it could.
TEST(PlatformRef, AKindThatNobodyKnowsIsNoJob) {
  const auto identity = derive_identity(
      {}, pod_or_task({{"TOCSIN_K8S_JOB_UID", "u1"}, {"TOCSIN_K8S_KIND", "MPIJob"}}));
  EXPECT_EQ(identity->platform, "kubernetes");
  EXPECT_EQ(core::text_at(identity->platform_ref, "kind"), "MPIJob");
}

}  // namespace
}  // namespace tocsin::hook
