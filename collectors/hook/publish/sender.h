// From the queue to the transport.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collectors/hook/publish/judge_watch.h"
#include "collectors/hook/publish/send_queue.h"
#include "collectors/hook/publish/session.h"
#include "collectors/hook/publish/spool.h"
#include "collectors/hook/trouble.h"
#include "core/clock.h"
#include "core/record_publisher.h"
#include "core/record_source.h"

namespace tocsin::hook {

/// How the client gets at its transport. Called on background threads, again and again until it
/// works; may block there.
struct Endpoints {
  std::function<core::Result<std::unique_ptr<core::RecordPublisher>>()> publisher;
  std::function<core::Result<std::unique_ptr<core::RecordSource>>(core::RecordPublisher&)> commands;
  /// Whether the other side answers; null: nobody knows.
  std::function<bool()> answers;
  /// Whether an engine reads what is written.
  JudgeQuestion judged;
  /// For what the other side does not take; none: what is left at the end is lost.
  SpoolPlace spool;
};

/// Sends what is queued, one turn at a time; the thread around it is in Client. Lives on one
/// thread.
class Sender {
 public:
  /// How long to leave a publisher alone whose own queue is full.
  static constexpr core::Duration kStuckWait = std::chrono::milliseconds(20);
  /// How long the other side may be away before records go to the disk.
  static constexpr core::Duration kPatience = std::chrono::seconds(5);
  /// Answers of the loop to commands that wait for the other side; not on the disk, for they concern
  /// nobody once the run is over.
  static constexpr std::size_t kMostAcks = 1000;

  Sender(Endpoints& endpoints, Session& session, SendQueue& queue, const core::Clock& clock,
         Trouble& trouble);

  /// One round: opens the publisher if need be, lets the session make what is due, publishes.
  /// Returns how long to wait at most for the next round.
  core::Duration turn();
  /// True when the publisher did not take the oldest record: wait for time, not for records.
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }
  /// Everything that was queued before is delivered, or the time is over (false).
  bool flush(core::Duration timeout);
  [[nodiscard]] std::shared_ptr<core::RecordPublisher> publisher() const { return publisher_; }
  /// The training is over and the other side away: what is queued and what was not confirmed goes to
  /// the spool, in its order.
  void spool_left();
  [[nodiscard]] bool spools() const noexcept { return spool_.there(); }
  [[nodiscard]] const Spool& spool() const noexcept { return spool_; }
  /// Gives up the publisher and whatever it still holds, and lets go of the spool.
  void release();
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_.load(); }
  [[nodiscard]] std::uint64_t confirmed() const noexcept { return confirmed_.load(); }
  /// Of those sent: at most so many were not confirmed, or are known to be lost. What went to the
  /// spool for it is not among them.
  [[nodiscard]] std::uint64_t unconfirmed() const noexcept {
    return lost_.load() + sent_.load() - settled_.load();
  }

 private:
  bool open();
  bool send();
  bool publish_all();
  bool publish(const core::OutRecord& record, core::Status& why);
  void check_delivery();
  void settle();
  void go_away(const std::string& why);
  bool come_back();
  void queue_to_spool();
  void take_back();

  Endpoints& endpoints_;
  Session& session_;
  SendQueue& queue_;
  const core::Clock& clock_;
  Trouble& trouble_;
  std::shared_ptr<core::RecordPublisher> publisher_;
  core::Duration try_again_{0};  // these four: monotonic
  core::Duration check_again_{0};
  core::Duration settled_at_{0};  // when everything sent was confirmed last
  std::optional<core::Duration> away_since_;
  bool stuck_ = false;
  Unconfirmed unconfirmed_;
  Spool spool_;
  std::deque<core::OutRecord> acks_;  // that wait for the other side
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> confirmed_{0};
  std::atomic<std::uint64_t> settled_{0};  // sent and confirmed, lost, or in the spool again
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace tocsin::hook
