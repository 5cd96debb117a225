// Router: intake of issues, jobs and deliveries, and what becomes due of them.
#include <algorithm>
#include <span>
#include <utility>

#include "core/identity.h"
#include "routing/router_impl.h"

namespace tocsin::routing {

using core::Issue;
using core::IssueStatus;
using core::Resolution;
using core::WallTime;

namespace {

/// A run that says nothing more is forgotten after this long.
constexpr core::Duration kRunMemory = std::chrono::hours(24 * 30);
/// How exactly last_seen is kept when it only serves that memory.
constexpr core::Duration kHeartbeatGrain = std::chrono::hours(1);

std::string run_of(const Issue& issue) {
  return issue.run.uid.nil() ? issue.labels.get("run_uid") : core::to_text(issue.run.uid);
}

std::string seen_key(const Issue& issue) {
  const auto sum = core::sha256(issue.source + '\x1f' + issue.event_id);
  return core::base32(std::span(sum).first<16>());
}

}  // namespace

// ---- issues

void Router::Impl::on_issue(const Issue& issue, WallTime now) {
  ++stats_.events;
  if (issue.labels.empty()) {
    ++stats_.rejected;
    return;
  }
  if (is_duplicate(issue, now)) {
    ++stats_.duplicates;
    return;
  }
  bool clamped = false;
  const Issue normal = normalized(issue, now, options_.limits.max_future, clamped);
  stats_.clamped += clamped ? 1 : 0;
  report(normal, now);
}

bool Router::Impl::is_duplicate(const Issue& issue, WallTime now) {
  if (issue.event_id.empty()) return false;
  const std::string id = seen_key(issue);
  const auto seen = seen_.find(id);
  if (seen != seen_.end() && now - seen->second <= options_.limits.dedup_window) return true;
  remember(id, now);
  return false;
}

void Router::Impl::remember(const std::string& id, WallTime now) {
  const auto [at, fresh] = seen_.try_emplace(id, now);
  if (!fresh) {
    seen_order_.erase({at->second, id});
    at->second = now;
  }
  seen_order_.insert({now, id});
  touch("seen/" + id);
  forget_seen(now);
}

void Router::Impl::forget_seen(WallTime now) {
  while (!seen_order_.empty() &&
         (seen_order_.size() > std::max<std::uint64_t>(1, options_.limits.dedup_max) ||
          now - seen_order_.begin()->first > options_.limits.dedup_window)) {
    const std::string id = seen_order_.begin()->second;
    seen_order_.erase(seen_order_.begin());
    seen_.erase(id);
    touch("seen/" + id);
  }
}

void Router::Impl::report(const Issue& normal, WallTime now) {
  const std::string key = core::issue_key(normal.labels);
  auto& slot = issues_[key];
  if (!slot) {
    slot = std::make_unique<IssueState>();
    slot->key = key;
  }
  IssueState& state = *slot;
  const bool other_attempt = state.firing && !normal.run.uid.nil() &&
                             normal.run.uid == state.issue.run.uid &&
                             normal.run.attempt > state.issue.run.attempt;
  if (other_attempt) resolve_issue(state, Resolution::superseded, normal.starts_at);
  if (!(state.issue.labels == normal.labels)) state.leaves.clear();
  follow(state, apply(state, normal, now, options_.limits.resolve_timeout), now);
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
  out_.transitions.push_back(
      {state.key, state.episode, IssueStatus::firing, Resolution::none, state.issue});
  const auto known = runs_.find(run);
  const bool over = known != runs_.end() && known->second.ended_at &&
                    known->second.attempt >= state.issue.run.attempt;
  if (over) {
    // Reported after its run had ended: nobody would resolve it any more.
    resolve_issue(state, Resolution::job_ended, *known->second.ended_at);
    return;
  }
  route(state, now, true);
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
      {state.key, state.episode, IssueStatus::resolved, state.issue.resolution, state.issue});
  if (state.groups.empty()) {
    agenda_.set(Due::forget_issue, state.key, state.last_transition + options_.limits.retention);
  }
  route_resolved(state, now);
}

void Router::Impl::resolve_issue(IssueState& state, Resolution resolution, WallTime at) {
  if (!state.firing) return;
  resolve(state, resolution, at);
  ended(state, at);
}

void Router::Impl::resolve_run(const std::string& run, std::uint32_t up_to_attempt,
                               Resolution resolution, WallTime at) {
  const auto firing = firing_of_run_.find(run);
  if (firing == firing_of_run_.end()) return;
  const std::set<std::string> keys = firing->second;  // resolving changes the original
  for (const std::string& key : keys) {
    IssueState& state = *issues_.at(key);
    if (state.issue.run.attempt <= up_to_attempt) resolve_issue(state, resolution, at);
  }
}

void Router::Impl::expire(const Agenda::Entry& due) {
  const auto found = issues_.find(due.key);
  if (found != issues_.end()) resolve_issue(*found->second, Resolution::expired, due.at);
}

void Router::Impl::forget_issue(const Agenda::Entry& due) {
  const auto found = issues_.find(due.key);
  // A member is kept: it leaves its last group first, and is put on the agenda again there.
  if (found == issues_.end() || found->second->firing || !found->second->groups.empty()) return;
  touch(*found->second);
  issues_.erase(found);
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
  const auto known = issues_.find(core::issue_key(issue.labels));
  if (known != issues_.end() && known->second->firing) return;
  issue.summary = std::move(summary);
  issue.event_id = core::make_id("iss_", {rule, core::fingerprint(issue.labels),
                                          std::to_string(core::nanoseconds(now)), "firing"});
  report(issue, now);
}

void Router::Impl::clear(std::string_view rule, core::Labels labels, WallTime now) {
  const Issue issue = builtin_issue(rule, std::move(labels), now);
  const auto known = issues_.find(core::issue_key(issue.labels));
  if (known != issues_.end()) resolve_issue(*known->second, Resolution::recovered, now);
}

// ---- jobs

void Router::Impl::watch(const std::string& uid, const RunState& run) {
  const bool watched = options_.limits.job_lost_after > core::Duration::zero() && !run.ended_at &&
                       !run.lost && run.attempt > 0;
  if (watched) {
    agenda_.set(Due::lose_run, uid, run.last_seen + options_.limits.job_lost_after);
  } else {
    agenda_.cancel(Due::lose_run, uid);
  }
  agenda_.set(
      Due::forget_run, uid,
      run.ended_at ? *run.ended_at + options_.limits.retention : run.last_seen + kRunMemory);
}

void Router::Impl::on_job(const core::JobEvent& event, WallTime now) {
  if (event.run.uid.nil()) return;
  const std::string uid = core::to_text(event.run.uid);
  RunState& run = runs_[uid];
  if (event.run.attempt < run.attempt) {
    ++stats_.stale;
    return;
  }
  const bool watched = options_.limits.job_lost_after > core::Duration::zero();
  if (event.phase == core::JobPhase::heartbeat && event.run.attempt == run.attempt && !watched &&
      now - run.last_seen < kHeartbeatGrain) {
    return;  // nobody waits for it: no record for every beat
  }
  const WallTime time = event.time == WallTime{} ? now : std::min(event.time, now);
  if (event.run.attempt > run.attempt) {
    resolve_run(uid, event.run.attempt - 1, Resolution::superseded, time);
    run.attempt = event.run.attempt;
    run.ended_at.reset();
  }
  run.last_seen = std::max(run.last_seen, now);
  if (run.lost) {
    run.lost = false;
    clear("job_lost", run.labels, now);  // with the labels it was raised with
  }
  if (!event.run.job.empty()) run.job = event.run.job;
  if (!event.labels.empty()) run.labels = event.labels;
  if (event.phase == core::JobPhase::ended && !run.ended_at) {
    run.ended_at = std::min(event.ended_at.value_or(time), now);
    resolve_run(uid, run.attempt, Resolution::job_ended, *run.ended_at);
  }
  watch(uid, run);
  touch("run/" + uid);
}

void Router::Impl::lose_run(const Agenda::Entry& due) {
  const auto found = runs_.find(due.key);
  if (found == runs_.end()) return;
  RunState& run = found->second;
  run.lost = true;
  run.labels.set("job", run.job);
  run.labels.set("run_uid", due.key);
  touch("run/" + due.key);
  resolve_run(due.key, run.attempt, Resolution::expired, due.at);
  raise("job_lost", run.labels,
        "no sign of life from job " + run.job + " since " + core::to_rfc3339(run.last_seen),
        due.at);
}

// ---- the rest

void Router::Impl::on_delivery(const core::Delivery& delivery) {
  if (delivery.handles.empty()) return;
  const auto hash = hash_of_key_.find(delivery.route_id + '\x1f' + delivery.group_key);
  if (hash == hash_of_key_.end()) return;
  Group& group = *groups_.at(hash->second);
  const auto log = group.logs.find(delivery.integration);
  if (log == group.logs.end()) return;
  auto& handles = log->second.handles;
  for (const auto& news : delivery.handles) {
    const auto same = std::find_if(handles.begin(), handles.end(),
                                   [&](const auto& handle) { return handle.first == news.first; });
    if (same == handles.end()) {
      handles.push_back(news);
    } else {
      same->second = news.second;
    }
  }
  touch("log/" + group.hash + "/" + delivery.integration);
}

void Router::Impl::set_behind(bool behind, WallTime now) {
  if (behind == behind_since_.has_value()) return;
  behind_since_ = behind ? std::optional(now) : std::nullopt;
  if (behind) return;
  for (auto& [hash, group] : groups_) {
    if (!group->held) continue;
    group->held = false;
    if (!group->next_tick) continue;
    group->next_tick = std::min(*group->next_tick, now);
    arrange(*group);
    touch(*group);
  }
}

void Router::Impl::tick(WallTime now) {
  if (!restored_) return;
  forget_seen(now);
  while (auto due = agenda_.pop(now)) {
    switch (due->kind) {
      case Due::expire_issue:
        expire(*due);
        break;
      case Due::lose_run:
        lose_run(*due);
        break;
      case Due::flush_group:
        flush_due(*due, now);
        break;
      case Due::forget_group:
        forget_group(*due);
        break;
      case Due::forget_issue:
        forget_issue(*due);
        break;
      case Due::forget_run:
        runs_.erase(due->key);
        touch("run/" + due->key);
        break;
    }
  }
}

}  // namespace tocsin::routing
