// The record of an issue: the bytes of KeptIssue as they lie in memory, behind a number that says how
// to read them, and before a sum of them. Writing and reading one is little more than copying.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// Is the value one of these? An earlier day wrote JSON (state_codec.h).
[[nodiscard]] bool is_issue_record(std::string_view value) noexcept;
std::string write_issue_record(const IssueState& state);
/// data_loss: the bytes are not what was written. Groups are in `joined`, sources of reports are those
/// of `sources`.
core::Status read_issue_record(std::string_view value, SharedTexts& sources, IssueState& state);

}  // namespace tocsin::routing
