#include "collectors/hook/identity/platform_ref.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace tocsin::hook {
namespace {

/// Kinds of Kubernetes objects that own a job's pods, and their names as platforms.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kObjects{{
    {"Job", "k8s-job"},
    {"JobSet", "jobset"},
    {"PyTorchJob", "pytorchjob"},
    {"TrainJob", "trainjob"},
    {"RayJob", "rayjob"},
}};

std::string platform_of_kind(const std::string& kind) {
  if (kind.empty()) return "k8s-job";
  const auto known = std::find_if(kObjects.begin(), kObjects.end(),
                                  [&](const auto& one) { return one.first == kind; });
  return known == kObjects.end() ? "kubernetes" : std::string(known->second);
}

void add_text(core::ValueMap& ref, const char* key, std::string value) {
  if (!value.empty()) ref.emplace_back(key, std::move(value));
}

void add_whole(core::ValueMap& ref, const char* key, const Variables& env, const char* name) {
  if (const auto value = env.integer({name})) ref.emplace_back(key, *value);
}

Launcher slurm(const Variables& env, const std::string& job) {
  const std::string cluster = env.text({"SLURM_CLUSTER_NAME"});
  Launcher out{"slurm", "slurm:" + cluster + "/" + job, {}};
  out.ref = {{"job_id", job}, {"cluster", cluster}};
  out.ref.emplace_back("restart_cnt", env.integer({"SLURM_RESTART_COUNT"}).value_or(0));
  add_whole(out.ref, "start_time", env, "SLURM_JOB_START_TIME");
  add_text(out.ref, "user", env.text({"SLURM_JOB_USER"}));
  return out;
}

// A pod does not know whose it is: the manifest says it (docs/launchers.md#kubernetes).
Launcher kubernetes(const Variables& env, const std::string& uid, const std::string& name) {
  const std::string kind = env.text({"TOCSIN_K8S_KIND"});
  Launcher out{platform_of_kind(kind), uid.empty() ? "" : "k8s:" + uid, {}};
  add_text(out.ref, "uid", uid);
  add_text(out.ref, "name", name);
  add_text(out.ref, "namespace", env.text({"TOCSIN_K8S_NAMESPACE", "POD_NAMESPACE"}));
  add_text(out.ref, "pod", env.text({"POD_NAME", "HOSTNAME"}));
  if (out.name == "kubernetes") add_text(out.ref, "kind", kind);
  return out;
}

Launcher platform_of(const Variables& env) {
  if (const std::string job = env.text({"SLURM_JOB_ID"}); !job.empty()) return slurm(env, job);
  const std::string uid = env.text({"TOCSIN_K8S_JOB_UID"});
  const std::string named = env.text({"TOCSIN_K8S_JOB"});
  if (!uid.empty() || !named.empty()) {
    return kubernetes(env, uid, named.empty() ? env.text({"JOB_NAME"}) : named);
  }
  if (const std::string arn = env.text({"TRAINING_JOB_ARN"}); !arn.empty()) {
    return {
        "sagemaker", "sagemaker:" + arn, {{"name", env.text({"TRAINING_JOB_NAME"})}, {"arn", arn}}};
  }
  if (const std::string flux = env.text({"FLUX_JOB_ID"}); !flux.empty()) {
    return {"flux", "flux:" + env.text({"FLUX_URI"}) + "/" + flux, {{"job_id", flux}}};
  }
  if (const std::string ray = env.text({"RAY_JOB_SUBMISSION_ID"}); !ray.empty()) {
    return {"ray", "ray:" + ray, {{"submission_id", ray}}};
  }
  return {};
}

}  // namespace

Launcher find_launcher(const Variables& env, std::int64_t opened_seconds) {
  Launcher found = platform_of(env);
  if (!found.name.empty() && opened_seconds > 0) found.ref.emplace_back("opened", opened_seconds);
  // torchrun runs inside the others and says best what belongs together; the platform stays theirs.
  const std::string elastic = env.text({"TORCHELASTIC_RUN_ID"});
  if (!elastic.empty() && elastic != "none") {
    found.seed = "torchelastic:" + elastic;
    if (found.name.empty()) found.name = "torchelastic";
  }
  return found;
}

}  // namespace tocsin::hook
