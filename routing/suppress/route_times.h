// Time intervals of routes: at which times nobody is told of a route's groups (docs/time-intervals.md).
// They hold for all issues of a group alike, so a flush asks once for the group's route.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/suppress/suppressor.h"
#include "routing/times/calendar.h"
#include "routing/tree/route_config.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

/// Reasons of time intervals begin so.
inline constexpr std::string_view kMuteTime = "mute_time:";
inline constexpr std::string_view kActiveTime = "active_time:";

/// Lives on the router's thread. A route without intervals costs nothing.
class RouteTimes {
 public:
  RouteTimes() = default;
  /// invalid_argument: an interval that cannot be compiled, or two of one name; a route of `tree` that
  /// names one that is not there.
  static core::Result<RouteTimes> build(const std::vector<TimeInterval>& intervals,
                                        const RouteConfig& tree);

  /// Adds "mute_time:<name>" for each mute interval that holds at `tick`; where none does,
  /// "active_time:<name>" for each active one, if none of these holds.
  void reasons(const Route& route, core::WallTime tick, std::vector<Suppression>& out) const;
  /// Does some interval of the route begin or end after `since`, and not after `now`?
  [[nodiscard]] bool may_differ(const Route& route, core::WallTime since, core::WallTime now) const;

 private:
  struct Interval {
    Calendar calendar;
    // The answer that was asked for last, and from when until before when it is the same: nearly every
    // question comes again within it.
    mutable core::WallTime steady_from{};
    mutable core::WallTime steady_until{};
    mutable bool holds = false;

    [[nodiscard]] bool at(core::WallTime tick) const;
    [[nodiscard]] bool changes(core::WallTime since, core::WallTime now) const;
  };

  std::unordered_map<std::string, Interval> intervals_;  // by name
};

}  // namespace tocsin::routing
