// Router: which groups an issue is a member of, and the life of groups (docs/routing.md).
#include <algorithm>
#include <utility>

#include "routing/router_impl.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

constexpr std::string_view kOverflowRule = "router_overflow";
constexpr Duration kLeastLogRetention = std::chrono::hours(24);
/// The generation is remembered as long as deliveries are kept: a notification id of the
/// past must not come again.
constexpr Duration kGenerationRetention = std::chrono::hours(24 * 90);

/// Old by this much, an issue of a group that need not wait comes from a backlog.
constexpr Duration kFresh = std::chrono::seconds(5);

core::Labels overflow_labels() { return {{"overflow", "true"}}; }

}  // namespace

bool told_in(const Group& group, const std::string& issue_key) {
  return std::any_of(group.logs.begin(), group.logs.end(), [&](const auto& entry) {
    return entry.second.told.count(issue_key) > 0 || entry.second.owed.count(issue_key) > 0;
  });
}

// ---- membership

void Router::Impl::route(IssueState& state, WallTime now, bool new_episode) {
  if (state.issue.shadow) return;  // recorded, never told
  if (state.leaves.empty()) tree_.match(state.issue.labels, state.leaves);
  std::vector<Group*> wanted;
  for (const Route* leaf : state.leaves) {
    Group& group = group_for(state, *leaf, leaf->group_labels(state.issue.labels), now);
    wanted.push_back(&group);
    const bool fresh = group.members.count(state.key) == 0;
    if (!group.active()) activate(group, state, now);
    if (fresh) join(group, state);
    if (Group::Member& member = group.members.at(state.key); member.strayed) {
      member.strayed = false;
      change(group);
    }
    if (fresh || new_episode) hurry(group, state, now);
  }
  // Labels changed: groups it no longer belongs to are left, unless somebody was told there; those
  // hear of it until it resolves.
  const std::vector<Group*> joined = state.groups;
  for (Group* group : joined) {
    if (std::find(wanted.begin(), wanted.end(), group) != wanted.end()) continue;
    if (!told_in(*group, state.key)) {
      leave(*group, state);
    } else if (Group::Member& member = group->members.at(state.key); !member.strayed) {
      member.strayed = true;
      change(*group);
    }
  }
}

void Router::Impl::route_resolved(IssueState& state, WallTime now) {
  if (!state.groups.empty()) return;  // its groups see it at their next flush
  if (state.issue.shadow) return;
  if (state.leaves.empty()) tree_.match(state.issue.labels, state.leaves);
  bool wanted = false;
  for (const Route* leaf : state.leaves) {
    const core::Labels labels = leaf->group_labels(state.issue.labels);
    const std::string hash = group_hash(*leaf, labels);
    const Group* found = groups_.find(hash);
    if (found == nullptr || !told_in(*found, state.key)) continue;
    Group& group = find_or_make(*leaf, labels, hash, false);
    wanted = true;
    if (!group.active()) activate(group, state, now);
    join(group, state);
    group.members.at(state.key).strayed = false;
    group.next_tick = std::min(group.next_tick.value_or(now), now);
    arrange(group);
    touch(group);
  }
  if (!wanted) ++stats_.orphan_resolves;
}

Group& Router::Impl::find_or_make(const Route& route, const core::Labels& labels,
                                  const std::string& hash, bool overflow) {
  Group& group = groups_.make(hash);
  if (group.hash.empty()) {
    group.hash = hash;
    group.route_id = route.id;
    group.labels = labels;
    group.overflow = overflow;
  }
  if (!group.active()) {
    group.key = group_key(route, labels);
    group.grouping = route.grouping();
    group.route = &route;
    hash_of_key_[route.id + '\x1f' + group.key] = group.hash;
  }
  return group;
}

Group& Router::Impl::group_for(IssueState& state, const Route& route, const core::Labels& labels,
                               WallTime now) {
  for (Group* group : state.groups) {
    if (group->route == &route && (group->overflow || group->labels == labels)) return *group;
  }
  const std::string hash = group_hash(route, labels);
  const Group* found = groups_.find(hash);
  const bool active = found != nullptr && found->active();
  const Config& limits = options_.limits;
  const bool room = active ? found->members.size() < limits.max_members_per_group
                           : active_groups_ < limits.max_groups &&
                                 active_of_route_[route.id] < limits.max_groups_per_route;
  if (room) return find_or_make(route, labels, hash, false);
  ++stats_.groups_overflow;
  raise(kOverflowRule, {{"route", route.id}},
        "route " + route.id + " has more groups or members than allowed; see its overflow group",
        now);
  return find_or_make(route, overflow_labels(), group_hash(route, overflow_labels()), true);
}

void Router::Impl::activate(Group& group, const IssueState& first, WallTime now) {
  ++active_groups_;
  ++active_of_route_[group.route_id];
  ++group.generation;
  group.created_at = now;
  group.running = false;
  group.absent_since.reset();
  group.last_tick.reset();
  group.urgent_at.reset();
  agenda_.cancel(Due::forget_group, group.hash);
  const Duration wait = group.route->group_wait;
  const WallTime began = first.issue.starts_at;
  group.next_tick = began + wait <= now ? now : now + wait;
  group.held = catchup_.behind() && began + std::max(wait, kFresh) <= now;
  if (wait == Duration::zero()) at_once_.push_back(group.hash);
  arrange(group);
  touch(group);
}

void Router::Impl::join(Group& group, IssueState& state) {
  group.members[state.key] = {&state, false};
  state.groups.push_back(&group);
  touch(state);
  change(group);
}

void Router::Impl::leave(Group& group, IssueState& state) {
  group.members.erase(state.key);
  state.groups.erase(std::remove(state.groups.begin(), state.groups.end(), &group),
                     state.groups.end());
  touch(state);
  change(group);
  if (!state.firing && state.groups.empty()) {
    agenda_.set(Due::forget_issue, state.key, state.last_transition + options_.limits.retention);
  }
}

void Router::Impl::hurry(Group& group, const IssueState& state, WallTime now) {
  const Route& route = *group.route;
  if (!route.immediate_on || !route.immediate_on->matches(state.issue.labels)) return;
  WallTime at = now + route.urgent_wait;
  if (group.last_urgent) at = std::max(at, *group.last_urgent + route.urgent_min_gap);
  if (group.next_flush() && at >= *group.next_flush()) return;
  group.urgent_at = at;
  if (at <= now) at_once_.push_back(group.hash);
  arrange(group);
  touch(group);
}

/// What a flush would decide may be different now.
void Router::Impl::change(Group& group) {
  const bool known = std::exchange(group.changed, true) && !group.unsaved;
  group.unsaved = false;
  if (!known) touch(group);
}

/// The far side has not heard that these are over: they are members until it has.
void Router::Impl::tell_again(Group& group, TellLog& log, const std::vector<std::string>& keys,
                              WallTime now) {
  for (const std::string& key : keys) {
    IssueState* found = issues_.find(key);
    if (found == nullptr || group.route == nullptr) {
      log.told.erase(key);  // forgotten: nothing is left to tell of it
      continue;
    }
    if (!group.active()) {
      find_or_make(*group.route, group.labels, group.hash, group.overflow);
      activate(group, *found, now);
      group.next_tick = now;
      arrange(group);
    }
    if (group.members.count(key) == 0) join(group, *found);
    agenda_.cancel(Due::forget_issue, key);
  }
}

void Router::Impl::change_groups_of(const IssueState& state) {
  for (Group* group : state.groups) change(*group);
}

void Router::Impl::arrange(Group& group) {
  if (const auto next = group.next_flush()) {
    agenda_.set(Due::flush_group, group.hash, *next);
  } else {
    agenda_.cancel(Due::flush_group, group.hash);
  }
}

/// Do the issue's present labels lead to this group?
bool Router::Impl::belongs(const Group& group, IssueState& state) const {
  if (state.leaves.empty()) tree_.match(state.issue.labels, state.leaves);
  return std::any_of(state.leaves.begin(), state.leaves.end(), [&](const Route* leaf) {
    return leaf == group.route &&
           (group.overflow || leaf->group_labels(state.issue.labels) == group.labels);
  });
}

Duration Router::Impl::log_retention(const Group& group) const {
  return group.route == nullptr ? kLeastLogRetention
                                : std::max(2 * group.route->longest_repeat(), kLeastLogRetention);
}

void Router::Impl::dissolve(Group& group, WallTime at) {
  group.next_tick.reset();
  group.urgent_at.reset();
  group.running = false;
  group.held = false;
  group.absent_since = at;
  --active_groups_;
  --active_of_route_[group.route_id];
  agenda_.set(Due::forget_group, group.hash, at + log_retention(group));
  if (group.overflow) clear(kOverflowRule, {{"route", group.route_id}}, at);
}

void Router::Impl::drop_logs(Group& group) {
  for (const auto& [integration, log] : group.logs) {
    touch_log(group.hash, integration);
    stats_.owed -= log.owed.size();
    for (const auto& one : log.pending) undelivered_.erase(undelivered_.find(one.decided_at));
  }
  group.logs.clear();
}

void Router::Impl::forget_group(const Agenda::Entry& due) {
  Group& group = groups_.at(due.key);
  if (!group.members.empty() || !group.absent_since) return;
  if (const WallTime end = *group.absent_since + kGenerationRetention; end > due.at) {
    drop_logs(group);
    agenda_.set(Due::forget_group, group.hash, end);
    return;
  }
  erase_group(due.key);
}

void Router::Impl::erase_group(const std::string& hash) {
  Group& group = groups_.at(hash);
  drop_logs(group);
  hash_of_key_.erase(group.route_id + '\x1f' + group.key);
  agenda_.cancel(Due::flush_group, hash);
  agenda_.cancel(Due::forget_group, hash);
  groups_.erase(hash);
}

}  // namespace tocsin::routing
