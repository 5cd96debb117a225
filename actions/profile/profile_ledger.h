// Which runs were asked for profiles, how often, and who was asked too late.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/command.h"
#include "core/current_run.h"
#include "core/identity.h"
#include "core/mutex.h"
#include "core/time.h"

namespace tocsin::actions {

/// How often one run may be asked.
struct ProfileLimits {
  core::Duration every = std::chrono::minutes(10);  // least time between two
  std::uint64_t most = 5;                           // of one attempt
};

/// The slots <run uid>/profile of the topic `commands`, as far as the router has written them. No
/// clock, no I/O: a restart rebuilds it from the topic, which keeps the newest command of each run;
/// that says how many there were (`asked`). Thread-safe. A run is forgotten two days after it was
/// asked last.
class ProfileLedger {
 public:
  enum class Answer : std::uint8_t { ask, asked_before, too_soon, too_many };

  /// A record of `commands`, at start and later. Other actions, and what people ask for, are passed
  /// over.
  void on_command(const core::Command& command);
  /// `ask`: taken from the budget, and `wanted` says so and has a revision above all that its slot
  /// had; release() it if it cannot be written.
  Answer reserve(core::Command& wanted, const ProfileLimits& limits);
  void release(const core::Command& command);

  /// An answer of a rank. The first one that says that it was too late for a trace of ours has the
  /// run asked once more, for a later step: the command to be written.
  std::optional<core::Command> on_ack(const core::Ack& ack, const core::CurrentRun& current,
                                      core::WallTime now);

 private:
  struct Run {
    std::uint32_t attempt = 0;
    std::uint64_t asked = 0;         // also those whose commands are not known any more
    std::set<std::string> commands;  // ids
    core::WallTime last{};
    std::optional<core::Command> newest;
    std::optional<core::WallTime> before;  // of the reservation
  };

  /// The highest revision that the slot of a run had, of any attempt and anybody's.
  struct Slot {
    std::uint64_t revision = 0;
    core::WallTime at{};
  };

  void note(const core::Command& command) REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t next_revision(const core::Command& wanted) const REQUIRES(mutex_);

  core::Mutex mutex_;
  std::map<core::RunUid, Run> runs_ GUARDED_BY(mutex_);
  std::map<core::RunUid, Slot> slots_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::actions
