#include "actions/platform/platforms.h"

#include <optional>

#include "actions/platform/kubernetes.h"
#include "actions/platform/ray.h"
#include "actions/platform/sagemaker.h"
#include "actions/platform/scancel.h"
#include "actions/platform/slurm.h"
#include "actions/platform/webhook_stop.h"

namespace tocsin::actions {

struct PlatformsConfig {
  std::optional<KubernetesConfig> kubernetes;
  std::optional<SlurmConfig> slurm;
  std::optional<ScancelConfig> scancel;
  std::optional<RayConfig> ray;
  std::optional<SageMakerConfig> sagemaker;
  std::optional<WebhookStopConfig> webhook;
};

namespace {

template <typename Config>
void read_one(config::Reader& in, const char* key, const char* help, std::optional<Config>& out) {
  in.section(key, help, [&](config::Reader& one) { read(one, out.emplace()); });
}

}  // namespace

std::shared_ptr<const PlatformsConfig> no_platforms() {
  return std::make_shared<PlatformsConfig>();
}

std::shared_ptr<const PlatformsConfig> read_platforms(config::Reader& in) {
  auto out = std::make_shared<PlatformsConfig>();
  read_one(in, "kubernetes", "Jobs, JobSets, PyTorchJobs, TrainJobs and RayJobs", out->kubernetes);
  read_one(in, "slurm", "jobs of Slurm, by slurmrestd", out->slurm);
  read_one(in, "scancel", "jobs of Slurm, by scancel and squeue of the leader's machine",
           out->scancel);
  read_one(in, "ray", "jobs of Ray, by its dashboard's address", out->ray);
  if (out->slurm && out->scancel) {
    in.error("scancel", "expected slurm or scancel: both end the same jobs");
  }
  read_one(in, "sagemaker", "training jobs of SageMaker", out->sagemaker);
  read_one(in, "webhook", "jobs of any other platform, by requests of your own", out->webhook);
  return out;
}

std::vector<std::unique_ptr<PlatformStop>> make_platforms(const PlatformsConfig& config,
                                                          core::Clock& clock, HttpClient* http) {
  std::vector<std::unique_ptr<PlatformStop>> out;
  if (config.kubernetes) out.push_back(make_kubernetes(*config.kubernetes, http));
  if (config.slurm) out.push_back(make_slurm(*config.slurm, http));
  if (config.scancel) out.push_back(make_scancel(*config.scancel, clock, nullptr));
  if (config.ray) out.push_back(make_ray(*config.ray, http));
  if (config.sagemaker) out.push_back(make_sagemaker(*config.sagemaker, http));
  if (config.webhook) out.push_back(make_webhook_stop(*config.webhook, clock, http));
  return out;
}

}  // namespace tocsin::actions
