// What was asked of nodes' agents, written again before the topic forgets it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/time.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// `commands` forgets what is older than some days, and an agent shall still sample as it was asked to when it
/// begins anew after a month. Sees every record of `commands`; lives on the thread of its stage.
class AgentRenewal {
 public:
  void start_over() { standing_.clear(); }
  void saw(const core::RecordView& record, const ingest::DecodedCommand& decoded);
  /// What stands and was last written six hours ago, as it was written; each at most once per six hours.
  std::vector<core::OutRecord> due(core::WallTime now, const std::string& source);

 private:
  struct Standing {
    core::Command command;
    core::WallTime written{};
  };
  std::map<std::string, Standing> standing_;  // by node
};

}  // namespace tocsin::app
