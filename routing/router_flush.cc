// Router: flushes of groups (docs/routing.md).
#include <algorithm>
#include <utility>

#include "routing/router_impl.h"
#include "routing/size.h"
#include "routing/told.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

/// The job ended while the issue fired: it never recovered, so it is news although it is over. (A
/// rule that stops a job within group_wait would otherwise never be heard of.) But an action of a
/// rule acts on the run, and there another attempt runs by now.
bool ended_with_its_job(const Group& group, const IssueState& state) {
  if (state.firing) return false;
  if (state.issue.resolution == core::Resolution::superseded) return !group.route->beside;
  return state.issue.resolution == core::Resolution::job_ended;
}

/// A tick that comes later than this tells what is true when it comes.
constexpr Duration kLate = std::chrono::seconds(1);

/// The last point of the grid that starts at `first` and is not after `now`.
WallTime last_on_grid(WallTime first, Duration interval, WallTime now) {
  return now <= first ? first : first + interval * ((now - first) / interval);
}

}  // namespace

void Router::Impl::flush_due(const Agenda::Entry& due, WallTime now) {
  Group& group = groups_.at(due.key);
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
  if (nothing_to_decide(group, tick)) {
    for (const Integration* integration : group.route->integrations) {
      out_.decisions.push_back({integration->id, group.route_id, group.key, "none"});
    }
    set_next(group, tick, now);
    group.unsaved = true;  // its grid follows from the stored point as well
    arrange(group);
    return;
  }
  const std::vector<FlushMember> members = freeze(group, now - tick > kLate ? now : tick);
  examined_ += members.size() * std::max<std::size_t>(1, group.route->integrations.size());
  for (const Integration* integration : group.route->integrations) {
    tell(group, *integration, members, tick, now);
  }
  part(group, members);
  set_next(group, tick, now);
  if (group.members.empty()) dissolve(group, tick);
  arrange(group);
  group.unsaved = false;
  touch(group);
}

/// Nothing has happened to the group since it was last looked at, and no repeat is due.
bool Router::Impl::nothing_to_decide(const Group& group, WallTime tick) const {
  if (group.changed || !group.running) return false;
  const WallTime since = group.last_tick.value_or(group.created_at);
  const bool differs =
      std::any_of(options_.suppressors.begin(), options_.suppressors.end(),
                  [&](const auto& one) { return one->may_differ(group.labels, since, tick); });
  if (differs) return false;
  const Duration repeat = group.route->shortest_repeat();
  return std::all_of(group.route->integrations.begin(), group.route->integrations.end(),
                     [&](const Integration* integration) {
                       const auto found = group.logs.find(integration->id);
                       if (found == group.logs.end()) return true;
                       const TellLog& log = found->second;
                       const bool quiet =
                           log.told.empty() || !log.last_tick || tick - *log.last_tick < repeat;
                       return log.owed.empty() && quiet;
                     });
}

/// Did the timer run on beyond its record because there was nothing to record?
bool Router::Impl::restored_quiet(const Group& group, WallTime now) const {
  if (!group.next_tick || *group.next_tick > now) return false;
  return nothing_to_decide(group, last_on_grid(*group.next_tick, group.route->group_interval, now));
}

/// Members of which nobody has to hear any more leave.
void Router::Impl::part(Group& group, const std::vector<FlushMember>& members) {
  bool again = false;
  for (const FlushMember& member : members) {
    IssueState& state = *group.members.at(member.state->key).state;
    const bool owed = std::any_of(group.logs.begin(), group.logs.end(), [&](const auto& log) {
      return log.second.owed.count(state.key) > 0;
    });
    const bool lost = member.firing && (member.strayed || ended_with_its_job(group, state)) &&
                      !told_in(group, state.key);
    if (!state.past.empty()) forget_past(state);
    if ((!member.firing && !owed) || lost) {
      leave(group, state);
    } else {
      again = again || !state.firing;  // it is over for a later tick
    }
  }
  group.changed = again;
}

/// Only what some integration has still to hear is kept.
void Router::Impl::forget_past(IssueState& state) {
  const auto needed = [&](std::uint64_t episode) {
    return std::any_of(state.groups.begin(), state.groups.end(), [&](const Group* group) {
      return std::any_of(group->logs.begin(), group->logs.end(), [&](const auto& log) {
        const auto told = log.second.told.find(state.key);
        const auto owed = log.second.owed.find(state.key);
        return (told != log.second.told.end() && told->second.episode == episode) ||
               (owed != log.second.owed.end() && owed->second.episode == episode);
      });
    });
  };
  const auto gone =
      std::erase_if(state.past, [&](const auto& entry) { return !needed(entry.first); });
  if (gone > 0) touch(state);
}

std::vector<FlushMember> Router::Impl::freeze(const Group& group, WallTime tick) {
  std::vector<FlushMember> members;
  members.reserve(group.members.size());
  for (const auto& [key, joined] : group.members) {
    const IssueState* state = joined.state;
    FlushMember member;
    member.state = state;
    const bool untold = ended_with_its_job(group, *state) && !told_in(group, key);
    member.firing = state->firing || untold || *state->issue.ends_at > tick;
    member.strayed = joined.strayed;
    for (const auto& suppressor : options_.suppressors) {
      if (auto reason = suppressor->reason(state->issue, known_, tick))
        member.reasons.push_back(std::move(*reason));
    }
    stats_.suppressed += member.reasons.size();
    members.push_back(std::move(member));
  }
  return members;
}

void Router::Impl::send(TellLog& log, Verdict& verdict, core::Notification notification) {
  for (const auto& one : log.pending) undelivered_.erase(undelivered_.find(one.decided_at));
  remember_sent(log, notification, std::move(verdict.over));
  for (const auto& one : log.pending) undelivered_.insert(one.decided_at);
  ++stats_.notifications;
  stats_.truncated += notification.truncated;
  sent_bytes_ += approximate_bytes(notification);
  out_.notifications.push_back(std::move(notification));
}

void Router::Impl::tell(Group& group, const Integration& integration,
                        const std::vector<FlushMember>& members, WallTime tick, WallTime now) {
  const auto known = group.logs.find(integration.id);
  TellLog log = known == group.logs.end() ? TellLog{} : known->second;
  stats_.owed -= log.owed.size();
  const FlushContext context{*group.route, integration, tree_.filter_of(integration), tick,
                             options_.limits.owed_max_age};
  Verdict verdict = decide(members, context, log, stats_.owed_dropped);
  stats_.owed += log.owed.size();
  if (verdict.kind) {
    send(log, verdict, compose(group, context, verdict, log, now, options_.config_version));
  }
  out_.decisions.push_back({integration.id, group.route_id, group.key, verdict.reason});
  if (known == group.logs.end() && !verdict.kind) return;  // it was never told anything here
  if (known != group.logs.end() && log == known->second) return;
  group.logs[integration.id] = std::move(log);
  touch_log(group.hash, integration.id);
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

}  // namespace tocsin::routing
