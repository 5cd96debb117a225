#include "app/process/instance_slot.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr int kSlots = 1024;

}  // namespace

core::Result<InstanceSlot> InstanceSlot::acquire(std::string_view name) {
  // Hashed, because an address holds 107 bytes and a prefix may be long.
  const std::string base = "tocsin-" + core::hex(core::sha256(name)).substr(0, 32) + "-";
  for (int number = 0; number < kSlots; ++number) {
    const std::string text = base + std::to_string(number);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, text.data(), text.size());  // first byte 0: abstract
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
      return core::unavailable(std::string("cannot make a socket: ") + std::strerror(errno));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      return InstanceSlot(fd, number);
    }
    const int why = errno;
    ::close(fd);
    if (why != EADDRINUSE) {
      return core::unavailable(std::string("cannot claim an instance slot: ") + std::strerror(why));
    }
  }
  return core::Error{core::Code::resource_exhausted, "1024 instances run on this machine"};
}

InstanceSlot::InstanceSlot(InstanceSlot&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), number_(other.number_) {}

InstanceSlot& InstanceSlot::operator=(InstanceSlot&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(number_, other.number_);
  return *this;
}

InstanceSlot::~InstanceSlot() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tocsin::app
