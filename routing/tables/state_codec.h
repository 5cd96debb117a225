// The router's state as records of the compacted topic `router-state`: keys `<kind>/<id>`, values
// JSON. An issue's record is bytes (issue_record.h); once it was one JSON line, then a line for the
// issue and for each earlier episode that is still needed, each an event of core/fields/.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "routing/routing.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

std::string encode(const IssueState& state);
std::string encode(const Group& group);
std::string encode(const TellLog& log);
std::string encode(const RunState& run);

/// data_loss when the bytes are not what encode() wrote, now or in an earlier version. `key` and
/// `hash` are not part of the value.
core::Result<IssueState> decode_issue_state(std::string_view value);
core::Result<Group> decode_group(std::string_view value);
core::Result<TellLog> decode_log(std::string_view value);
core::Result<RunState> decode_run(std::string_view value);

// For Table (store.h).
/// Sources of reports are those of `sources`.
core::Status decode(std::string_view value, SharedTexts& sources, IssueState& state);
core::Status decode(std::string_view value, Group& group);
core::Status decode(std::string_view value, RunState& run);

}  // namespace tocsin::routing
