// How many groups there may be, and members in each; what does not fit goes to the overflow group of
// its route, and the router says so by an issue of its own (docs/routing.md, Limits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

/// The limits kept an issue from a group of its own (`begins`), or there is room again.
struct Overflow {
  std::string route_id;
  bool begins = true;
  core::WallTime at{};
};

/// Counts active groups: those with members, or due to be flushed.
class Capacity {
 public:
  explicit Capacity(const Config& limits) : limits_(limits) {}

  [[nodiscard]] bool another_group(const std::string& route_id) const {
    const auto here = active_of_route_.find(route_id);
    return active_ < limits_.max_groups &&
           (here == active_of_route_.end() ? 0 : here->second) < limits_.max_groups_per_route;
  }
  [[nodiscard]] bool another_member(const Group& group) const {
    return group.members.size() < limits_.max_members_per_group;
  }

  void opened(const Group& group) {
    ++active_;
    ++active_of_route_[group.route_id];
  }
  void closed(const Group& group, core::WallTime at) {
    --active_;
    --active_of_route_[group.route_id];
    if (group.overflow) overflows_.push_back({group.route_id, false, at});
  }
  /// An issue of this route found no room.
  void refused(const std::string& route_id, core::WallTime at) {
    ++overflowed_;
    add_to(overflowed_of_route_, route_id);
    overflows_.push_back({route_id, true, at});
  }

  [[nodiscard]] std::size_t active() const noexcept { return active_; }
  /// Times the limits kept an issue from a group of its own.
  [[nodiscard]] std::uint64_t overflowed() const noexcept { return overflowed_; }
  void show(EachFigure each) const {
    using routing::show;
    show(active_of_route_, {"tocsin_router_groups", "groups with members", "route", {}, 0, false},
         each);
    show(overflowed_of_route_,
         {"tocsin_router_groups_overflow_total",
          "issues that went to an overflow group: too many groups or members",
          "route",
          {},
          0,
          true},
         each);
  }
  /// Since last asked.
  std::vector<Overflow> take_overflows() { return std::exchange(overflows_, {}); }

 private:
  const Config& limits_;
  CountBy active_of_route_;
  CountBy overflowed_of_route_;
  std::size_t active_ = 0;
  std::vector<Overflow> overflows_;
  std::uint64_t overflowed_ = 0;
};

}  // namespace tocsin::routing
