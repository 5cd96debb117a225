#include "actions/platform/kubernetes_object.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "actions/platform/platform_fence.h"
#include "actions/platform/platform_http.h"

namespace tocsin::actions {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

constexpr std::array<KubernetesKind, 5> kKinds{{
    {"k8s-job", "Job", "apis/batch/v1", "jobs", "/spec/suspend"},
    {"jobset", "JobSet", "apis/jobset.x-k8s.io/v1alpha2", "jobsets", "/spec/suspend"},
    {"pytorchjob", "PyTorchJob", "apis/kubeflow.org/v1", "pytorchjobs", "/spec/runPolicy/suspend"},
    {"trainjob", "TrainJob", "apis/trainer.kubeflow.org/v1alpha1", "trainjobs", "/spec/suspend"},
    {"rayjob", "RayJob", "apis/ray.io/v1", "rayjobs", "/spec/suspend"},
}};
constexpr std::array<std::string_view, 4> kFinished{"Complete", "Completed", "Succeeded", "Failed"};
constexpr std::string_view kQueue = "kueue.x-k8s.io/queue-name";

bool is_true(const Value* value) {
  const auto* flag = core::as<bool>(value);
  return flag != nullptr && *flag;
}

bool holds(const Value& object, std::string_view type) {
  const auto* conditions = core::as<ValueList>(json_at(object, "status.conditions"));
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(), [&](const Value& one) {
    return core::text_at(one, "type") == type && core::text_at(one, "status") == "True";
  });
}

std::int64_t count_at(const Value& value, std::string_view key) {
  return std::max<std::int64_t>(whole_at(value, key).value_or(0), 0);
}

// Pods that run or still end; of each kind where its controller counts them.
std::int64_t pods_left(const Value& status) {
  std::int64_t out = count_at(status, "active") + count_at(status, "terminating");
  for (const std::string_view list : {"replicatedJobsStatus", "jobsStatus"}) {
    if (const auto* jobs = core::as<ValueList>(core::find(status, list))) {
      for (const Value& one : *jobs) out += count_at(one, "active");
    }
  }
  if (const auto* replicas = core::as<ValueMap>(core::find(status, "replicaStatuses"))) {
    for (const auto& [name, one] : *replicas) out += count_at(one, "active");
  }
  return out;
}

}  // namespace

const KubernetesKind* kubernetes_kind(std::string_view platform) {
  const auto known = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const auto& one) { return one.platform == platform; });
  return known == kKinds.end() ? nullptr : &*known;
}

std::optional<KubernetesName> kubernetes_name(const Value& fence) {
  KubernetesName out;
  out.kind = kubernetes_kind(core::text_at(fence, "platform"));
  out.space = core::text_at(fence, "namespace");
  out.name = core::text_at(fence, "name");
  out.uid = core::text_at(fence, "uid");
  if (out.kind == nullptr || !is_dns_name(out.space) || !is_dns_name(out.name)) return std::nullopt;
  if (out.uid.empty()) {
    return whole_at(fence, "opened").value_or(0) > 0 ? std::optional(std::move(out)) : std::nullopt;
  }
  if (!is_plain_name(out.uid, 64, "-")) return std::nullopt;
  return out;
}

std::string text_of(const KubernetesName& name) {
  return std::string(name.kind->kind) + " " + name.space + "/" + name.name;
}

std::string path_of(const KubernetesName& name) {
  return "/" + std::string(name.kind->api) + "/namespaces/" + name.space + "/" +
         std::string(name.kind->resource) + "/" + name.name;
}

KubernetesState kubernetes_state(const KubernetesKind& kind, const Value& object) {
  KubernetesState out;
  out.uid = json_text(object, "metadata.uid");
  out.made = json_text(object, "metadata.creationTimestamp");
  out.deleting = !json_text(object, "metadata.deletionTimestamp").empty();
  if (const Value* labels = json_at(object, "metadata.labels")) {
    out.queue = core::text_at(*labels, kQueue);
  }
  std::string dotted(kind.suspend.substr(1));
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  out.suspend = is_true(json_at(object, dotted));
  out.bare = json_at(object, dotted.substr(0, dotted.rfind('.'))) == nullptr;
  const Value none;
  const Value* status = core::find(object, "status");
  const std::int64_t left = pods_left(status == nullptr ? none : *status);
  if (left > 0) {
    out.active = std::to_string(left) + (left == 1 ? " pod is left" : " pods are left");
  }
  for (const std::string_view type : kFinished) {
    if (holds(object, type)) out.finished = type;
  }
  // KubeRay says it in one word.
  const std::string deployment = json_text(object, "status.jobDeploymentStatus");
  if (deployment == "Complete" || deployment == "Failed") out.finished = deployment;
  out.suspended = left == 0 && (holds(object, "Suspended") || deployment == "Suspended");
  return out;
}

std::string fenced_patch(std::string_view uid, std::string_view pointer, Value value) {
  return core::to_json(ValueList{
      ValueMap{{"op", "test"}, {"path", "/metadata/uid"}, {"value", std::string(uid)}},
      ValueMap{{"op", "add"}, {"path", std::string(pointer)}, {"value", std::move(value)}}});
}

}  // namespace tocsin::actions
