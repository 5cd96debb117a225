#include "collectors/node/presence.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace tocsin::collectors {
namespace {

constexpr std::size_t kMaxMessage = 1024;
constexpr std::size_t kMaxPerPoll = 4096;
constexpr std::string_view kMagic = "tocsin-worker-1";

/// An abstract address: no file, gone with the process.
socklen_t address_of(int agent, sockaddr_un& out) {
  out = {};
  out.sun_family = AF_UNIX;
  const std::string name = "tocsin-agent/" + std::to_string(agent);
  std::memcpy(out.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

std::string encode(const WatchedWorker& worker, const WatchedProcess& process) {
  std::string out(kMagic);
  for (const std::string& field :
       {core::to_text(worker.run), std::to_string(worker.incarnation), std::to_string(process.pid),
        std::to_string(process.pid_start), process.boot_id, std::to_string(process.pid_namespace),
        worker.name}) {
    out += '\n';
    out += field;
  }
  return out;
}

template <typename T>
bool number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool decode(std::string_view text, PresenceListener::Heard& out) {
  std::array<std::string_view, 8> fields{};
  std::size_t count = 0;
  while (count < fields.size()) {
    // The last field, the name, is whatever is left.
    const std::size_t end = count + 1 == fields.size() ? text.npos : text.find('\n');
    fields[count++] = text.substr(0, end);
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  if (count != fields.size() || fields[0] != kMagic || fields[7].empty()) return false;
  const auto run = core::parse_run_uid(fields[1]);
  if (!run) return false;
  out.first.run = *run;
  out.first.name = fields[7];
  out.second.boot_id = fields[5];
  return number(fields[2], out.first.incarnation) && number(fields[3], out.second.pid) &&
         number(fields[4], out.second.pid_start) && number(fields[6], out.second.pid_namespace);
}

}  // namespace

PresenceSender::PresenceSender()
    : descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

PresenceSender::~PresenceSender() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PresenceSender::announce(const WatchedWorker& worker,
                              const WatchedProcess& process) const noexcept {
  if (descriptor_ < 0) return;
  const std::string message = encode(worker, process);
  if (message.size() > kMaxMessage) return;
  for (int agent = 0; agent < kAgentsPerMachine; ++agent) {
    sockaddr_un address;
    const socklen_t length = address_of(agent, address);
    (void)::sendto(descriptor_, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address), length);
  }
}

core::Result<PresenceListener> PresenceListener::open() {
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return core::internal_error("socket: " + std::string(std::strerror(errno)));
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  for (int agent = 0; agent < kAgentsPerMachine; ++agent) {
    sockaddr_un address;
    const socklen_t length = address_of(agent, address);
    if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      return PresenceListener(descriptor);
    }
  }
  ::close(descriptor);
  return core::Error{core::Code::resource_exhausted,
                     std::to_string(kAgentsPerMachine) + " agents listen on this machine already"};
}

PresenceListener::PresenceListener(PresenceListener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), refused_(other.refused_) {}
PresenceListener& PresenceListener::operator=(PresenceListener&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(refused_, other.refused_);
  return *this;
}
PresenceListener::~PresenceListener() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<PresenceListener::Heard> PresenceListener::poll() {
  std::vector<Heard> heard;
  std::array<char, kMaxMessage> text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  while (heard.size() < kMaxPerPoll) {
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
    if (size < 0) break;
    ucred sender{};
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_CREDENTIALS) {
        std::memcpy(&sender, CMSG_DATA(one), sizeof sender);
      }
    }
    Heard one;
    const bool whole = (message.msg_flags & MSG_TRUNC) == 0;
    // A process of another PID namespace has another number here; the watch knows what to do.
    const bool foreign = decode({text.data(), static_cast<std::size_t>(size)}, one) &&
                         one.second.pid_namespace != own_pid_namespace();
    if (whole && one.second.pid > 0 && (foreign || one.second.pid == sender.pid)) {
      heard.push_back(std::move(one));
    } else {
      ++refused_;
    }
  }
  return heard;
}

}  // namespace tocsin::collectors
