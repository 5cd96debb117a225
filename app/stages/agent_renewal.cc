#include "app/stages/agent_renewal.h"

#include <chrono>

#include "app/view/agent_order.h"

namespace tocsin::app {
namespace {

constexpr auto kWriteAgainAfter = std::chrono::hours(6);

}  // namespace

void AgentRenewal::saw(const core::RecordView& record, const ingest::DecodedCommand& decoded) {
  const std::string node = node_of_key(decoded.key);
  if (node.empty()) return;
  if (decoded.command) {
    standing_[node] = {*decoded.command, core::wall_time(record.timestamp)};
  } else {
    standing_.erase(node);
  }
}

std::vector<core::OutRecord> AgentRenewal::due(core::WallTime now, const std::string& source) {
  std::vector<core::OutRecord> out;
  for (auto& [node, standing] : standing_) {
    const core::Command& command = standing.command;
    const bool over = command.expires_at && *command.expires_at <= now;
    if (over || now - standing.written < kWriteAgainAfter) continue;
    standing.written = now;
    out.push_back(agent_record(command, node, source));
  }
  return out;
}

}  // namespace tocsin::app
