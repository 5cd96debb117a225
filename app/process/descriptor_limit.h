// How many files and sockets this process may have open.
#pragma once

#include <cstdint>

namespace tocsin::app {

/// The soft limit in force.
std::uint64_t descriptor_limit();
/// Raises the soft limit to the hard one and returns what is in force then. Shells and service
/// managers hand out 1024, which a router with a cluster's connections and many receivers can use up.
std::uint64_t raise_descriptor_limit();

}  // namespace tocsin::app
