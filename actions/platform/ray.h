// Stops a job of Ray by its submission id, if it began before the run's client opened
// (docs/stopping-on-platforms.md).
#pragma once

#include <memory>

#include "actions/platform/platform_http.h"

namespace tocsin::actions {

struct RayConfig {
  PlatformPlace place;
};
void read(config::Reader& in, RayConfig& cfg);
std::unique_ptr<PlatformStop> make_ray(const RayConfig& cfg, HttpClient* http);

}  // namespace tocsin::actions
