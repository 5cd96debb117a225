#include "app/view/agent_order.h"

#include <chrono>
#include <utility>

#include "core/identity.h"
#include "core/json.h"
#include "core/text.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostOfAnAgentOrder = 4096;
constexpr core::Duration kLongestOrder = 365 * 24h;
constexpr std::string_view kNodeKey = "node:";
constexpr std::string_view kAgentAction = "agent";
constexpr std::string_view kAgentKeyEnd = "/agent";

core::Result<core::Duration> read_order_span(const core::Value& value) {
  const auto* text = core::as<std::string>(value);
  const auto span = text == nullptr ? std::nullopt : core::parse_duration(*text);
  if (span && *span >= 1s && *span <= kLongestOrder) return *span;
  return core::invalid_argument("for: expected a time from 1s to 365d, such as \"10m\"");
}

}  // namespace

bool AgentOrder::says(const core::Command& command) const {
  // "For ten minutes" begins anew each time it is said.
  return !lasts && !command.expires_at && !command.dry_run &&
         core::to_json(command.args) == core::to_json(collectors::agent_settings_value(settings));
}

core::Result<AgentOrder> read_agent_order(std::string_view json) {
  AgentOrder out;
  if (json.empty()) return out;
  const auto body = core::parse_json(json, kMostOfAnAgentOrder);
  if (!body) return body.error();
  const auto* members = core::as<core::ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  core::ValueMap settings;
  for (const auto& [name, value] : *members) {
    if (name == "interval" || name == "collectors") {
      settings.emplace_back(name, value);
    } else if (name == "for") {
      if (value.is_null()) continue;
      const auto span = read_order_span(value);
      if (!span) return span.error();
      out.lasts = *span;
    } else {
      const std::string near = core::nearest(name, {"interval", "collectors", "for"});
      return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
  }
  auto read = collectors::read_agent_settings(core::Value(std::move(settings)));
  if (!read) return read.error();
  out.settings = std::move(*read);
  if (out.settings.empty() && out.lasts)
    return core::invalid_argument("for: expected interval or collectors beside it");
  return out;
}

std::string agent_key(const std::string& node) {
  return core::node_route_key(node) + std::string(kAgentKeyEnd);
}

std::string node_of_key(std::string_view key) {
  if (!key.starts_with(kNodeKey) || !key.ends_with(kAgentKeyEnd)) return "";
  key.remove_prefix(kNodeKey.size());
  if (key.size() <= kAgentKeyEnd.size()) return "";
  key.remove_suffix(kAgentKeyEnd.size());
  return std::string(key);
}

core::Status check_node_name(const std::string& node) {
  if (!node.empty() && node.find('/') == std::string::npos) return core::ok();
  return core::invalid_argument(
      "node: expected a name without a slash (collect.node of its agent)");
}

core::Command agent_command(const AgentOrder& order, const std::string& node,
                            const std::string& person, std::uint64_t revision, core::WallTime now) {
  core::Command out;
  out.command_id =
      core::make_id("cmd_", {core::node_route_key(node), kAgentAction,
                             std::to_string(core::nanoseconds(now)), std::to_string(revision)});
  out.action = kAgentAction;
  out.attempt = 0;  // of no run
  out.revision = revision;
  out.issued_at = now;
  if (order.lasts) out.expires_at = now + *order.lasts;
  out.requested_by = person;
  out.args = collectors::agent_settings_value(order.settings);
  return out;
}

core::OutRecord agent_record(const core::Command& command, const std::string& node,
                             std::string_view source) {
  return ingest::encode_command(command, source, node);
}

core::OutRecord agent_tombstone(const std::string& node) {
  core::OutRecord out;
  out.topic = core::topic::kCommands;
  out.key = agent_key(node);
  out.partition_key = core::node_route_key(node);
  return out;
}

core::Value asked_of_agent(const core::Command& command) {
  const auto or_null = [&](const char* name) {
    const core::Value* found = core::find(command.args, name);
    return found == nullptr ? core::Value() : *found;
  };
  return core::ValueMap{
      {"interval", or_null("interval")},
      {"collectors", or_null("collectors")},
      {"until",
       command.expires_at ? core::Value(core::to_rfc3339(*command.expires_at)) : core::Value()},
      {"by", command.requested_by},
      {"at", core::to_rfc3339(command.issued_at)}};
}

}  // namespace tocsin::app
