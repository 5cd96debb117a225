// When a group's turn comes: the grid of group_interval, urgent flushes off it, and what is held
// while the input is behind (docs/routing.md, Groups).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "routing/tables/agenda.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// Changes the times of groups and puts them on the agenda; who calls it sees to the records.
class Turns {
 public:
  explicit Turns(Agenda& agenda) : agenda_(agenda) {}

  /// The group has its first member: its first turn is after `group_wait`.
  void begin(Group& group, const IssueState& first, core::WallTime now);
  /// Its next turn on the grid is at `at` or before.
  void no_later_than(Group& group, core::WallTime at);
  /// Its next turn comes within `wait`, off the grid, but not sooner after the last such turn than the
  /// route allows. False: that changes nothing.
  bool hurry(Group& group, core::Duration wait, core::WallTime now);
  /// Its next turn comes at `at`, off the grid: a run has ended, or another one is news. In a group of
  /// many runs not sooner after the last turn than kPullGap. False: that changes nothing.
  bool pull(Group& group, core::WallTime at);
  /// The tick that is told when `due` has come: missed ones collapse into the newest. nullopt: that
  /// one is on the agenda, behind what is due before it.
  std::optional<core::WallTime> tick_for(Group& group, core::WallTime due, core::WallTime now);
  /// It was looked at for `tick`; its next turn is on the grid, after `now`.
  void advance(Group& group, core::WallTime tick, core::WallTime now);
  /// It has no turn any more since `at`.
  void end(Group& group, core::WallTime at);
  /// Puts its next turn on the agenda.
  void arrange(const Group& group);

  /// While the input is behind, groups that begin with old issues are held.
  void set_behind(bool behind) { behind_ = behind; }
  /// A group that was held is due again. False: it was not.
  bool release(Group& group, core::WallTime now);
  /// Groups that became due at once since last asked, by hash.
  std::vector<std::string> take_at_once() { return std::exchange(at_once_, {}); }

 private:
  Agenda& agenda_;
  bool behind_ = false;
  std::vector<std::string> at_once_;
};

/// Runs of one group that end one after the other do not each make a message.
inline constexpr core::Duration kPullGap = std::chrono::seconds(10);

/// The last point of the grid that starts at `first` and is not after `now`.
core::WallTime last_on_grid(core::WallTime first, core::Duration interval, core::WallTime now);

}  // namespace tocsin::routing
