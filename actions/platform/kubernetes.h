// Ends the pods of a job by the object that owns them: suspends or deletes it, if it still has the uid
// that the run was in (docs/stopping-on-platforms.md).
#pragma once

#include <memory>
#include <string>

#include "actions/platform/platform_http.h"

namespace tocsin::actions {

struct KubernetesConfig {
  PlatformPlace place;
  std::string graceful = "suspend";  // suspend | delete
  std::string kueue = "v1beta1";     // version of kueue.x-k8s.io
};
void read(config::Reader& in, KubernetesConfig& cfg);
/// `http`: null for the real client.
std::unique_ptr<PlatformStop> make_kubernetes(const KubernetesConfig& cfg, HttpClient* http);

}  // namespace tocsin::actions
