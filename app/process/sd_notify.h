// systemd's readiness protocol: one datagram on $NOTIFY_SOCKET (sd_notify(3)); no library needed.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::app {

/// Sends `state` ("READY=1", "STOPPING=1", "STATUS=…") to `socket` (a path or "@abstract"); empty =
/// not under systemd, nothing is done. False when the datagram could not be sent.
bool sd_notify(const std::string& socket, std::string_view state) noexcept;

}  // namespace tocsin::app
