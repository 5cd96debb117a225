#include "routing/flush/teller.h"

#include <algorithm>
#include <iterator>

#include "routing/flush/message_parts.h"
#include "routing/flush/message_runs.h"
#include "routing/tables/size.h"
#include "routing/tables/told.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

/// A tick that comes later than this tells what is true when it comes.
constexpr Duration kLate = std::chrono::seconds(1);

}  // namespace

/// The issue is over and nevertheless news: it ended with its job, an attempt or its rule without having recovered, or
/// it had Tocsin stop the run. (A rule that stops a job within group_wait would otherwise never be heard of, and a stop
/// needs its reason although the reason has passed.) But an action of a rule acts on the run, and there another attempt
/// runs by now, or no such rule.
bool Teller::over_and_news(const Group& group, const IssueState& state) const {
  if (state.firing) return false;
  switch (state.issue.resolution) {
    case core::Resolution::job_ended:
      return true;
    case core::Resolution::recovered:
      return !group.route->beside && runs_.stopped_for(state.issue);
    case core::Resolution::superseded:
    case core::Resolution::rule_removed:
    case core::Resolution::rule_changed:
      return !group.route->beside;
    default:
      return false;
  }
}

void Teller::flush_due(const std::string& hash, WallTime due, WallTime now) {
  Group& group = *groups_.find(hash);
  if (const auto tick = turns_.tick_for(group, due, now)) flush(group, *tick, now);
}

void Teller::flush(Group& group, WallTime tick, WallTime now) {
  ++counted_.flushes;
  add_to(flushes_of_route_, group.route_id);
  flush_delays_.push_back({group.route_id, now - tick});
  if (nothing_to_decide(group, tick, now)) {
    for (const Integration* integration : group.route->integrations) {
      note(group, integration->id, "none");
    }
    turns_.advance(group, tick, now);
    group.unsaved = true;  // its grid follows from the stored point as well
    turns_.arrange(group);
    arrange(group, now);
    return;
  }
  const std::vector<FlushMember> members = freeze(group, now - tick > kLate ? now : tick, now);
  examined_ += members.size() * std::max<std::size_t>(1, group.route->integrations.size());
  const Look look{group, members, tick, now};
  tell_all(look);
  part(group, members);
  turns_.advance(group, tick, now);
  note_suppressed(group, members);
  if (group.members.empty()) groups_.dissolve(group, tick);
  turns_.arrange(group);
  arrange(group, look.at());
  group.unsaved = false;
  groups_.touch(group);
}

/// Nothing has happened to the group since it was last looked at, and no repeat is due. What holds its
/// issues back may have changed until `until`: a tick that comes late sees that too.
bool Teller::nothing_to_decide(const Group& group, WallTime tick, WallTime until) const {
  if (group.changed || !group.running) return false;
  const WallTime since = group.last_tick.value_or(group.created_at);
  const auto any_member = [&](core::FunctionRef<bool(const core::Issue&)> is) {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](const auto& entry) { return is(entry.second.state->issue.whole()); });
  };
  const bool differs =
      std::any_of(suppressors_.begin(), suppressors_.end(),
                  [&](const Suppressor* one) { return one->may_differ(any_member, since, until); });
  if (differs || times_.may_differ(*group.route, since, until) || asks_for_more(group, until))
    return false;
  const Duration repeat = group.route->shortest_repeat();
  return std::all_of(group.logs->begin(), group.logs->end(), [&](const auto& entry) {
    const TellLog& log = entry.second;
    const bool quiet = log.told.empty() || !log.last_tick || tick - *log.last_tick < repeat;
    return log.owed.empty() && quiet;
  });
}

std::optional<WallTime> Teller::passed_quietly(const Group& group, WallTime now) const {
  const auto due = group.next_flush();
  if (!due || *due > now) return std::nullopt;
  const bool on_grid = *due == *group.next_tick;
  const WallTime tick = on_grid ? last_on_grid(*due, group.route->group_interval, now) : *due;
  return nothing_to_decide(group, tick, tick) ? std::optional(tick) : std::nullopt;
}

std::vector<FlushMember> Teller::freeze(const Group& group, WallTime tick, WallTime now) {
  std::vector<FlushMember> members;
  members.reserve(group.members.size());
  std::vector<Suppression> of_route;
  times_.reasons(*group.route, tick, of_route);
  std::vector<const Suppressor*> asked;
  std::copy_if(suppressors_.begin(), suppressors_.end(), std::back_inserter(asked),
               [](const Suppressor* one) { return one->holds_any(); });
  for (const auto& [key, joined] : group.members) {
    const IssueState* state = joined.state;
    FlushMember member;
    member.state = state;
    const bool untold = over_and_news(group, *state) && !told_in(*group.logs, state->key);
    // What ended since the tick fired at it. An end that is still to come is one by a clock ahead of
    // ours: waiting for it would keep back the end, and what is folded behind it, for as long.
    const bool ended_since =
        !state->firing && *state->issue.ends_at > tick && *state->issue.ends_at <= now;
    member.firing = state->firing || untold || ended_since;
    member.over = member.firing && !state->firing;
    member.strayed = joined.strayed;
    if (flaps_.damped(*state, *group.route, now)) {
      member.flapping = true;
      member.held = !member.firing;
      member.firing = true;
    }
    if (const AckState* ack = acks_.of(*state)) member.ack = &ack->told;
    const WallTime since = group.last_tick.value_or(group.created_at);
    if (!asked.empty()) {
      const core::Issue issue = state->issue.whole();
      for (const Suppressor* suppressor : asked) {
        member.reminded = member.reminded || suppressor->reminds(issue, since, tick);
        suppressor->reasons(issue, tick, member.reasons);
      }
    }
    member.reasons.insert(member.reasons.end(), of_route.begin(), of_route.end());
    counted_.suppressed += member.reasons.size();
    for (const Suppression& one : member.reasons) {
      add_to(suppressed_by_, kind_of_reason(one.reason));
    }
    counted_.muted += of_route.size();
    counted_.inhibited += static_cast<std::uint64_t>(
        std::count_if(member.reasons.begin(), member.reasons.end(),
                      [](const Suppression& one) { return one.reason.starts_with(kInhibition); }));
    if (member.ack != nullptr && member.firing) add_to(suppressed_by_, "ack");
    if (member.held) add_to(suppressed_by_, "flap");
    members.push_back(std::move(member));
  }
  return members;
}

WallTime Teller::Look::at() const { return now - tick > kLate ? now : tick; }

std::string Teller::tell(const Look& look, const Integration& integration, const Occasion* occasion,
                         bool further) {
  std::string reason = "none";
  log_.change(look.group.hash, integration.id, [&](TellLog& log) {
    const FlushContext context{*look.group.route,
                               integration,
                               tree_.filter_of(integration),
                               look.tick,
                               options_.limits.owed_max_age,
                               occasion,
                               further};
    log.by_issue = integration.every_issue;
    std::uint64_t dropped = 0;
    FlushDecision decision = decide(look.members, context, log, dropped);
    counted_.owed_dropped += dropped;
    if (dropped > 0) add_to(owed_dropped_of_, integration.id, dropped);
    note(look.group, integration.id, decision.reason);
    counted_.ends_deferred += decision.ends_deferred;
    counted_.ends_dropped += decision.ends_dropped;
    add_to(ends_deferred_of_, integration.id, decision.ends_deferred);
    add_to(ends_dropped_of_, integration.id, decision.ends_dropped);
    const bool changed = decision.changed;
    if (decision.kind) reason = decision.reason;
    if (decision.kind) say(look.group, context, std::move(decision), log, look.now);
    return changed;
  });
  return reason;
}

/// A message, or where each issue is told by itself as many as that takes.
void Teller::say(const Group& group, const FlushContext& context, FlushDecision decision,
                 TellLog& log, WallTime now) {
  if (!context.integration.every_issue) {
    return send(log, decision,
                compose(group, context, decision, log, now, options_.config_version));
  }
  for (FlushDecision& part : in_parts(std::move(decision), context, log)) {
    log.seq = part.seq;
    send(log, part, compose(group, context, part, log, now, options_.config_version));
  }
}

void Teller::send(TellLog& log, FlushDecision& decision, core::Notification notification) {
  remember_sent(log, notification, std::move(decision.over));
  ++counted_.notifications;
  counted_.truncated += notification.truncated;
  sent_bytes_ += approximate_bytes(notification);
  notifications_.push_back(std::move(notification));
}

void Teller::note(const Group& group, const std::string& integration, std::string reason) {
  decisions_.push_back({integration, group.route_id, group.key, std::move(reason)});
}

/// Members of which nobody has to hear any more leave.
void Teller::part(Group& group, const std::vector<FlushMember>& members) {
  bool again = false;
  for (const FlushMember& member : members) {
    IssueState& state = *group.members.at(member.state->key).state;
    const bool owed = std::any_of(group.logs->begin(), group.logs->end(), [&](const auto& log) {
      return log.second.owed.count(state.key) > 0;
    });
    const bool lost = member.firing && (member.strayed || over_and_news(group, state)) &&
                      !told_in(*group.logs, state.key);
    if (!state.past.empty()) forget_past(state);
    if ((!member.firing && !owed) || lost) {
      groups_.leave(group, state);
    } else {
      again = again || !state.firing;  // it is over for a later tick
    }
  }
  group.changed = again;
}

void Teller::note_suppressed(const Group& group, const std::vector<FlushMember>& members) {
  const auto count = std::count_if(members.begin(), members.end(), [](const FlushMember& member) {
    return member.firing && !member.reasons.empty();
  });
  if (count == 0) {
    suppressed_in_.erase(group.hash);
  } else {
    suppressed_in_[group.hash] = static_cast<std::uint64_t>(count);
  }
}

/// Only what some integration has still to hear is kept.
void Teller::forget_past(IssueState& state) {
  const auto gone = std::erase_if(state.past, [&](const auto& entry) {
    return std::none_of(state.groups.begin(), state.groups.end(), [&](const Group* group) {
      return concerns(*group->logs, state.key, entry.first);
    });
  });
  if (gone > 0) issues_.touch(state);
}

void Teller::close(const Group& group, const std::string& integration_id, WallTime now) {
  const Integration* integration = tree_.find_integration(integration_id);
  log_.change(group.hash, integration_id, [&](TellLog& log) {
    const bool silent = integration == nullptr || !integration->enabled || !integration->stateful ||
                        !integration->send_resolved || !incident_open(log) ||
                        !options_.limits.close_regrouped || (log.told.empty() && log.owed.empty());
    FlushDecision decision;
    decision.reason = "regrouped";
    decision.kind = core::NotificationKind::close;
    for (const auto& [key, member] : group.members) {
      if (const auto told = log.told.find(member.state->key); told != log.told.end()) {
        decision.resolved.push_back({member.state, told->second.episode, false});
      } else if (const auto owed = log.owed.find(member.state->key); owed != log.owed.end()) {
        decision.resolved.push_back({member.state, owed->second.episode, false});
      }
    }
    log.told.clear();
    log.owed.clear();
    if (silent) return true;
    ++log.seq;
    const Route none{};
    const FlushContext context{none, *integration, nullptr, now, {}, nullptr, false};
    note(group, integration_id, decision.reason);
    say(group, context, std::move(decision), log, now);
    return true;
  });
}

bool Teller::spent() const {
  const RouterOptions::Budget& budget = options_.budget;
  return notifications_.size() >= budget.notifications || sent_bytes_ >= budget.bytes ||
         examined_ >= budget.members;
}

void Teller::take(Output& out) {
  for (core::Notification& one : notifications_) add_runs(one, runs_);
  out.notifications = std::exchange(notifications_, {});
  out.decisions = std::exchange(decisions_, {});
  out.flush_delays = std::exchange(flush_delays_, {});
  out.further = std::exchange(further_, {});
  sent_bytes_ = 0;
}

void Teller::count(Stats& stats) const {
  stats.flushes = counted_.flushes;
  stats.suppressed = counted_.suppressed;
  stats.inhibited = counted_.inhibited;
  stats.muted = counted_.muted;
  stats.owed_dropped = counted_.owed_dropped;
  stats.ends_deferred = counted_.ends_deferred;
  stats.ends_dropped = counted_.ends_dropped;
  stats.notifications = counted_.notifications;
  stats.truncated = counted_.truncated;
}

void Teller::show(EachFigure each) const {
  using routing::show;
  show(flushes_of_route_,
       {"tocsin_router_group_flushes_total", "looks at a group", "route", {}, 0, true}, each);
  show(suppressed_by_,
       {"tocsin_router_suppressed_total",
        "suppressed members, per flush and reason",
        "reason",
        {},
        0,
        true},
       each);
  show(owed_dropped_of_,
       {"tocsin_router_owed_resolves_dropped_total",
        "resolves that waited longer than owed_max_age",
        "integration",
        {},
        0,
        true},
       each);
  show(ends_deferred_of_,
       {"tocsin_router_ends_deferred_total",
        "ends of suppressed issues that wait: resolve_when_suppressed is defer",
        "integration",
        {},
        0,
        true},
       each);
  show(ends_dropped_of_,
       {"tocsin_router_ends_dropped_total",
        "ends of suppressed issues that are never told: resolve_when_suppressed is drop",
        "integration",
        {},
        0,
        true},
       each);
  std::uint64_t suppressed = 0;
  for (const auto& [hash, count] : suppressed_in_) suppressed += count;
  each({"tocsin_router_issues", "issues by state", "state", "suppressed",
        static_cast<double>(suppressed)});
}

}  // namespace tocsin::routing
