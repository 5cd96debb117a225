#include "routing/tables/turns.h"

#include <algorithm>
#include <chrono>

#include "routing/tree/route_tree.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

/// Old by this much, an issue of a group that need not wait comes from a backlog.
constexpr Duration kFresh = std::chrono::seconds(5);

}  // namespace

WallTime last_on_grid(WallTime first, Duration interval, WallTime now) {
  return now <= first ? first : first + interval * ((now - first) / interval);
}

void Turns::arrange(const Group& group) {
  if (const auto next = group.next_flush()) {
    agenda_.set(Due::flush_group, group.hash, *next);
  } else {
    agenda_.cancel(Due::flush_group, group.hash);
  }
}

void Turns::begin(Group& group, const IssueState& first, WallTime now) {
  group.running = false;
  group.absent_since.reset();
  group.last_tick.reset();
  group.urgent_at.reset();
  group.pulled_at.reset();
  const Duration wait = group.route->group_wait;
  const WallTime began = first.issue.starts_at;
  group.next_tick = began + wait <= now ? now : now + wait;
  group.held = behind_ && began + std::max(wait, kFresh) <= now;
  if (wait == Duration::zero()) at_once_.push_back(group.hash);
  arrange(group);
}

void Turns::no_later_than(Group& group, WallTime at) {
  group.next_tick = std::min(group.next_tick.value_or(at), at);
  arrange(group);
}

bool Turns::hurry(Group& group, Duration wait, WallTime now) {
  WallTime at = now + wait;
  if (group.last_urgent) at = std::max(at, *group.last_urgent + group.route->urgent_min_gap);
  if (group.next_flush() && at >= *group.next_flush()) return false;
  group.urgent_at = at;
  if (at <= now) at_once_.push_back(group.hash);
  arrange(group);
  return true;
}

bool Turns::pull(Group& group, WallTime at) {
  const bool one_run = group.labels.has("run_uid");
  if (!one_run && group.last_tick) at = std::max(at, *group.last_tick + kPullGap);
  if (!group.active() || at >= *group.next_flush()) return false;
  group.pulled_at = at;
  arrange(group);
  return true;
}

std::optional<WallTime> Turns::tick_for(Group& group, WallTime due, WallTime now) {
  if (!group.next_tick || *group.next_tick > now) return due;
  const WallTime newest = last_on_grid(*group.next_tick, group.route->group_interval, now);
  if (newest <= due) return newest;
  group.next_tick = newest;
  group.urgent_at.reset();
  group.pulled_at.reset();
  arrange(group);
  return std::nullopt;
}

void Turns::advance(Group& group, WallTime tick, WallTime now) {
  const Duration interval = group.route->group_interval;
  if (group.urgent_at && *group.urgent_at <= tick) {
    group.urgent_at.reset();
    group.last_urgent = tick;
  }
  if (group.pulled_at && *group.pulled_at <= tick) group.pulled_at.reset();
  // An urgent flush leaves the grid where it is, so that repeats stay on their multiples.
  if (!group.running || !group.next_tick) group.next_tick = tick;
  if (*group.next_tick <= tick) group.next_tick = *group.next_tick + interval;
  if (*group.next_tick <= now) {
    group.next_tick = last_on_grid(*group.next_tick, interval, now) + interval;
  }
  group.running = true;
  group.held = false;
  group.last_tick = tick;
  ++group.flush_seq;
}

void Turns::end(Group& group, WallTime at) {
  group.next_tick.reset();
  group.urgent_at.reset();
  group.pulled_at.reset();
  group.running = false;
  group.absent_since = at;
}

bool Turns::release(Group& group, WallTime now) {
  if (!std::exchange(group.held, false)) return false;
  if (group.next_tick) group.next_tick = std::max(*group.next_tick, now);
  arrange(group);
  return true;
}

}  // namespace tocsin::routing
