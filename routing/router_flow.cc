// Router: what may happen when: the hold while the input is behind, and how much one call does.
#include <algorithm>

#include "routing/router_impl.h"

namespace tocsin::routing {

using core::WallTime;

void Router::Impl::set_behind(bool behind, WallTime now) {
  if (!catchup_.set_behind(behind, now)) return;
  if (!behind) release();
  turns_.set_behind(behind);
  if (!behind) groups_.release_held(now);
}

/// Expiries and losses wait too: what refreshes them may stand in the backlog.
bool Router::Impl::waits(const Agenda::Entry& due) const {
  switch (due.kind) {
    case Due::expire_issue:
    case Due::lose_run:
      return true;
    case Due::flush_group:
      return waits(*groups_.find(due.key), due.at);
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
  if (catchup_.starting() || group.held) return true;
  const bool urgent =
      (group.urgent_at && *group.urgent_at <= at) || (group.pulled_at && *group.pulled_at <= at);
  return group.running && !urgent;
}

/// What was parked stands on the agenda again, at its present time.
void Router::Impl::release() {
  for (const auto& [kind, key] : catchup_.release()) {
    if (kind == Due::flush_group) {
      if (const Group* group = groups_.find(key)) turns_.arrange(*group);
    } else if (kind == Due::expire_issue) {
      issues_.expect(key);
    } else {
      runs_.watch(key);
    }
  }
}

void Router::Impl::carry_out(const Agenda::Entry& due, WallTime now) {
  switch (due.kind) {
    case Due::expire_issue:
      return intake_.expire(due);
    case Due::lose_run:
      return intake_.lose(due);
    case Due::flush_group:
      return teller_.flush_due(due.key, due.at, now);
    case Due::forget_group:
      return groups_.forget(due);
    case Due::forget_issue:
      return issues_.forget(due.key);
    case Due::forget_run:
      return runs_.forget(due);
  }
}

/// What people ask of the router: at present silences.
core::Status Router::Impl::on_control(std::string_view key, std::optional<std::string_view> value,
                                      WallTime now) {
  constexpr std::string_view kSilence = "silence/";
  if (!key.starts_with(kSilence)) {
    return core::invalid_argument("unknown key: expected silence/<id>");
  }
  return silences_->apply(key.substr(kSilence.size()), value, now);
}

bool Router::Impl::tick(WallTime now) {
  if (!restored_) return false;
  (void)turns_.take_at_once();  // they are on the agenda as well
  teller_.begin_turn();
  dedup_.forget(now);
  silences_->forget(now);
  stats_.silences = silences_->count_in_force(now);
  if (catchup_.begin_round(now)) release();
  const WallTime until = catchup_.until(now);
  while (auto due = agenda_.pop(until)) {
    if (catchup_.shut() && waits(*due)) {
      catchup_.park(*due);
      continue;
    }
    carry_out(*due, now);
    intake_.tell_overflows();
    if (teller_.spent()) {
      const auto next = agenda_.next();
      return next && *next <= until;
    }
  }
  catchup_.end_round(now);
  return false;
}

std::optional<WallTime> Router::Impl::next_deadline() const {
  if (!restored_) return std::nullopt;
  auto next = agenda_.next();
  if (const auto round = catchup_.next()) next = std::min(next.value_or(*round), *round);
  return next;
}

/// Groups that this event has made due: a resolve further on in the same poll must not hide a
/// firing that a route without group_wait tells immediately.
void Router::Impl::tell_at_once(WallTime now) {
  for (const std::string& hash : turns_.take_at_once()) {
    Group* found = groups_.find(hash);
    if (!restored_ || found == nullptr) continue;
    Group& group = *found;
    const auto due = group.next_flush();
    if (!due || *due > now || (catchup_.shut() && waits(group, *due))) continue;
    agenda_.cancel(Due::flush_group, hash);
    teller_.flush(group, *due, now);
  }
}

}  // namespace tocsin::routing
