// A stop that waits for a person's word before it is asked of the run: a record of `router-control`,
// key `approval/<command id>` (docs/approvals.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/command.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

struct StopRequest {
  std::string id;  // cmd_…, of run and attempt: all issues of one attempt share it
  RunRef run;
  Labels labels;                    // of the issue that asked
  CommandReason reason;             // the first that asked
  std::vector<CommandReason> also;  // issues of the same attempt that asked while it waited
  std::string severity;             // of that issue
  Value terms;      // mode, deadline, grace, allow_force, expires: as stop_command.h reads them
  std::string why;  // why it waits: "approval: always"
  std::string integration;  // that asked
  WallTime asked_at{};
  WallTime until{};                   // then nobody's word decides
  std::string on_timeout = "cancel";  // cancel | proceed
  /// Null: it waits for a person. Else for other rules, as actions/stop/stop_quorum.h reads it.
  Value quorum;
  /// waiting | approved | rejected | expired (nobody decided) | ended (the attempt had) | replaced (by
  /// another attempt) | recovered (what asked for it) | held_back (by max_stops).
  std::string state = "waiting";
  std::string decided_by;
  std::optional<WallTime> decided_at;
  std::string comment;
};

/// The prefix of their keys, before the slash.
inline constexpr std::string_view kApprovalPrefix = "approval";

/// The same, decided.
inline StopRequest decided(StopRequest request, std::string state, std::string by, WallTime at,
                           std::string comment = {}) {
  request.state = std::move(state);
  request.decided_by = std::move(by);
  request.decided_at = at;
  request.comment = std::move(comment);
  return request;
}

}  // namespace tocsin::core
