// What --help says of each command.
#pragma once

#include <span>
#include <string_view>

namespace tocsin::app {

struct CommandHelp {
  std::string_view path;      // "silence add"; empty: the program itself
  std::string_view summary;   // begins with a verb, no full stop
  std::string_view exits;     // a code and its meaning per line
  std::string_view examples;  // a command per line
};

// Exit codes that several commands share.
inline constexpr std::string_view kReading =
    "0   success\n"
    "2   wrong usage\n"
    "3   the configuration's transport cannot be read\n"
    "4   broker or journal unreachable\n";
inline constexpr std::string_view kChoose =
    "2   no subcommand was named; each has its own exit codes\n";

/// Of the commands for whoever is on call.
std::span<const CommandHelp> operator_help() noexcept;
/// Of silences and acknowledgements.
std::span<const CommandHelp> silence_help() noexcept;

}  // namespace tocsin::app
