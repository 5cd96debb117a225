// How a process ended is known only when it ends: to exit() itself. An interpreter's own handlers
// run before that and are not told the status, so the last word is said here.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "collectors/hook/tocsin_client.h"

namespace tocsin::hook {

struct Ending {
  std::string outcome;
  std::string error;
  std::optional<int> exit_code;
  std::uint64_t issues_told = 0;  // of the rules in this process, so many stand on stderr already
};
/// A bare word, or a JSON object.
Ending ending_of(const std::string& given);

/// `given` holds for status 0, and for 77 when it says stopped_by_rule or stopped_by_person; any other status is a
/// failure with that code.
Ending ending_at(int status, Ending given);

/// Ends the open client of this process now; what was not delivered is dropped. False: time over.
bool close_open_client(const Ending& ending, std::chrono::milliseconds timeout);

/// Registers the end of the open client with exit(), once per process; a later call changes the
/// ending. False: this system cannot tell a handler the status.
bool close_at_exit(Ending ending, std::chrono::milliseconds timeout);

}  // namespace tocsin::hook
