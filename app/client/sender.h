// From the queue to the transport.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "app/client/send_queue.h"
#include "app/client/session.h"
#include "app/client/spool.h"
#include "app/client/trouble.h"
#include "core/clock.h"
#include "core/record_publisher.h"
#include "core/record_source.h"

namespace tocsin::app::client {

/// How the client gets at its transport. Called on background threads, again and again until it
/// works; may block there.
struct Endpoints {
  std::function<core::Result<std::unique_ptr<core::RecordPublisher>>()> publisher;
  std::function<core::Result<std::unique_ptr<core::RecordSource>>(core::RecordPublisher&)> commands;
  /// A publisher of the directory `spool_directory`, for what is left at the end; null: there is
  /// none, what is left is lost.
  Spool::Open spool;
  std::string spool_directory;
};

/// Sends what is queued, one turn at a time; the thread around it is in Client. Lives on one
/// thread.
class Sender {
 public:
  /// How long to leave a publisher alone whose own queue is full.
  static constexpr core::Duration kStuckWait = std::chrono::milliseconds(20);

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
  /// The training is over and the other side away: what is queued and what was not confirmed goes to
  /// the spool, in its order. How many records are there now; 0: none, or there is no spool.
  std::uint64_t spool_left();
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
  Unconfirmed unconfirmed_;
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> confirmed_{0};  // or counted in lost_
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace tocsin::app::client
