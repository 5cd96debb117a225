// What a person can paste to look further. Internal to actions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/notification.h"

namespace tocsin::actions {

struct NextCommand {
  std::string does;  // "Show this issue"
  std::string line;
};

/// Three or four commands (to acknowledge only what fires), complete with the records they read: `place` is how a command names them, word by
/// word ("--from", "/data/tocsin-data"); empty: the machine's configuration says it.
std::vector<NextCommand> next_commands(const core::Issue& issue, bool ended,
                                       const std::vector<std::string>& place);

}  // namespace tocsin::actions
