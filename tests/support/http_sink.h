// The least of an HTTP/1.1 server that keeps connections: swallows requests, answers 204, or lets
// them hang. For tests and benchmarks of clients on loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace tocsin::tests {

/// Requests to paths with "hang" get no answer while the sink lives. One thread per connection.
class HttpSink {
 public:
  HttpSink() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    if (listener_ < 0 || bind(listener_, address, size) != 0 || listen(listener_, 512) != 0 ||
        getsockname(listener_, address, &size) != 0) {
      throw std::runtime_error("no socket to listen on");
    }
    port_ = ntohs(here.sin_port);
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~HttpSink() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_ = {};
    drop_connections();
    connections_.clear();
    close(listener_);
  }
  HttpSink(const HttpSink&) = delete;
  HttpSink& operator=(const HttpSink&) = delete;

  /// Closes what is open; new connections are taken as before.
  void drop_connections() {
    const std::lock_guard lock(mutex_);
    for (const int open : open_) shutdown(open, SHUT_RDWR);
  }

  [[nodiscard]] std::string url(const std::string& path = "/hook") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  [[nodiscard]] std::uint64_t connections() const { return accepted_; }
  /// CPU time of the sink itself, to be taken off the process's.
  [[nodiscard]] double cpu_seconds() const { return static_cast<double>(cpu_ns_) / 1e9; }

 private:
  static std::int64_t thread_cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }

  void accept_all() {
    while (true) {
      const int taken = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (taken < 0) return;
      const int on = 1;
      setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ++accepted_;
      const std::lock_guard lock(mutex_);
      open_.push_back(taken);
      connections_.emplace_back([this, taken] { serve(taken); });
    }
  }

  // True: a whole request was read; what follows it stays in `buffer`.
  static bool read_request(int connection, std::string& buffer, bool& hangs) {
    std::size_t head = std::string::npos;
    std::size_t whole = 0;
    while (true) {
      if (head == std::string::npos && (head = buffer.find("\r\n\r\n")) != std::string::npos) {
        hangs = std::string_view(buffer).substr(0, buffer.find('\r')).find("hang") !=
                std::string_view::npos;
        const std::size_t length = buffer.find("Content-Length: ");
        whole = head + 4 +
                (length < head ? std::strtoul(buffer.c_str() + length + 16, nullptr, 10) : 0);
      }
      if (head != std::string::npos && buffer.size() >= whole) {
        buffer.erase(0, whole);
        return true;
      }
      char bytes[16384];
      const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
      if (count <= 0) return false;
      buffer.append(bytes, static_cast<std::size_t>(count));
    }
  }

  void serve(int connection) {
    static constexpr std::string_view kAnswer = "HTTP/1.1 204 No Content\r\n\r\n";
    std::string buffer;
    bool hangs = false;
    std::int64_t used = thread_cpu_ns();
    while (read_request(connection, buffer, hangs)) {
      ++requests_;
      if (!hangs && send(connection, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) < 0) break;
      const std::int64_t now = thread_cpu_ns();
      cpu_ns_ += now - used;
      used = now;
    }
    const std::lock_guard lock(mutex_);
    open_.remove(connection);
    close(connection);
  }

  int listener_;
  int port_ = 0;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
  std::mutex mutex_;  // guards open_
  std::list<int> open_;
  std::list<std::jthread> connections_;
  std::jthread acceptor_;
};

}  // namespace tocsin::tests
