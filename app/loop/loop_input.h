// The input of a loop: polls the source, tells a passing failure from a lost group, and waits after
// failures.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/loop/backoff.h"
#include "app/loop/wakeable_source.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/record_source.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

/// What came of one poll.
struct PollOutcome {
  enum class Kind {
    read,     // nothing failed
    gap,      // input is gone, and reading goes on behind it
    failing,  // nothing can be read now: try again later
    fenced,   // the group has given our partitions away
  };
  Kind kind = Kind::read;
  bool proves = false;                      // read: reading works, not only that nothing was asked
  core::Error error = {};                   // of all kinds but `read`
  std::vector<core::Position> before = {};  // gap: positions before and behind the poll
  std::vector<core::Position> now = {};
};

/// wake() may be called from anywhere, the rest by the loop's thread.
class LoopInput {
 public:
  /// Ports outlive it. `stage`: its name, for the log.
  LoopInput(std::string stage, core::Clock& clock, core::Log& log)
      : stage_(std::move(stage)), clock_(clock), log_(log) {}

  void open(std::unique_ptr<core::RecordSource> source);
  /// Leaves the group. Does nothing while it is not open.
  void close();
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(source_); }
  /// While it is open.
  [[nodiscard]] core::RecordSource& source() const noexcept { return *source_; }

  /// Hands out at most `batch` records and waits at most `wait` for the first.
  PollOutcome poll(std::chrono::milliseconds wait, std::size_t batch, core::RecordHandler handle);
  /// Whether a poll has succeeded since the last call.
  [[nodiscard]] bool take_polled() { return std::exchange(polled_, false); }
  /// The wait after a failed poll. Whoever fails to read state grows it too.
  [[nodiscard]] const Backoff& backoff() const noexcept { return backoff_; }
  void grow_backoff() { backoff_.grow(clock_.monotonic()); }

  /// Waits until `until` (steady), at most `longest`, and no longer than until wake().
  void pause(core::Duration until, std::chrono::milliseconds longest) {
    source_.pause(clock_, until, longest);
  }
  /// Ends a pause, or the next one, and a poll.
  void wake() { source_.wake(); }

 private:
  PollOutcome judge_failure(const core::Error& error, std::vector<core::Position> before);

  const std::string stage_;
  core::Clock& clock_;
  core::Log& log_;
  WakeableSource source_;
  core::Duration opened_{};  // steady
  bool polled_ = false;
  bool damaged_ = false;  // the last poll found a damage that it does not get past
  Backoff backoff_;
};

}  // namespace tocsin::app
