// Section `evidence` of the configuration: what issues were decided by, kept longer than the topics
// keep it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "config/config.h"
#include "core/time.h"

namespace tocsin::app {

struct EvidenceConfig {
  std::string keep = "none";  // none | first_signs | all
  std::string dir = "evidence";
  core::Duration lead = std::chrono::minutes(6);
  config::Bytes most{64ULL << 20};
  std::uint32_t per_run = 20;
  core::Duration keep_for = std::chrono::hours{24 * 90};
};

void read(config::Reader& in, EvidenceConfig& out);

}  // namespace tocsin::app
