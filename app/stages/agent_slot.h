// What people asked of this node's agent: slot `agent` of the topic `commands`, key "node:<id>/agent".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/loop/stage.h"
#include "collectors/collectors.h"
#include "core/log.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// Keeps the newest record of the slot, says which section `collect` holds because of it, and answers on `acks`.
/// The log of the topic decides, not revisions: the newest record counts. What is refused, withdrawn or over
/// leaves the agent with what its own file says, as after a restart. Lives on the thread of its stage.
class AgentSlot {
 public:
  /// `file`: section `collect` of the agent's own file, with the node's name. `log` outlives it.
  AgentSlot(collectors::Config file, core::Log& log);

  /// All is read from the beginning from here on. `incarnation`: of the agent, in its answers.
  void open(std::uint64_t incarnation);
  /// A record of `commands`; those of other nodes and of runs are passed over.
  std::optional<Refusal> saw(const core::RecordView& record);
  /// Call when all that was written before has been read. The section that holds from now on, if that is news.
  std::optional<collectors::Config> due(core::WallTime now);
  /// Records of `acks` since the last call.
  std::vector<core::OutRecord> answers();

 private:
  void settle(core::WallTime now);
  void answer(const core::Command& command, const char* phase, std::string reason,
              core::WallTime now);
  void back_to_file();

  collectors::Config file_, holds_;
  core::Log& log_;
  std::string key_;
  std::uint64_t incarnation_ = 0;
  std::optional<core::Command> newest_;    // nullopt: withdrawn, or never asked
  std::optional<core::Command> in_force_;  // it was applied, and is not over
  bool settled_ = true;                    // newest_ was looked at
  bool changed_ = false;                   // holds_ is not what due() gave last
  std::vector<core::OutRecord> answers_;
};

}  // namespace tocsin::app
