// Desired state for a run, and the run's answers (docs/events.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

struct CommandReason {
  std::string rule;
  std::string issue_key;
  std::uint64_t episode = 0;
  std::string event_id;
  std::string summary;
};

/// Key on `commands`: "<run uid>/<slot>", slot = action; partition of the run uid alone.
struct Command {
  std::string command_id;  // cmd_…
  std::string action;      // stop | capture | profile | adjust/<name> | agent
  RunUid run;
  std::uint32_t attempt = 1;
  /// JobEvent::launch as the writer has read it: a hook of a later launch refuses the command.
  std::map<std::string, std::string> launch;
  std::vector<std::uint32_t> ranks;  // empty = all
  std::uint64_t revision = 1;
  WallTime issued_at{};
  std::optional<WallTime> expires_at;
  std::string requested_by;
  CommandReason reason;
  bool dry_run = false;
  Value args;  // stop: {"mode":…,"deadline":{"ack":"30s",…},"fence":{…}}
};

/// received → accepted → checkpointing → checkpoint_done|checkpoint_failed → stopping → stopped;
/// other actions received → applied → ended; or refused with a reason.
struct Ack {
  std::string command_id;
  std::uint64_t revision = 1;
  std::string action;
  std::string phase;
  RunUid run;
  std::uint32_t attempt = 1;
  std::uint32_t rank = 0;
  std::string worker;
  std::uint64_t incarnation = 0;
  std::string node;
  std::int64_t step = 0;
  WallTime time{};
  std::string reason;
  std::string checkpoint_path;
  std::uint64_t checkpoint_bytes = 0;
  std::string version;
  std::optional<std::int64_t> effective_step;
  std::optional<int> exit_code;  // what the script means to end with, or what its parent saw
};

}  // namespace tocsin::core
