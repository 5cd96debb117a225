// Port: datagrams that nobody answers. Internal to actions.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/result.h"

namespace tocsin::actions {

class DatagramSender {
 public:
  virtual ~DatagramSender() = default;
  /// Each is one datagram. ok: the system took all of them. Errors: unavailable (no such name, no
  /// route, nobody listens on this machine). Thread-safe.
  virtual core::Status send(const std::string& host, const std::string& port,
                            std::span<const std::string> datagrams) = 0;
};

/// UDP. Names are looked up at each call.
std::unique_ptr<DatagramSender> udp_sender();

}  // namespace tocsin::actions
