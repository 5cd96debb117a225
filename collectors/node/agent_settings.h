// What a node's agent can be told while it runs: how often it samples, and what.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/collectors.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::collectors {

/// What is absent stays as the agent's own file says.
struct AgentSettings {
  std::optional<core::Duration> interval;              // 100 ms to a minute
  std::optional<std::vector<std::string>> collectors;  // at least one; each once

  [[nodiscard]] bool empty() const { return !interval && !collectors; }
  bool operator==(const AgentSettings&) const = default;
};

/// `args` of a command in the slot `agent`: {"interval": "1s", "collectors": ["cpu", …]}, each of which may be
/// missing or null. invalid_argument names the field, what was expected and the nearest name.
core::Result<AgentSettings> read_agent_settings(
    const core::Value& args, std::span<const CollectorDescriptor> table = builtin_collectors());
/// As it is read; what is absent is left out.
core::Value agent_settings_value(const AgentSettings& settings);

/// The section of the file, with these settings instead of its own.
Config with_settings(const Config& file, const AgentSettings& settings);
/// "cpu, memory and gpu every 500ms".
std::string sampling_words(const Config& config);

}  // namespace tocsin::collectors
