// One stop command and how far it has come. Internal to actions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actions/stop/local_process.h"
#include "actions/stop/stop_ladder.h"
#include "core/command.h"
#include "core/time.h"

namespace tocsin::actions {

/// The rungs of one stop. Deadlines count from the command's issued_at, so that reading everything
/// again after a restart leads to the same state.
struct StopCase {
  StopCase(core::Command from, std::shared_ptr<const StopReach> reach);

  /// The same stop, written again: for workers that started later, for a later step, or by a person
  /// on other terms.
  void renew(const core::Command& again);

  void move(StopState to, std::string reason, core::WallTime at, StopLadder::Step& step);
  /// To platform_graceful or platform_force, with the signal that belongs to it.
  void signal(StopState to, std::string reason, core::WallTime at, StopLadder::Step& step);
  /// As it was recorded before a restart.
  void resume(StopState to, core::WallTime at);
  /// Whatever is due by now.
  void advance(core::WallTime now, StopLadder::Step& step);
  /// When the next rung is due if nothing else happens, and which.
  [[nodiscard]] std::pair<core::WallTime, StopState> next() const;

  core::Command command;
  StopState state = StopState::requested;
  bool may_signal = false;  // there is something to end, and the mode ends it
  bool seen_alive = false;
  std::optional<ProcessFence> fence;
  std::uint32_t first_rank = 0;                   // whose `stopped` ends the run
  std::map<std::string, std::uint64_t> accepted;  // worker → its incarnation
  std::string job;                                // of the run, as far as is known
  core::Labels labels;

 private:
  void read();
  [[nodiscard]] std::string why_failed() const;

  std::shared_ptr<const StopReach> reach_;
  core::WallTime ack_by_{};
  core::WallTime graceful_by_{};
  core::WallTime total_by_{};
  core::Duration grace_{};
  bool allow_force_ = false;
  core::WallTime signalled_at_{};
};

}  // namespace tocsin::actions
