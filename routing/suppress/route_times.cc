#include "routing/suppress/route_times.h"

#include <algorithm>
#include <utility>

#include "core/text.h"

namespace tocsin::routing {

using core::Status;
using core::WallTime;

namespace {

Status check_names(const RouteConfig& route, const std::vector<std::string>& known) {
  for (const auto* names : {&route.mute_times, &route.active_times}) {
    for (const std::string& name : names->value_or(std::vector<std::string>())) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string near = core::nearest(name, known);
      return core::invalid_argument("no time interval is called '" + name + "'" +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }
  for (const RouteConfig& child : route.routes) {
    if (Status good = check_names(child, known); !good) return good;
  }
  return core::ok();
}

}  // namespace

core::Result<RouteTimes> RouteTimes::build(const std::vector<TimeInterval>& intervals,
                                           const RouteConfig& tree) {
  RouteTimes out;
  std::vector<std::string> names;
  for (const TimeInterval& interval : intervals) {
    auto calendar = Calendar::compile(interval.windows);
    if (!calendar) return core::Error(calendar.error()).in("time interval " + interval.name);
    if (!out.intervals_.try_emplace(interval.name, Interval{std::move(*calendar)}).second) {
      return core::invalid_argument("two time intervals are called '" + interval.name + "'");
    }
    names.push_back(interval.name);
  }
  if (Status good = check_names(tree, names); !good) return good.error();
  return out;
}

bool RouteTimes::Interval::at(WallTime tick) const {
  if (tick < steady_from || tick >= steady_until) {
    holds = calendar.holds(tick);
    steady_from = tick;
    steady_until = calendar.steady_until(tick);
  }
  return holds;
}

bool RouteTimes::Interval::changes(WallTime since, WallTime now) const {
  if (now <= since || (since >= steady_from && now < steady_until)) return false;
  return calendar.next_change(since, now).has_value();
}

void RouteTimes::reasons(const Route& route, WallTime tick, std::vector<Suppression>& out) const {
  bool muted = false;
  for (const std::string& name : route.mute_times) {
    if (!intervals_.at(name).at(tick)) continue;
    muted = true;
    out.push_back({std::string(kMuteTime) + name, Reach::all, Cause::time});
  }
  const bool active =
      route.active_times.empty() ||
      std::any_of(route.active_times.begin(), route.active_times.end(),
                  [&](const std::string& name) { return intervals_.at(name).at(tick); });
  if (muted || active) return;
  for (const std::string& name : route.active_times) {
    out.push_back({std::string(kActiveTime) + name, Reach::all, Cause::time});
  }
}

bool RouteTimes::may_differ(const Route& route, WallTime since, WallTime now) const {
  const auto changes = [&](const std::string& name) {
    return intervals_.at(name).changes(since, now);
  };
  return std::any_of(route.mute_times.begin(), route.mute_times.end(), changes) ||
         std::any_of(route.active_times.begin(), route.active_times.end(), changes);
}

}  // namespace tocsin::routing
