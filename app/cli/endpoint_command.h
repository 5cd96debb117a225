// `tocsin endpoint` and `tocsin breaker reset`: how integrations stand, and their switches
// (docs/endpoints.md).
#pragma once

#include <string>

#include "actions/actions.h"
#include "core/time.h"

namespace tocsin::app {

struct EndpointOptions {
  std::string config_file;  // empty: $TOCSIN_CONFIG, then ./tocsin.yaml
  std::string out;          // kafka://host:9092 or a directory, before any file
  bool json = false;
  std::string integration;
  std::string comment;
  core::Duration wait = std::chrono::seconds(15);  // probe: for the answer
};

// Each returns an exit code; 1: something is not well, or the answer is no; 2: no such integration;
// 3: the configuration has errors; 4: unreachable.
int endpoint_list(const EndpointOptions& options);
/// disable, enable, reset, probe
int endpoint_order(const EndpointOptions& options, actions::EndpointDeed deed);

}  // namespace tocsin::app
