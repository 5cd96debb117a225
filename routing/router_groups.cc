// Router: which groups an issue is a member of, their timers and their flushes (routing-and-actions
// §2.4–§2.6, §2.9).
#include <algorithm>
#include <utility>

#include "routing/router_impl.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

constexpr std::string_view kOverflowRule = "router_overflow";
constexpr Duration kLeastLogRetention = std::chrono::hours(24);
/// The generation is remembered as long as deliveries are kept (§5.2): a notification id of the
/// past must not come again.
constexpr Duration kGenerationRetention = std::chrono::hours(24 * 90);

bool told_in(const Group& group, const std::string& issue_key) {
  return std::any_of(group.logs.begin(), group.logs.end(), [&](const auto& entry) {
    return entry.second.told.count(issue_key) > 0 || entry.second.owed.count(issue_key) > 0;
  });
}

/// The job ended while the issue fired: it never recovered, so it is news although it is over. (A
/// rule that stops a job within group_wait would otherwise never be heard of.)
bool ended_with_its_job(const IssueState& state) {
  const core::Resolution how = state.issue.resolution;
  return !state.firing &&
         (how == core::Resolution::job_ended || how == core::Resolution::superseded);
}

core::Labels overflow_labels() { return {{"overflow", "true"}}; }

/// The last point of the grid that starts at `first` and is not after `now`.
WallTime last_on_grid(WallTime first, Duration interval, WallTime now) {
  return now <= first ? first : first + interval * ((now - first) / interval);
}

}  // namespace

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
    if (fresh || new_episode) hurry(group, state, now);
  }
  // Labels changed: groups it no longer belongs to are left, unless somebody was told there; those
  // hear of it until it resolves.
  const std::vector<Group*> joined = state.groups;
  for (Group* group : joined) {
    if (std::find(wanted.begin(), wanted.end(), group) != wanted.end()) continue;
    if (!told_in(*group, state.key)) leave(*group, state);
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
    const auto found = groups_.find(hash);
    if (found == groups_.end() || !told_in(*found->second, state.key)) continue;
    find_or_make(*leaf, labels, hash, false);
    wanted = true;
    if (!found->second->active()) activate(*found->second, state, now);
    join(*found->second, state);
    found->second->next_tick = std::min(found->second->next_tick.value_or(now), now);
    arrange(*found->second);
    touch(*found->second);
  }
  if (!wanted) ++stats_.orphan_resolves;
}

Group& Router::Impl::find_or_make(const Route& route, const core::Labels& labels,
                                  const std::string& hash, bool overflow) {
  auto& slot = groups_[hash];
  if (!slot) {
    slot = std::make_unique<Group>();
    slot->hash = hash;
    slot->route_id = route.id;
    slot->labels = labels;
    slot->overflow = overflow;
  }
  if (!slot->active()) {
    slot->key = group_key(route, labels);
    slot->grouping = route.grouping();
    slot->route = &route;
    hash_of_key_[route.id + '\x1f' + slot->key] = slot->hash;
  }
  return *slot;
}

Group& Router::Impl::group_for(IssueState& state, const Route& route, const core::Labels& labels,
                               WallTime now) {
  for (Group* group : state.groups) {
    if (group->route == &route && (group->overflow || group->labels == labels)) return *group;
  }
  const std::string hash = group_hash(route, labels);
  const auto found = groups_.find(hash);
  const bool active = found != groups_.end() && found->second->active();
  const Config& limits = options_.limits;
  const bool room = active ? found->second->members.size() < limits.max_members_per_group
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
  const bool old = first.issue.starts_at + group.route->group_wait <= now;
  group.held = old && behind_since_.has_value();
  if (group.held) {
    group.next_tick = std::max(now, *behind_since_ + options_.limits.catchup_hold_max);
  } else {
    group.next_tick = old ? now : now + group.route->group_wait;
  }
  arrange(group);
  touch(group);
}

void Router::Impl::join(Group& group, IssueState& state) {
  group.members[state.key] = &state;
  state.groups.push_back(&group);
  touch("member/" + group.hash + "/" + state.key);
}

void Router::Impl::leave(Group& group, IssueState& state) {
  group.members.erase(state.key);
  state.groups.erase(std::remove(state.groups.begin(), state.groups.end(), &group),
                     state.groups.end());
  touch("member/" + group.hash + "/" + state.key);
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
  arrange(group);
  touch(group);
}

void Router::Impl::arrange(Group& group) {
  if (const auto next = group.next_flush()) {
    agenda_.set(Due::flush_group, group.hash, *next);
  } else {
    agenda_.cancel(Due::flush_group, group.hash);
  }
}

// ---- flushes

void Router::Impl::flush_due(const Agenda::Entry& due, WallTime now) {
  Group& group = *groups_.at(due.key);
  WallTime tick = due.at;
  if (group.next_tick && *group.next_tick <= now) {
    // Missed ticks collapse into the newest one; what else is due before it comes first.
    tick = last_on_grid(*group.next_tick, group.route->group_interval, now);
    if (tick > due.at) {
      group.next_tick = tick;
      group.urgent_at.reset();
      arrange(group);
      return;
    }
  }
  flush(group, tick, now);
}

void Router::Impl::flush(Group& group, WallTime tick, WallTime now) {
  ++stats_.flushes;
  out_.flush_delays.push_back(now - tick);
  const std::vector<FlushMember> members = freeze(group, tick);
  for (const Integration* integration : group.route->integrations) {
    tell(group, *integration, members, tick, now);
  }
  for (const FlushMember& member : members) {
    const std::string& key = member.state->key;
    const bool owed = std::any_of(group.logs.begin(), group.logs.end(),
                                  [&](const auto& log) { return log.second.owed.count(key) > 0; });
    const bool lost = member.firing && (member.strayed || ended_with_its_job(*member.state)) &&
                      !told_in(group, key);
    if ((!member.firing && !owed) || lost) leave(group, *group.members.at(key));
  }
  set_next(group, tick, now);
  if (group.members.empty()) dissolve(group, tick);
  arrange(group);
  touch(group);
}

/// Do the issue's present labels lead to this group?
bool Router::Impl::belongs(const Group& group, IssueState& state) const {
  if (state.leaves.empty()) tree_.match(state.issue.labels, state.leaves);
  return std::any_of(state.leaves.begin(), state.leaves.end(), [&](const Route* leaf) {
    return leaf == group.route &&
           (group.overflow || leaf->group_labels(state.issue.labels) == group.labels);
  });
}

std::vector<FlushMember> Router::Impl::freeze(const Group& group, WallTime tick) {
  std::vector<FlushMember> members;
  members.reserve(group.members.size());
  for (const auto& [key, state] : group.members) {
    FlushMember member;
    member.state = state;
    const bool untold = ended_with_its_job(*state) && !told_in(group, key);
    member.firing = state->firing || untold || *state->issue.ends_at > tick;
    member.strayed = !belongs(group, *state);
    for (const Suppressor& suppressor : options_.suppressors) {
      if (auto reason = suppressor(state->issue, tick))
        member.reasons.push_back(std::move(*reason));
    }
    stats_.suppressed += member.reasons.size();
    members.push_back(std::move(member));
  }
  return members;
}

void Router::Impl::tell(Group& group, const Integration& integration,
                        const std::vector<FlushMember>& members, WallTime tick, WallTime now) {
  const auto known = group.logs.find(integration.id);
  TellLog log = known == group.logs.end() ? TellLog{} : known->second;
  stats_.owed -= log.owed.size();
  const FlushContext context{*group.route, integration, tree_.filter_of(integration), tick,
                             options_.limits.owed_max_age};
  const Verdict verdict = decide(members, context, log, stats_.owed_dropped);
  stats_.owed += log.owed.size();
  if (verdict.kind) {
    out_.notifications.push_back(
        compose(group, context, verdict, log, now, options_.config_version));
  }
  out_.decisions.push_back({integration.id, group.route_id, group.key, verdict.reason});
  if (known == group.logs.end() && !verdict.kind) return;  // it was never told anything here
  if (known != group.logs.end() && log == known->second) return;
  group.logs[integration.id] = std::move(log);
  touch("log/" + group.hash + "/" + integration.id);
}

void Router::Impl::set_next(Group& group, WallTime tick, WallTime now) {
  const Duration interval = group.route->group_interval;
  if (group.urgent_at && *group.urgent_at <= tick) {
    group.urgent_at.reset();
    group.last_urgent = tick;
  }
  // An urgent flush leaves the grid where it is, so that repeats stay on their multiples (W10).
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

void Router::Impl::forget_group(const Agenda::Entry& due) {
  Group& group = *groups_.at(due.key);
  if (!group.members.empty() || !group.absent_since) return;
  if (const WallTime end = *group.absent_since + kGenerationRetention; end > due.at) {
    for (const auto& [integration, log] : group.logs) {
      touch("log/" + group.hash + "/" + integration);
      stats_.owed -= log.owed.size();
    }
    group.logs.clear();
    agenda_.set(Due::forget_group, group.hash, end);
    return;
  }
  erase_group(due.key);
}

void Router::Impl::erase_group(const std::string& hash) {
  const auto found = groups_.find(hash);
  Group& group = *found->second;
  touch(group);
  for (const auto& [integration, log] : group.logs) touch("log/" + hash + "/" + integration);
  hash_of_key_.erase(group.route_id + '\x1f' + group.key);
  agenda_.cancel(Due::flush_group, hash);
  agenda_.cancel(Due::forget_group, hash);
  groups_.erase(found);
}

}  // namespace tocsin::routing
