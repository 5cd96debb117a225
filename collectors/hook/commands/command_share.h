// How the clients of one node share one reader of `commands`: who reads gives each record to the
// others over a local socket (docs/events.md). Nothing here decides what a command means.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "collectors/hook/commands/local_socket.h"
#include "core/mutex.h"
#include "core/record.h"
#include "core/result.h"

namespace tocsin::hook {

using CommandHandler = std::function<void(const core::RecordView&)>;

/// Something that a thread can wait for together with sockets. Thread-safe.
class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  void set() noexcept;
  /// True when it was set; it is not any more.
  bool take() noexcept;
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

/// The giving side, with a thread of its own: a newcomer first gets the newest record of every key,
/// then whatever is published.
class CommandServer {
 public:
  static constexpr std::chrono::seconds kKeepAlive{5};
  static constexpr std::size_t kMaxKeys = 256;
  static constexpr std::size_t kMaxPending = 4U << 20;  // bytes; a follower that does not read goes

  explicit CommandServer(LocalSocket listener);
  CommandServer(const CommandServer&) = delete;
  CommandServer& operator=(const CommandServer&) = delete;
  ~CommandServer();

  /// Never blocks on a follower. Any thread.
  void publish(const core::RecordView& record);

 private:
  struct Follower {
    LocalSocket socket;
    std::string pending;
  };
  void serve();
  void welcome() REQUIRES(mutex_);
  bool send_pending(Follower& follower) REQUIRES(mutex_);

  core::Mutex mutex_;
  std::map<std::string, std::string, std::less<>> newest_
      GUARDED_BY(mutex_);  // by record key, as messages
  std::vector<Follower> followers_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  LocalSocket listener_;
  Wakeup wakeup_;
  std::thread thread_;
};

/// The taking side. Lives on one thread.
class CommandFollower {
 public:
  /// A server that says nothing for so long is stopped or stuck.
  static constexpr std::chrono::seconds kPatience{3 * CommandServer::kKeepAlive};

  explicit CommandFollower(LocalSocket socket);
  /// Waits for records, `wakeup`, or the time. unavailable: the server is gone; deadline_exceeded:
  /// it is there and has said nothing within kPatience.
  core::Status read(std::chrono::milliseconds timeout, Wakeup& wakeup, const CommandHandler& take);

 private:
  core::Status receive(const CommandHandler& take);

  LocalSocket socket_;
  std::string buffer_;
  std::chrono::steady_clock::time_point heard_;
};

}  // namespace tocsin::hook
