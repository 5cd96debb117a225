// The `receivers` section: name → {type: config}, or a list of such maps when a type repeats.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/contract/respect_config.h"
#include "config/config.h"
#include "core/action.h"
#include "core/result.h"

namespace tocsin::actions {

/// One action of a receiver. `common.id` is never empty and unique in the file.
struct ConfiguredIntegration {
  std::string receiver;
  std::string type;
  std::size_t index = 0;  // place among the receiver's integrations
  CommonConfig common;
  RespectConfig respect;
  Traits traits;
  std::shared_ptr<const ActionConfig> config;
  config::Location place;

  [[nodiscard]] core::Result<std::unique_ptr<core::Action>> build(
      const Environment& environment) const {
    return config->build(environment, {common.id, receiver, type}, common);
  }
};

struct ReceiversConfig {
  std::vector<ConfiguredIntegration> integrations;  // in the order of the file
  std::vector<std::string> names;                   // receivers, also those without an action
};

/// Reads key `receivers` of the root map. Unknown types are reported with the nearest known one;
/// two integrations with one id are an error at the second.
void read_receivers(config::Reader& root, ReceiversConfig& out,
                    std::span<const ActionDescriptor> known = builtin_actions());

}  // namespace tocsin::actions
