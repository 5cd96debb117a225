#include "routing/schedule.h"

#include <algorithm>
#include <string>

namespace tocsin::routing {

using core::WallTime;

void Schedule::start() {
  started_ = true;
  intake_.tell_overflows();
  catchup_.start();
}

void Schedule::set_behind(bool behind, WallTime now) {
  if (!catchup_.set_behind(behind, now)) return;
  if (!behind) release();
  tables_.turns.set_behind(behind);
  if (!behind) tables_.groups.release_held(now);
}

/// Expiries and losses wait too: what refreshes them may stand in the backlog.
bool Schedule::waits(const Agenda::Entry& due) const {
  switch (due.kind) {
    case Due::expire_issue:
    case Due::lose_run:
    case Due::end_ack:
      return true;
    case Due::flush_group:
      return waits(*tables_.groups.find(due.key), due.at);
    case Due::forget_group:
    case Due::forget_issue:
    case Due::forget_run:
      return false;
  }
  return false;
}

/// A fresh issue is told although others are behind: whoever stops a run must not wait for another
/// partition. Repeats, ends and what is old wait.
bool Schedule::waits(const Group& group, WallTime at) const {
  if (catchup_.starting() || group.held) return true;
  const bool urgent =
      (group.urgent_at && *group.urgent_at <= at) || (group.pulled_at && *group.pulled_at <= at);
  return group.running && !urgent;
}

/// May one that is told be the target of a source that is still to be read?
bool Schedule::settles(const Agenda::Entry& due, WallTime now) const {
  if (due.kind != Due::flush_group || !settling_.waits(due.at, now)) return false;
  const Group& group = *tables_.groups.find(due.key);
  return !group.route->beside &&
         std::any_of(group.members.begin(), group.members.end(), [&](const auto& entry) {
           return inhibition_.has_target(entry.second.state->issue.whole());
         });
}

/// What was parked stands on the agenda again, at its present time.
void Schedule::release() {
  for (const auto& [kind, key] : catchup_.release()) {
    if (kind == Due::flush_group) {
      if (const Group* group = tables_.groups.find(key)) tables_.turns.arrange(*group);
    } else if (kind == Due::expire_issue) {
      tables_.issues.expect(key);
    } else if (kind == Due::end_ack) {
      tables_.acks.expect(key);
    } else {
      tables_.runs.watch(key);
    }
  }
}

void Schedule::carry_out(const Agenda::Entry& due, WallTime now) {
  switch (due.kind) {
    case Due::expire_issue:
      return intake_.expire(due);
    case Due::lose_run:
      return intake_.lose(due);
    case Due::end_ack:
      return tables_.acks.end(due, now);
    case Due::flush_group:
      return teller_.flush_due(due.key, due.at, now);
    case Due::forget_group:
      return tables_.groups.forget(due);
    case Due::forget_issue:
      return tables_.issues.forget(due.key, now);
    case Due::forget_run:
      return tables_.runs.forget(due);
  }
}

bool Schedule::run(WallTime now) {
  if (!started_) return false;
  (void)tables_.turns.take_at_once();  // they are on the agenda as well
  teller_.begin_turn();
  intake_.begin_turn(now);
  tables_.dedup.forget(now);
  tables_.flaps.forget(now);
  if (catchup_.begin_round(now)) release();
  for (const std::string& hash : settling_.release()) {
    if (const Group* group = tables_.groups.find(hash)) tables_.turns.arrange(*group);
  }
  const WallTime until = catchup_.until(now);
  while (auto due = tables_.agenda.pop(until)) {
    if (catchup_.shut() && waits(*due)) {
      catchup_.park(*due);
      continue;
    }
    if (settles(*due, now)) {
      settling_.hold(due->key, due->at);
      continue;
    }
    carry_out(*due, now);
    intake_.tell_overflows();
    if (teller_.spent()) {
      const auto next = tables_.agenda.next();
      return next && *next <= until;
    }
  }
  catchup_.end_round(now);
  return false;
}

std::optional<WallTime> Schedule::next() const {
  if (!started_) return std::nullopt;
  auto next = tables_.agenda.next();
  for (const auto& other : {catchup_.next(), settling_.next()}) {
    if (other) next = std::min(next.value_or(*other), *other);
  }
  return next;
}

void Schedule::tell_at_once(WallTime now) {
  for (const std::string& hash : tables_.turns.take_at_once()) {
    Group* found = tables_.groups.find(hash);
    if (!started_ || found == nullptr) continue;
    Group& group = *found;
    const auto due = group.next_flush();
    if (!due || *due > now || (catchup_.shut() && waits(group, *due))) continue;
    tables_.agenda.cancel(Due::flush_group, hash);
    teller_.flush(group, *due, now);
  }
}

}  // namespace tocsin::routing
