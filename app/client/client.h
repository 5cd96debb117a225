// The client of one process: a session on the training side, and two background threads, one that
// sends and one that reads commands. Everything that can block happens on those.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "app/client/command_reader.h"
#include "app/client/commands.h"
#include "app/client/run_report.h"
#include "app/client/send_queue.h"
#include "app/client/session.h"
#include "collectors/collectors.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/record_publisher.h"
#include "core/record_source.h"

namespace tocsin::app::client {

/// How the client gets at its transport. Called on background threads, again and again until it
/// works; may block there.
struct Endpoints {
  std::function<core::Result<std::unique_ptr<core::RecordPublisher>>()> publisher;
  std::function<core::Result<std::unique_ptr<core::RecordSource>>(core::RecordPublisher&)> commands;
};

/// What goes wrong in the background, for counters: nothing is ever printed into the user's
/// process. Thread-safe.
class Trouble final : public core::Log {
 public:
  /// Keeps warnings and errors of the transport, forgets the rest.
  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field> fields) override;
  void set(std::string text);
  void clear();
  [[nodiscard]] std::string text() const;  // empty: nothing
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(); }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::atomic<std::uint64_t> count_{0};
};

/// Sends what is queued, one turn at a time; the thread around it is in Client. Lives on one
/// thread.
class Sender {
 public:
  Sender(Endpoints& endpoints, Session& session, SendQueue& queue, const core::Clock& clock,
         Trouble& trouble);

  /// One round: opens the publisher if need be, lets the session make what is due, publishes.
  /// Returns how long to wait at most for the next round.
  core::Duration turn();
  /// True when the publisher did not take the oldest record: wait for time, not for records.
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }
  /// Everything that was queued before is delivered, or the time is over (false).
  bool flush(core::Duration timeout);
  [[nodiscard]] core::RecordPublisher* publisher() const noexcept { return publisher_.get(); }
  /// Gives up the publisher and whatever it still holds.
  void release() { publisher_.reset(); }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_.load(); }
  /// Of those sent: at most so many were not confirmed, or are known to be lost.
  [[nodiscard]] std::uint64_t unconfirmed() const noexcept {
    return lost_.load() + sent_.load() - confirmed_.load();
  }

 private:
  bool open();
  bool publish_all();
  void check_delivery();

  Endpoints& endpoints_;
  Session& session_;
  SendQueue& queue_;
  const core::Clock& clock_;
  Trouble& trouble_;
  std::unique_ptr<core::RecordPublisher> publisher_;
  core::Duration try_again_{0};    // monotonic
  core::Duration check_again_{0};  // monotonic
  bool stuck_ = false;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> confirmed_{0};  // or counted in lost_
  std::atomic<std::uint64_t> lost_{0};
};

struct ClientOptions {
  std::uint64_t queue_bytes = 64ULL << 20;
  std::string out;     // for people: where telemetry goes
  std::string report;  // path of a RunReport; empty: none
  /// Clients of a node with the same text share one reader of `commands`; empty: none.
  std::string command_share;
};

class Client {
 public:
  /// Starts nothing; see start(). `clock` outlives the client.
  Client(SessionOptions session, CapturePlan plan, Endpoints endpoints,
         std::shared_ptr<Trouble> trouble, const core::Clock& clock, ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// The client must have been closed.
  ~Client() = default;

  [[nodiscard]] Session& session() noexcept { return session_; }
  [[nodiscard]] CommandBoard& commands() noexcept { return board_; }
  [[nodiscard]] std::string counters() const;
  /// What did not reach the other side, in one sentence; empty: nothing. Final after close().
  [[nodiscard]] std::string loss() const;
  /// The script has acknowledged a stop.
  void stopping() const { report_.stopping(session_.incarnation()); }
  bool flush(std::chrono::milliseconds timeout);
  /// Empty outcome: `leave` instead of `end`. False: not everything was delivered in time; the rest
  /// is dropped. The threads then hold `self` until they are through, so the caller never waits
  /// longer.
  static bool close(std::shared_ptr<Client> self, std::string_view outcome, std::string_view error,
                    std::optional<int> exit_code, std::chrono::milliseconds timeout);
  /// Starts the threads; each holds `self`.
  static void start(const std::shared_ptr<Client>& self);

 private:
  enum class Request { none, flush, close };
  void announce();
  void send_loop();
  void leave_send_loop();
  void command_loop();
  core::Result<std::unique_ptr<core::RecordSource>> open_commands();
  bool request(Request what, std::chrono::milliseconds timeout);

  const core::Clock& clock_;
  ClientOptions options_;
  SendQueue queue_;
  Session session_;
  CommandBoard board_;
  CommandReader reader_;
  Endpoints endpoints_;
  std::shared_ptr<Trouble> trouble_;
  Sender sender_;
  const RunReport report_;
  std::atomic<bool> closing_{false};
  const collectors::PresenceSender presence_;
  const std::int64_t presence_namespace_ = collectors::own_pid_namespace();
  core::Duration announced_{-1};  // monotonic; of the sending thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Request request_ = Request::none;
  core::Duration request_until_{0};  // monotonic
  bool answered_ = false;
  bool answer_ = false;
  int threads_ = 0;
  core::RecordPublisher* publisher_ = nullptr;  // for the command thread; set once it is open
};

}  // namespace tocsin::app::client
