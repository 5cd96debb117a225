// Router: what may happen when: the hold while the input is behind, and how much one call does.
#include <algorithm>

#include "routing/router_impl.h"

namespace tocsin::routing {

using core::WallTime;

void Router::Impl::set_behind(bool behind, WallTime now) {
  if (!behind) starting_ = false;
  if (behind == behind_) return;
  behind_ = behind;
  round_.reset();
  if (behind) {
    gate_ = now + options_.limits.catchup_hold_max;
    return;
  }
  release();
  for (const auto& [hash, group] : groups_) {
    if (!group->held) continue;
    group->held = false;
    if (group->next_tick) group->next_tick = std::max(*group->next_tick, now);
    arrange(*group);
    touch(*group);
  }
}

/// Expiries and losses wait too: what refreshes them may stand in the backlog.
bool Router::Impl::waits(const Agenda::Entry& due) const {
  switch (due.kind) {
    case Due::expire_issue:
    case Due::lose_run:
      return true;
    case Due::flush_group:
      return waits(groups_.at(due.key), due.at);
    case Due::forget_group:
    case Due::forget_issue:
    case Due::forget_run:
      return false;
  }
  return false;
}

/// A fresh issue is told although others are behind: whoever stops a run must not wait for another
/// partition. Repeats, ends and what is old wait.
bool Router::Impl::waits(const Group& group, WallTime at) const {
  if (starting_ || group.held) return true;
  const bool urgent = group.urgent_at && *group.urgent_at <= at;
  return group.running && !urgent;
}

/// What was parked stands on the agenda again, at its present time.
void Router::Impl::release() {
  for (const auto& [kind, key] : std::exchange(parked_, {})) {
    if (kind == Due::flush_group) {
      if (Group* group = groups_.find(key)) arrange(*group);
    } else if (kind == Due::expire_issue) {
      const IssueState* issue = issues_.find(key);
      if (issue != nullptr && issue->firing && issue->expires_at) {
        agenda_.set(Due::expire_issue, key, *issue->expires_at);
      }
    } else if (const RunState* run = runs_.find(key)) {
      watch(key, *run);
    }
  }
}

void Router::Impl::carry_out(const Agenda::Entry& due, WallTime now) {
  switch (due.kind) {
    case Due::expire_issue:
      return expire(due);
    case Due::lose_run:
      return lose_run(due);
    case Due::flush_group:
      return flush_due(due, now);
    case Due::forget_group:
      return forget_group(due);
    case Due::forget_issue:
      return forget_issue(due);
    case Due::forget_run:
      runs_.erase(due.key);
      return;
  }
}

bool Router::Impl::tick(WallTime now) {
  if (!restored_) return false;
  at_once_.clear();
  examined_ = 0;
  dedup_.forget(now);
  if (shut() && now >= gate_) {
    round_ = now;
    starting_ = false;
    release();
  }
  // A round is what was due when it began: what becomes due while it lasts waits for the next one.
  const WallTime until = round_ ? std::min(*round_, now) : now;
  const RouterOptions::Budget& budget = options_.budget;
  while (auto due = agenda_.pop(until)) {
    if (shut() && waits(*due)) {
      parked_.emplace(due->kind, due->key);
      continue;
    }
    carry_out(*due, now);
    if (out_.notifications.size() >= budget.notifications || sent_bytes_ >= budget.bytes ||
        examined_ >= budget.members) {
      const auto next = agenda_.next();
      return next && *next <= until;
    }
  }
  if (round_) {
    round_.reset();
    gate_ = now + options_.limits.catchup_hold_max;
  }
  return false;
}

std::optional<WallTime> Router::Impl::next_deadline() const {
  if (!restored_) return std::nullopt;
  auto next = agenda_.next();
  if (behind_ && !parked_.empty()) next = std::min(next.value_or(gate_), gate_);
  return next;
}

/// Groups that this event has made due: a resolve further on in the same poll must not hide a
/// firing that a route without group_wait tells immediately.
void Router::Impl::tell_at_once(WallTime now) {
  for (const std::string& hash : std::exchange(at_once_, {})) {
    Group* found = groups_.find(hash);
    if (!restored_ || found == nullptr) continue;
    Group& group = *found;
    const auto due = group.next_flush();
    if (!due || *due > now || (shut() && waits(group, *due))) continue;
    agenda_.cancel(Due::flush_group, hash);
    flush(group, *due, now);
  }
}

}  // namespace tocsin::routing
