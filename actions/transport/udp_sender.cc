#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "actions/transport/datagram_sender.h"

namespace tocsin::actions {
namespace {

class OpenSocket {
 public:
  explicit OpenSocket(const addrinfo& address)
      : fd_(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol)) {}
  ~OpenSocket() {
    if (fd_ >= 0) close(fd_);
  }
  OpenSocket(const OpenSocket&) = delete;
  OpenSocket& operator=(const OpenSocket&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

core::Error datagram_not_sent(const std::string& target) {
  return core::Error{core::Code::unavailable,
                     target + ": " + std::generic_category().message(errno)};
}

class UdpSender final : public DatagramSender {
 public:
  core::Status send(const std::string& host, const std::string& port,
                    std::span<const std::string> datagrams) override {
    const std::string target = host + ":" + port;
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); code != 0) {
      return core::Error{core::Code::unavailable, target + ": " + gai_strerror(code)};
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
    const OpenSocket open(*found);
    // Connected, a socket hears that nobody listens: at the send after the one that met nobody.
    if (open.get() < 0 || connect(open.get(), found->ai_addr, found->ai_addrlen) != 0) {
      return datagram_not_sent(target);
    }
    for (const std::string& datagram : datagrams) {
      if (::send(open.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL) < 0) {
        return datagram_not_sent(target);
      }
    }
    return core::ok();
  }
};

}  // namespace

std::unique_ptr<DatagramSender> udp_sender() { return std::make_unique<UdpSender>(); }

}  // namespace tocsin::actions
