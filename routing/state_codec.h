// The router's state as records of the compacted topic `router-state`: keys `<kind>/<id>`, values
// JSON (an issue's record: one JSON line, then a line for the issue and for each earlier episode
// that is still needed, as the injected codec writes them).
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "routing/routing.h"
#include "routing/state.h"

namespace tocsin::routing {

std::string encode(const IssueState& state, const RouterOptions& options);
std::string encode(const Group& group);
std::string encode(const TellLog& log);
std::string encode(const RunState& run);
std::string encode_time(core::WallTime time);

/// data_loss when the bytes are not what encode() wrote. `key` and `hash` are not part of the
/// value.
core::Result<IssueState> decode_issue_state(std::string_view value, const RouterOptions& options);
core::Result<Group> decode_group(std::string_view value);
core::Result<TellLog> decode_log(std::string_view value);
core::Result<RunState> decode_run(std::string_view value);
core::Result<core::WallTime> decode_time(std::string_view value);

}  // namespace tocsin::routing
