// The client of one process: a session on the training side, and two background threads, one that
// sends and one that reads commands. Everything that can block happens on those.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/collectors.h"
#include "collectors/hook/client/commands.h"
#include "collectors/hook/client/handover.h"
#include "collectors/hook/client/judge_link.h"
#include "collectors/hook/client/run_report.h"
#include "collectors/hook/commands/command_reader.h"
#include "collectors/hook/publish/send_queue.h"
#include "collectors/hook/publish/sender.h"
#include "collectors/hook/publish/session.h"
#include "collectors/hook/raw/raw_sender.h"
#include "collectors/hook/trouble.h"
#include "core/clock.h"
#include "core/record_publisher.h"
#include "core/record_source.h"

namespace tocsin::hook {

struct ClientOptions {
  std::uint64_t queue_bytes = 64ULL << 20;
  std::string out;                    // for people: where telemetry goes
  std::vector<std::string> warnings;  // what is not as it was asked for
  bool judged = false;                // somebody has said that he judges this process
  std::string report;                 // path of a RunReport; empty: none
  std::string spool;                  // where records go that are left at the end; for people
  /// Clients of a node with the same text share one reader of `commands`; empty: none.
  std::string command_share;
};

/// Tells the agents of this machine whose process to hold on to. Lives on one thread.
class Presence {
 public:
  /// Again whenever a heartbeat's time has passed since the last.
  void announce(const Session& session, core::Duration now);

 private:
  const collectors::PresenceSender sender_;
  const std::int64_t namespace_ = collectors::own_pid_namespace();
  core::Duration announced_{-1};  // monotonic
};

class Client {
 public:
  /// Starts nothing; see start(). `clock` outlives the client.
  Client(SessionOptions session, CapturePlan plan, Endpoints endpoints,
         std::shared_ptr<Trouble> trouble, const core::Clock& clock, ClientOptions options,
         OpenRawPlace raw = nullptr);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  /// The client must have been closed.
  ~Client() = default;

  [[nodiscard]] Session& session() noexcept { return session_; }
  [[nodiscard]] CommandBoard& commands() noexcept { return board_; }
  /// Rules that judge in this process; before start(). An error leaves the client as it is, and
  /// stands in counters().
  core::Status judge_here(const std::string& rules, const std::string& stop);
  /// Null: nobody judges here.
  [[nodiscard]] const JudgeLink* judge() const noexcept { return judge_.get(); }
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
  void send_loop();
  void leave_send_loop();
  void command_loop();
  core::Result<std::unique_ptr<core::RecordSource>> open_commands();
  bool request(Handover::Request what, std::chrono::milliseconds timeout);
  void charge_judging();
  static void start_raw(const std::weak_ptr<Client>& self);
  void close_raw(core::Duration until);

  const core::Clock& clock_;
  ClientOptions options_;
  SendQueue queue_;
  RawQueue raw_queue_;
  Session session_;
  CommandBoard board_;
  CommandReader reader_;
  Endpoints endpoints_;
  std::shared_ptr<Trouble> trouble_;
  Sender sender_;
  RawSender raw_sender_;
  std::atomic<bool> raw_begun_{false};
  JudgeWatch judge_watch_;
  const RunReport report_;
  std::atomic<bool> closing_{false};
  Presence presence_;
  Handover handover_;
  std::string judge_error_;
  std::unique_ptr<JudgeLink> judge_;  // last: its thread may use what stands above
};

}  // namespace tocsin::hook
