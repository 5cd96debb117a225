// The topic of notifications that were given up.
#pragma once

namespace tocsin::core::topic {
inline constexpr const char* kRouterDeadletter = "router-deadletter";
}  // namespace tocsin::core::topic
