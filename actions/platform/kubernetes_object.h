// Objects of Kubernetes that own the pods of a job: where they lie, and how they stand. Pure; internal
// to actions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tocsin::actions {

/// A kind of object whose pods go when it is suspended.
struct KubernetesKind {
  std::string_view platform;  // as hooks report it
  std::string_view kind;
  std::string_view api;       // "apis/batch/v1"
  std::string_view resource;  // "jobs"
  std::string_view suspend;   // JSON pointer: "/spec/suspend"
};

/// null: no such platform.
const KubernetesKind* kubernetes_kind(std::string_view platform);

/// What a fence says of the object; nullopt: too little, or what cannot be a name.
struct KubernetesName {
  const KubernetesKind* kind = nullptr;
  std::string space;
  std::string name;
  std::string uid;  // empty: not known; then the time at which the run's client opened is
};
std::optional<KubernetesName> kubernetes_name(const core::Value& fence);
/// "Job ml/bert-42"
std::string text_of(const KubernetesName& name);
/// "/apis/batch/v1/namespaces/ml/jobs/bert-42"
std::string path_of(const KubernetesName& name);

/// An object as the API server gives it.
struct KubernetesState {
  std::string uid;
  std::string made;      // metadata.creationTimestamp
  std::string finished;  // its terminal condition: "Complete", "Failed"; empty: none
  bool suspend = false;  // asked to
  bool deleting = false;
  bool suspended = false;  // and it is: no pod is left
  std::string active;      // "2 pods are active", as far as it is known
  std::string queue;       // of Kueue; empty: no queue owns `suspend`
  bool bare = false;       // what holds the member `suspend` is not there
};
KubernetesState kubernetes_state(const KubernetesKind& kind, const core::Value& object);

/// [{"op":"test","path":"/metadata/uid","value":uid}, {"op":"add","path":pointer,"value":value}]: the
/// server refuses the second where the first does not hold.
std::string fenced_patch(std::string_view uid, std::string_view pointer, core::Value value);

}  // namespace tocsin::actions
