// Names by which a notification is known that a person sends again.
#pragma once

#include <string_view>

namespace tocsin::core {

/// Among the `handles` of a delivery: the request to send the notification again. A replay has attempts
/// and a final state of its own.
inline constexpr std::string_view kReplayHandle = "replay";
/// Reason of such a notification: its message says that it is late.
inline constexpr std::string_view kReplayedReason = "replayed";

}  // namespace tocsin::core
