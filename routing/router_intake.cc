// Router: intake of issues and deliveries, and what becomes due of issues.
#include <algorithm>
#include <utility>

#include "core/identity.h"
#include "routing/router_impl.h"
#include "routing/runs.h"
#include "routing/told.h"

namespace tocsin::routing {

using core::Issue;
using core::IssueStatus;
using core::Resolution;
using core::WallTime;

// ---- issues

void Router::Impl::on_issue(Issue issue, WallTime now) {
  ++stats_.events;
  if (issue.labels.empty()) {
    ++stats_.rejected;
    return;
  }
  if (dedup_.seen(issue, now)) {
    ++stats_.duplicates;
    return;
  }
  bool clamped = false;
  Issue normal = normalized(std::move(issue), now, options_.limits.max_future, clamped);
  stats_.clamped += clamped ? 1 : 0;
  follow(core::to_text(normal.run.uid), runs_.note(normal, now));
  report(std::move(normal), now);
  tell_at_once(now);
}

void Router::Impl::report(Issue normal, WallTime now) {
  const std::string key = core::issue_key(normal.labels);
  IssueState& state = issues_.make(key);
  if (state.key.empty()) state.key = key;
  const bool other_attempt =
      state.firing && !normal.run.uid.nil() && normal.run.uid == state.issue.run.uid &&
      state.issue.run.attempt != 0 && normal.run.attempt > state.issue.run.attempt;
  if (other_attempt) resolve_issue(state, Resolution::superseded, normal.starts_at);
  if (!(state.issue.labels == normal.labels)) state.leaves.clear();
  std::optional<Issue> ended;
  if (!state.firing && told_anywhere(state)) ended = state.issue;
  const Effect effect = apply(state, std::move(normal), now, options_.limits.resolve_timeout);
  if (ended && effect == Effect::began) state.past[state.episode - 1] = std::move(*ended);
  if (state.firing && !state.expires_at && outlives_its_run(state.issue)) {
    state.expires_at = now + options_.limits.retention;
  }
  follow(state, effect, now);
}

/// Is some integration still to hear that the present episode is over?
bool Router::Impl::told_anywhere(const IssueState& state) const {
  return std::any_of(state.groups.begin(), state.groups.end(), [&](const Group* group) {
    return std::any_of(group->logs.begin(), group->logs.end(), [&](const auto& log) {
      const auto told = log.second.told.find(state.key);
      if (told != log.second.told.end() && told->second.episode == state.episode) return true;
      const auto owed = log.second.owed.find(state.key);
      return owed != log.second.owed.end() && owed->second.episode == state.episode;
    });
  });
}

void Router::Impl::follow(IssueState& state, Effect effect, WallTime now) {
  switch (effect) {
    case Effect::stale:
      ++stats_.stale;
      return;
    case Effect::orphan:
      touch(state);
      route_resolved(state, now);
      agenda_.set(Due::forget_issue, state.key, state.last_transition + options_.limits.retention);
      return;
    case Effect::began:
    case Effect::resumed:
      started(state, now);
      return;
    case Effect::ended:
      ended(state, now);
      return;
    case Effect::updated:
      touch(state);
      change_groups_of(state);
      if (state.firing) {
        if (state.expires_at) agenda_.set(Due::expire_issue, state.key, *state.expires_at);
        if (!state.expires_at) agenda_.cancel(Due::expire_issue, state.key);
        route(state, now, false);
      }
      return;
  }
}

void Router::Impl::started(IssueState& state, WallTime now) {
  touch(state);
  ++firing_;
  const std::string run = run_of(state.issue);
  if (!run.empty()) firing_of_run_[run].insert(state.key);
  agenda_.cancel(Due::forget_issue, state.key);
  if (state.expires_at) agenda_.set(Due::expire_issue, state.key, *state.expires_at);
  out_.transitions.push_back({state.key, state.episode, IssueStatus::firing, Resolution::none});
  change_groups_of(state);
  route(state, now, true);
  if (const auto end = runs_.over(state.issue, now)) {
    // Reported after its run had ended or gone on to another attempt: nobody would resolve it any
    // more. It is news all the same.
    ++stats_.late_issues;
    resolve_issue(state, end->first, end->second);
  }
}

void Router::Impl::ended(IssueState& state, WallTime now) {
  touch(state);
  --firing_;
  if (const auto run = firing_of_run_.find(run_of(state.issue)); run != firing_of_run_.end()) {
    run->second.erase(state.key);
    if (run->second.empty()) firing_of_run_.erase(run);
  }
  agenda_.cancel(Due::expire_issue, state.key);
  out_.transitions.push_back(
      {state.key, state.episode, IssueStatus::resolved, state.issue.resolution});
  if (state.groups.empty()) {
    agenda_.set(Due::forget_issue, state.key, state.last_transition + options_.limits.retention);
  }
  change_groups_of(state);
  route_resolved(state, now);
}

void Router::Impl::resolve_issue(IssueState& state, Resolution resolution, WallTime at) {
  if (!state.firing) return;
  resolve(state, resolution, at);
  ended(state, at);
}

void Router::Impl::expire(const Agenda::Entry& due) {
  if (IssueState* issue = issues_.find(due.key)) {
    resolve_issue(*issue, Resolution::expired, due.at);
  }
}

void Router::Impl::forget_issue(const Agenda::Entry& due) {
  const IssueState* found = issues_.find(due.key);
  // A member is kept: it leaves its last group first, and is put on the agenda again there.
  if (found == nullptr || found->firing || !found->groups.empty()) return;
  issues_.erase(due.key);
}

// ---- what runs mean for issues

void Router::Impl::on_job(const core::JobEvent& event, WallTime now) {
  bool stale = false;
  follow(core::to_text(event.run.uid), runs_.note(event, now, stale));
  stats_.stale += stale ? 1 : 0;
}

void Router::Impl::follow(const std::string& run, const RunEffects& effects) {
  for (const RunEffect& effect : effects) {
    switch (effect.kind) {
      case RunEffect::Kind::resolve:
        resolve_run(run, effect);
        break;
      case RunEffect::Kind::raise_lost:
        raise("job_lost", effect.labels, effect.summary, effect.at);
        break;
      case RunEffect::Kind::clear_lost:
        clear("job_lost", effect.labels, effect.at);
        break;
    }
  }
}

void Router::Impl::resolve_run(const std::string& run, const RunEffect& effect) {
  const auto firing = firing_of_run_.find(run);
  if (firing == firing_of_run_.end()) return;
  const std::set<std::string> keys = firing->second;  // resolving changes the original
  for (const std::string& key : keys) {
    IssueState& state = issues_.at(key);
    const std::uint32_t attempt = state.issue.run.attempt;
    if (attempt < effect.first_attempt || attempt > effect.last_attempt) continue;
    if (effect.resolution != Resolution::superseded && outlives_its_run(state.issue)) continue;
    resolve_issue(state, effect.resolution, effect.at);
  }
}

// ---- the router's own issues

Issue Router::Impl::builtin_issue(std::string_view rule, core::Labels labels, WallTime now) const {
  Issue issue;
  labels.set("rule", rule);
  labels.set("severity", to_string(core::Severity::error));
  issue.labels = std::move(labels);
  issue.source = options_.source;
  issue.rule = issue.rule_type = rule;
  issue.severity = core::Severity::error;
  issue.time = issue.starts_at = now;
  return issue;
}

void Router::Impl::raise(std::string_view rule, core::Labels labels, std::string summary,
                         WallTime now) {
  Issue issue = builtin_issue(rule, std::move(labels), now);
  const IssueState* known = issues_.find(core::issue_key(issue.labels));
  if (known != nullptr && known->firing) return;
  issue.summary = std::move(summary);
  issue.event_id = core::make_id("iss_", {rule, core::fingerprint(issue.labels),
                                          std::to_string(core::nanoseconds(now)), "firing"});
  report(std::move(issue), now);
}

void Router::Impl::clear(std::string_view rule, core::Labels labels, WallTime now) {
  const Issue issue = builtin_issue(rule, std::move(labels), now);
  if (IssueState* known = issues_.find(core::issue_key(issue.labels))) {
    resolve_issue(*known, Resolution::recovered, now);
  }
}

// ---- the rest

void Router::Impl::on_delivery(const core::Delivery& delivery, WallTime now) {
  const auto hash = hash_of_key_.find(delivery.route_id + '\x1f' + delivery.group_key);
  if (hash == hash_of_key_.end()) return;
  Group& group = groups_.at(hash->second);
  const auto found = group.logs.find(delivery.integration);
  if (found == group.logs.end()) return;
  TellLog& log = found->second;
  for (const auto& one : log.pending) undelivered_.erase(undelivered_.find(one.decided_at));
  stats_.owed -= log.owed.size();
  const Settled settled = settle(log, delivery);
  stats_.untold += settled.forgotten;
  tell_again(group, log, settled.open_again, now);
  stats_.owed += log.owed.size();
  for (const auto& one : log.pending) undelivered_.insert(one.decided_at);
  if (!settled.changed) return;
  touch_log(group.hash, delivery.integration);
  if (group.active()) change(group);
}

}  // namespace tocsin::routing
