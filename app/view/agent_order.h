// What a person asks of a node's agent, as a record: of the command line and the API alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/node/agent_settings.h"
#include "core/command.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

struct AgentOrder {
  collectors::AgentSettings settings;   // empty: the agent goes back to what its own file says
  std::optional<core::Duration> lasts;  // nullopt: until somebody takes it back

  /// Does this command say the same, for as long?
  [[nodiscard]] bool says(const core::Command& command) const;
};

/// {"interval": "100ms", "collectors": ["cpu", …], "for": "10m"}, each of which may be missing or null. Empty text
/// reads as {}. invalid_argument names the field, what was expected and the nearest name.
core::Result<AgentOrder> read_agent_order(std::string_view json);

/// Key of `commands`: "node:n7/agent".
std::string agent_key(const std::string& node);
/// "n7" of that; empty: it is no such key.
std::string node_of_key(std::string_view key);
/// A node with a slash in its name has no key of its own.
core::Status check_node_name(const std::string& node);

/// `revision`: greater than that of the command that stands there.
core::Command agent_command(const AgentOrder& order, const std::string& node,
                            const std::string& person, std::uint64_t revision, core::WallTime now);
/// As the topic keeps it; `source`: of the event.
core::OutRecord agent_record(const core::Command& command, const std::string& node,
                             std::string_view source);
/// What withdraws it.
core::OutRecord agent_tombstone(const std::string& node);

/// {interval, collectors, until, by, at}, of which the first three may be null.
core::Value asked_of_agent(const core::Command& command);

}  // namespace tocsin::app
