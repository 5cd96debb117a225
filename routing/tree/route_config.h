// The routing tree as it is written (docs/routing.md, The tree).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "core/time.h"
#include "routing/tree/escalation_config.h"
#include "routing/tree/flap_config.h"

namespace tocsin::routing {

/// One rung of a repeat ladder: `every`, as long as the oldest firing member is younger than
/// `until`.
struct RepeatStep {
  std::optional<core::Duration> until;
  core::Duration every = std::chrono::hours(4);
};

/// A node of the routing tree as written. What is not set is inherited from the parent; at the root
/// the defaults are group_by [job, run_uid], group_wait 30s, group_interval 5m, repeat_interval 4h.
struct RouteConfig {
  std::string id;
  std::vector<std::string> matchers;
  bool proceed = false;                              // key `continue`: try later siblings too
  std::vector<std::string> receivers;                // empty = inherited; mandatory at the root
  std::optional<std::vector<std::string>> group_by;  // {"..."} = by all labels
  std::optional<core::Duration> group_wait;
  std::optional<core::Duration> group_interval;
  std::optional<std::vector<RepeatStep>> repeat_interval;
  std::string immediate_on;  // matchers; a new member that matches pulls the flush forward
  std::optional<core::Duration> urgent_wait;
  std::optional<core::Duration> urgent_min_gap;
  EscalationConfig further;  // who is told beyond the receivers
  std::optional<FlapConfig> flap;
  // Names of time intervals. Of this route alone: not inherited, and none at the root.
  std::optional<std::vector<std::string>> mute_times;    // key `mute_time_intervals`
  std::optional<std::vector<std::string>> active_times;  // key `active_time_intervals`
  std::vector<RouteConfig> routes;
};

/// Reads the section `route` of the root map. Every problem is reported at its place, also names of
/// receivers that are not among `receivers`, and of time intervals not among `intervals`. Returns
/// whether the section is there.
bool read_route(config::Reader& root, RouteConfig& route, const std::vector<std::string>& receivers,
                const std::vector<std::string>& intervals = {});

/// A rule's `actions: [stop]`: a route of its own to these receivers, beside the tree: the tree
/// still decides about the same issue. Grouped by run and rule, no group_wait, new episodes at
/// once.
struct RuleActions {
  std::string rule;
  std::vector<std::string> receivers;
};

}  // namespace tocsin::routing
