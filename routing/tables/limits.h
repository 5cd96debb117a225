// How long the router remembers, and how much (docs/routing.md, Limits).
#pragma once

#include <cstdint>

#include "config/config.h"
#include "core/time.h"

namespace tocsin::routing {

/// The part of the section `router` that belongs to deciding.
struct Config {
  core::Duration resolve_timeout = std::chrono::minutes(5);
  core::Duration dedup_window = std::chrono::hours(24);
  std::uint64_t dedup_max = 1'000'000;
  core::Duration max_future = std::chrono::minutes(5);
  core::Duration retention = std::chrono::hours(24);  // of resolved issues and ended runs
  core::Duration owed_max_age = std::chrono::hours(168);
  core::Duration catchup_hold_max = std::chrono::seconds(30);
  core::Duration inhibit_settle = std::chrono::seconds(2);
  core::Duration ack_timeout = std::chrono::hours(24);
  bool close_regrouped = true;      // on_regroup
  core::Duration job_lost_after{};  // 0 = never
  std::uint64_t max_groups = 50'000;
  std::uint64_t max_groups_per_route = 50'000;
  std::uint64_t max_members_per_group = 10'000;
};
/// Call it inside `section("router", …)`; other rooms may read their keys from the same map.
void read(config::Reader& in, Config& cfg);

}  // namespace tocsin::routing
