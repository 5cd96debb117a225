#include "collectors/hook/commands/command_share.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "collectors/hook/commands/command_message.h"

namespace tocsin::hook {
namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Wakeup::Wakeup() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Wakeup::~Wakeup() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Wakeup::set() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(descriptor_, &one, sizeof one);
}

bool Wakeup::take() noexcept {
  std::uint64_t count = 0;
  return ::read(descriptor_, &count, sizeof count) == sizeof count;
}

CommandServer::CommandServer(LocalSocket listener) : listener_(std::move(listener)) {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "tocsin-share");
    serve();
  });
}

CommandServer::~CommandServer() {
  {
    const core::MutexLock lock(mutex_);
    closing_ = true;
  }
  wakeup_.set();
  thread_.join();
}

void CommandServer::publish(const core::RecordView& record) {
  const std::string message = encode_command_message(record);
  {
    const core::MutexLock lock(mutex_);
    const std::string key(record.key.value_or(std::string_view{}));
    // A withdrawal is kept, too: a follower may hold what was withdrawn while nobody read.
    if (newest_.size() < kMaxKeys || newest_.count(key) != 0) newest_[key] = message;
    for (Follower& follower : followers_) follower.pending += message;
  }
  wakeup_.set();
}

void CommandServer::welcome() {
  while (LocalSocket socket = accept_locally(listener_)) {
    Follower made{std::move(socket), keep_alive_message()};
    for (const auto& [key, message] : newest_) made.pending += message;
    followers_.push_back(std::move(made));
  }
}

// False: it is gone, or does not read.
bool CommandServer::send_pending(Follower& follower) {
  while (!follower.pending.empty()) {
    const auto sent = send(follower.socket.get(), follower.pending.data(), follower.pending.size(),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return would_block() && follower.pending.size() <= kMaxPending;
    follower.pending.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void CommandServer::serve() {
  std::vector<pollfd> waited;
  auto alive_at = std::chrono::steady_clock::now() + kKeepAlive;
  while (true) {
    std::optional<std::chrono::milliseconds> wait;
    {
      const core::MutexLock lock(mutex_);
      if (closing_) return;
      const auto now = std::chrono::steady_clock::now();
      if (now >= alive_at) {
        alive_at = now + kKeepAlive;
        for (Follower& follower : followers_) follower.pending += keep_alive_message();
      }
      std::erase_if(followers_,
                    [&](Follower& follower) REQUIRES(mutex_) { return !send_pending(follower); });
      waited.assign({{listener_.get(), POLLIN, 0}, {wakeup_.descriptor(), POLLIN, 0}});
      for (const Follower& follower : followers_) {
        const int wanted = POLLRDHUP | (follower.pending.empty() ? 0 : POLLOUT);
        waited.push_back({follower.socket.get(), static_cast<short>(wanted), 0});
      }
      if (!followers_.empty()) wait = std::chrono::ceil<std::chrono::milliseconds>(alive_at - now);
    }
    // Nobody to talk to: nothing to wake up for.
    (void)poll(waited.data(), waited.size(), wait ? static_cast<int>(wait->count()) : -1);
    wakeup_.take();
    const core::MutexLock lock(mutex_);
    if (closing_) return;
    for (std::size_t i = waited.size(); i-- > 2;) {
      if ((waited[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
        followers_.erase(followers_.begin() + static_cast<std::ptrdiff_t>(i - 2));
      }
    }
    if (waited[0].revents != 0) welcome();
  }
}

CommandFollower::CommandFollower(LocalSocket socket)
    : socket_(std::move(socket)), heard_(std::chrono::steady_clock::now()) {}

core::Status CommandFollower::read(std::chrono::milliseconds timeout, Wakeup& wakeup,
                                   const CommandHandler& take) {
  const auto now = std::chrono::steady_clock::now();
  if (now - heard_ > kPatience) {
    return core::Error{core::Code::deadline_exceeded, "the reader of commands on this node hangs"};
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(heard_ + kPatience - now);
  std::array<pollfd, 2> waited{{{socket_.get(), POLLIN, 0}, {wakeup.descriptor(), POLLIN, 0}}};
  (void)poll(waited.data(), waited.size(), static_cast<int>(std::min(timeout, left).count()));
  wakeup.take();
  return waited[0].revents == 0 ? core::ok() : receive(take);
}

core::Status CommandFollower::receive(const CommandHandler& take) {
  std::array<char, 16384> chunk{};
  while (true) {
    const auto got = recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && would_block()) break;
    if (got <= 0) return core::unavailable("the reader of commands on this node is gone");
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
  heard_ = std::chrono::steady_clock::now();
  std::size_t at = 0;
  while (true) {
    const std::string_view left = std::string_view(buffer_).substr(at);
    const auto size = message_size(left);
    if (!size) return core::unavailable("the reader of commands on this node speaks otherwise");
    if (*size == 0 || *size > left.size()) break;
    if (!decode_command_message(left.substr(0, *size), take)) {
      return core::unavailable("a damaged command from the reader of this node");
    }
    at += *size;
  }
  buffer_.erase(0, at);
  return core::ok();
}

}  // namespace tocsin::hook
