// Who listens on a port of this machine.
#pragma once

#include <cstdint>
#include <string>

namespace tocsin::app {

/// "pid 4711 (tocsin)"; empty where it cannot be known: another user's process, another namespace.
/// Reads below `proc`, which tests replace.
std::string port_holder(std::uint16_t port, const std::string& proc = "/proc");

}  // namespace tocsin::app
