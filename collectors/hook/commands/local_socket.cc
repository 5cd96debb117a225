#include "collectors/hook/commands/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tocsin::hook {
namespace {

// Descriptors that a child closes; beyond this many they stay open there, which costs a later
// take-over and nothing else.
std::array<std::atomic<int>, 4096> open_sockets{};  // 0: free, else descriptor + 1

int remember(int descriptor) {
  for (std::size_t slot = 0; slot < open_sockets.size(); ++slot) {
    int free = 0;
    if (open_sockets[slot].compare_exchange_strong(free, descriptor + 1)) {
      return static_cast<int>(slot);
    }
  }
  return -1;
}

struct Address {
  sockaddr_un where{};
  socklen_t size = 0;
};

// Abstract: the name begins with a zero byte, no file exists, the kernel frees it.
Address abstract_address(std::string_view name) {
  Address out;
  out.where.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof out.where.sun_path - 1);
  std::memcpy(out.where.sun_path + 1, name.data(), length);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return out;
}

LocalSocket make_socket() {
  return LocalSocket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Abstract names have no permissions: who is at the other end is asked of the kernel.
bool same_user(const LocalSocket& connection) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == geteuid();
}

core::Error failed(const char* what) {
  return core::unavailable(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

LocalSocket::LocalSocket(int descriptor)
    : descriptor_(descriptor), slot_(descriptor >= 0 ? remember(descriptor) : -1) {}

LocalSocket::LocalSocket(LocalSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), slot_(std::exchange(other.slot_, -1)) {}

LocalSocket& LocalSocket::operator=(LocalSocket&& other) noexcept {
  if (this == &other) return *this;
  reset();
  descriptor_ = std::exchange(other.descriptor_, -1);
  slot_ = std::exchange(other.slot_, -1);
  return *this;
}

void LocalSocket::reset() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0) return;
  // Forgotten first: a child must never close a number that somebody else has meanwhile.
  if (const int slot = std::exchange(slot_, -1); slot >= 0) {
    open_sockets[static_cast<std::size_t>(slot)].store(0);
  }
  close(descriptor);
}

core::Result<LocalSocket> listen_locally(std::string_view name) {
  LocalSocket made = make_socket();
  if (!made) return failed("socket");
  const Address address = abstract_address(name);
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address.where), address.size) != 0) {
    if (errno == EADDRINUSE) {
      return core::Error{core::Code::failed_precondition, "another process listens there"};
    }
    return failed("bind");
  }
  if (listen(made.get(), SOMAXCONN) != 0) return failed("listen");
  return made;
}

core::Result<LocalSocket> connect_locally(std::string_view name) {
  LocalSocket made = make_socket();
  if (!made) return failed("socket");
  const Address address = abstract_address(name);
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address.where), address.size) != 0) {
    if (errno == ECONNREFUSED) return core::not_found("nobody listens there");
    return failed("connect");
  }
  if (!same_user(made)) {
    return core::Error{core::Code::permission_denied, "a process of another user listens there"};
  }
  return made;
}

LocalSocket accept_locally(const LocalSocket& listener) {
  LocalSocket made(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (made && !same_user(made)) made.reset();
  return made;
}

void close_sockets_in_child() noexcept {
  for (auto& one : open_sockets) {
    const int descriptor = one.exchange(0) - 1;
    if (descriptor >= 0) close(descriptor);
  }
}

}  // namespace tocsin::hook
