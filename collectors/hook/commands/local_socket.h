// Sockets between the clients of one node: names without files, only for processes of the same
// user, and gone in a forked child.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::hook {

/// A socket that a forked child closes by close_sockets_in_child(), so that a data loader that
/// outlives its trainer does not hold the trainer's name or connections.
class LocalSocket {
 public:
  LocalSocket() = default;
  /// Takes over the descriptor; -1: none.
  explicit LocalSocket(int descriptor);
  LocalSocket(LocalSocket&& other) noexcept;
  LocalSocket& operator=(LocalSocket&& other) noexcept;
  LocalSocket(const LocalSocket&) = delete;
  LocalSocket& operator=(const LocalSocket&) = delete;
  ~LocalSocket() { reset(); }

  void reset();
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  explicit operator bool() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
  int slot_ = -1;
};

/// Listens under an abstract name. The name is held until the socket is closed, also by a process
/// that is killed. failed_precondition: somebody else listens there.
core::Result<LocalSocket> listen_locally(std::string_view name);
/// not_found: nobody listens. permission_denied: somebody of another user does.
core::Result<LocalSocket> connect_locally(std::string_view name);
/// The next connection of a process of the same user; invalid when there is none now.
LocalSocket accept_locally(const LocalSocket& listener);

/// For a fork handler: closes every LocalSocket of the parent. Only calls close().
void close_sockets_in_child() noexcept;

}  // namespace tocsin::hook
