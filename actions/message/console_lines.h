// What a failed process said last, for a message to people. Internal to actions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/issue.h"

namespace tocsin::actions {

/// Heading of the lines.
inline constexpr const char* kConsoleHeading = "Last lines";

/// The newest lines of an issue's `console` value, each visible and at most 240 bytes, together at most 2 KiB. Leading blanks stay. Empty: it has
/// none.
std::vector<std::string> console_lines(const core::Issue& issue);

/// The last of `lines` that fit into `bytes` with a line break after each.
std::vector<std::string> newest(std::vector<std::string> lines, std::size_t bytes);

/// A line each, without a break at the end.
std::string joined(const std::vector<std::string>& lines);

}  // namespace tocsin::actions
