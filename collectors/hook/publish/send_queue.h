// The one queue between training and the network: bounded by bytes, first in first out. When it is
// full, records of the lowest precedence make room; what is dropped is counted per precedence and
// becomes a `gap` record, and its sequence number stays unused.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/record.h"

namespace tocsin::hook {

/// Highest first: control is dropped last.
enum class Precedence : std::uint8_t { control = 0, scalars = 1, statistics = 2, raw = 3 };
inline constexpr std::size_t kPrecedences = 4;
std::string_view to_string(Precedence precedence) noexcept;

struct QueuedRecord {
  core::OutRecord record;
  Precedence precedence = Precedence::control;
  std::uint32_t rows = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t place = 0;  // the queue's own
};

/// What was dropped from one precedence and not reported yet.
struct Gap {
  Precedence precedence = Precedence::control;
  std::uint64_t frames = 0;
  std::uint64_t rows = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
};

/// Thread-safe. push() never waits for anything but the mutex.
class SendQueue {
 public:
  explicit SendQueue(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  /// Sees every record at push(), also those that are dropped, in the order of the caller's lock.
  /// Set before the first push().
  void set_tap(std::function<void(const core::OutRecord&)> tap) { tap_ = std::move(tap); }
  /// False: `record` itself was dropped (nothing of lower precedence held enough). A sender that will
  /// look by itself soon is not woken for it, for that costs the caller more than all the rest,
  /// unless the queue has become an eighth full.
  bool push(QueuedRecord record);
  /// Oldest record; nullopt when empty. The record stays counted until done() or back().
  std::optional<QueuedRecord> pop();
  /// Returns a popped record to the head: the publisher did not take it.
  void put_back(QueuedRecord record);
  /// Waits until something is queued, wake() or the time is over. `only_wake`: what is queued does
  /// not count (the publisher does not take it for now).
  void wait(std::chrono::nanoseconds timeout, bool only_wake = false);
  void wake();
  /// The sender is about to look whether anything waits, and to sleep long if not: until it is woken.
  void going_idle(bool idle) noexcept { idle_.store(idle); }
  /// Something waits that is not queued yet: wakes a sender that sleeps long; else costs one load.
  void nudge() {
    if (idle_.load()) wake();
  }

  /// Gaps since the last call; only when the queue is at most half full, so that the report finds
  /// room and covers the whole outage.
  std::vector<Gap> take_gaps();
  /// Drops everything that is queued; how many records that were.
  std::uint64_t purge();
  /// A record that was taken but could not be delivered counts as a gap, too.
  void count_lost(const QueuedRecord& record);

  /// How often the sender was told to look.
  [[nodiscard]] std::uint64_t wakes() const noexcept { return wakes_.load(); }
  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::array<std::uint64_t, kPrecedences> dropped() const;  // frames, ever
  [[nodiscard]] std::array<std::uint64_t, kPrecedences> pushed() const;   // frames, ever

 private:
  void count(const QueuedRecord& record) REQUIRES(mutex_);
  bool make_room(Precedence above, std::uint64_t bytes) REQUIRES(mutex_);
  [[nodiscard]] std::deque<QueuedRecord>* oldest() REQUIRES(mutex_);

  std::function<void(const core::OutRecord&)> tap_;
  mutable core::Mutex mutex_;
  core::CondVar filled_;
  // One per precedence, so that what is dropped is found at once; `place` is the order over all.
  std::array<std::deque<QueuedRecord>, kPrecedences> lanes_ GUARDED_BY(mutex_);
  std::int64_t next_place_ GUARDED_BY(mutex_) = 0;
  std::int64_t first_place_ GUARDED_BY(mutex_) = 0;
  const std::uint64_t capacity_;
  std::uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  bool woken_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> idle_{false};
  std::atomic<std::uint64_t> wakes_{0};
  std::array<Gap, kPrecedences> gaps_ GUARDED_BY(mutex_){};
  std::array<std::uint64_t, kPrecedences> dropped_ GUARDED_BY(mutex_){};
  std::array<std::uint64_t, kPrecedences> pushed_ GUARDED_BY(mutex_){};
};

}  // namespace tocsin::hook
