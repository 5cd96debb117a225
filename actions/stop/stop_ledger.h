// Which stops were asked for: one per attempt, so many in a time, never an older attempt over a
// newer one (docs/actions/stop_training.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/command.h"
#include "core/issue.h"
#include "core/mutex.h"
#include "core/time.h"

namespace tocsin::actions {

/// Blast radius: at most `count` stops of the router in `per`, over all runs and integrations.
struct StopLimit {
  std::uint64_t count = 3;
  core::Duration per = std::chrono::minutes(10);
};

/// The slots <run uid>/stop of the topic `commands`, as far as they have been read or written here.
/// No clock, no I/O: a restart rebuilds it from the topic, which keeps the newest command of each
/// run (7 days). Thread-safe.
class StopLedger {
 public:
  /// A record of `commands`, at start and later, whoever wrote it. Other actions and dry runs are
  /// passed over.
  void on_command(const core::Command& command);
  /// The slot was withdrawn: the attempt is not asked again, and still counts.
  void on_withdrawn(const core::RunUid& run);

  enum class Leave {
    send,               // reserved: write it with `revision`, release() it if that fails
    already_requested,  // this attempt was asked, of this launch
    withdrawn,          // this attempt was asked, and somebody took it back
    newer_attempt,      // the slot belongs to a newer attempt
    held_back,          // by the limit
  };
  struct Answer {
    Leave leave = Leave::send;
    std::uint64_t revision = 0;        // grows per slot
    std::uint64_t recent = 0;          // stops in the last StopLimit::per
    std::uint32_t newest_attempt = 0;  // of the slot
  };
  /// May this stop be written? Whoever may not be sent is not recorded. A stop of an attempt that
  /// was asked before is written again when workers have started since (another launch).
  Answer reserve(const core::Command& wanted, const StopLimit& limit);
  /// Who asked by this command; nullopt: it was never written, as far as is known.
  std::optional<std::string> who_asked(const std::string& command_id);
  /// Runs that were asked to stop for that rule, at or after `since`, by the router.
  std::set<core::RunUid> asked_since(const std::string& rule, core::WallTime since);
  /// The command of the last reserve() or resend() for this slot could not be written.
  void release(const core::Command& command);

  /// The stop, a person's too, to be written again because workers of the same attempt have started
  /// since it was written: the same command, the new launch, revision + 1. Recorded as reserve()
  /// does. Workers that opened more than ten seconds after it are none of that launch's, whatever
  /// its number.
  std::optional<core::Command> resend(const core::JobEvent& event, core::WallTime now);
  /// The same stop to be written again for a later step: `later` with revision + 1, recorded as
  /// reserve() does. nullopt: what stands in the slot is no longer the revision that `later` has.
  std::optional<core::Command> put_off(core::Command later);

 private:
  struct Slot {
    core::Command command;
    std::optional<core::Command> before;  // what stood there before the last reservation
    bool withdrawn = false;
  };
  void forget_old(core::WallTime now) REQUIRES(mutex_);

  core::Mutex mutex_;
  std::map<core::RunUid, Slot> slots_ GUARDED_BY(mutex_);
  // By the router: command id → issued at.
  std::map<std::string, core::WallTime> asked_ GUARDED_BY(mutex_);
  core::WallTime forgotten_at_ GUARDED_BY(mutex_){};  // when all of it was last walked through
};

}  // namespace tocsin::actions
