#include "routing/tables/told.h"

#include <algorithm>
#include <utility>

#include "core/replay.h"

namespace tocsin::routing {
namespace {

using core::Delivery;
using core::DeliveryState;
using core::NotificationKind;

/// Far more than delivery leaves waiting (a newer message takes the place of an older one). Beyond
/// it nobody reports deliveries: the oldest counts as arrived.
constexpr std::size_t kMaxPending = 16;
/// Where each message tells of issues of its own: a flush of the largest group, and as much again.
constexpr std::size_t kMaxPendingByIssue = 512;

/// Of ends remembered per message; one is enough to keep an incident from staying open.
constexpr std::size_t kMaxEnds = 1000;

using Pending = TellLog::Pending;

void arrived(TellLog& log, const Pending& message) {
  if (log.by_issue) {
    log.placed = true;  // no message closes what another one has opened
    for (auto& [key, told] : log.told) {
      if (told.by == message.seq) told.by = 0;
    }
    return;
  }
  log.placed = message.kind != NotificationKind::close;
  // An earlier message of which we hear later, from another partition, changes nothing any more.
  for (Pending& earlier : log.pending) {
    if (earlier.seq < message.seq) earlier.kind = message.kind;
  }
  if (!log.placed) return;
  // A message lists all that fires: what earlier ones told has arrived with it.
  for (auto& [key, told] : log.told) {
    if (told.by <= message.seq) told.by = 0;
  }
}

/// The message that carries on what `lost` told: the next one that is still on its way.
const Pending* heir(const TellLog& log, const Pending& lost) {
  if (log.by_issue) return nullptr;
  const auto found = std::find_if(log.pending.begin(), log.pending.end(), [&](const Pending& next) {
    return next.seq > lost.seq && next.kind != NotificationKind::close;
  });
  return found == log.pending.end() ? nullptr : &*found;
}

/// Ends that a lost message told are told by the next one on its way, or must be told again.
void pass_on_ends(TellLog& log, Pending& lost, Settled& out) {
  const auto next = std::find_if(log.pending.begin(), log.pending.end(),
                                 [&](const Pending& one) { return one.seq > lost.seq; });
  for (auto& [key, entry] : lost.over) {
    if (next != log.pending.end() && !log.by_issue) {
      if (next->over.size() < kMaxEnds) next->over.emplace_back(key, entry);
    } else if (log.placed && log.told.emplace(key, entry).second) {
      out.open_again.push_back(key);
    }
  }
}

void failed(TellLog& log, const Pending& message, bool refused, std::uint64_t& forgotten) {
  const Pending* next = heir(log, message);
  for (auto at = log.told.begin(); at != log.told.end();) {
    TellLog::Told& told = at->second;
    const bool depends = told.by == message.seq;
    if (!depends || next != nullptr || refused) {
      if (depends) told.by = next != nullptr ? next->seq : 0;
      ++at;
    } else {
      ++forgotten;
      at = log.told.erase(at);
    }
  }
  if (!incident_open(log)) log.owed.clear();  // nobody has heard of what would be resolved
}

// A person has sent a message again that was given up: what it opened or closed at the far side is no
// longer what the log says.
bool settle_replay(TellLog& log, const Delivery& delivery) {
  const bool replayed =
      std::any_of(delivery.handles.begin(), delivery.handles.end(),
                  [](const auto& handle) { return handle.first == core::kReplayHandle; });
  const bool there = delivery.state == DeliveryState::delivered ||
                     delivery.state == DeliveryState::delivered_via_digest ||
                     delivery.state == DeliveryState::sent_unconfirmed;
  if (!replayed || !there) return false;
  const bool placed = log.by_issue || delivery.kind != NotificationKind::close;
  return std::exchange(log.placed, placed) != placed;
}

}  // namespace

bool incident_open(const TellLog& log) {
  if (log.pending.empty() || (log.by_issue && log.placed)) return log.placed;
  if (log.by_issue) return true;
  return log.pending.back().kind != NotificationKind::close;
}

void remember_sent(TellLog& log, const core::Notification& notification,
                   std::vector<std::pair<std::string, TellLog::Told>> over) {
  if (over.size() > kMaxEnds) over.erase(over.begin() + kMaxEnds, over.end());
  log.pending.push_back({log.seq, notification.notification_id, notification.kind,
                         notification.decided_at, std::move(over)});
  while (log.pending.size() > (log.by_issue ? kMaxPendingByIssue : kMaxPending)) {
    arrived(log, log.pending.front());
    log.pending.erase(log.pending.begin());
  }
}

Settled settle(TellLog& log, const Delivery& delivery) {
  Settled out;
  if (delivery.state == DeliveryState::pending) return out;
  const auto found = std::find_if(log.pending.begin(), log.pending.end(), [&](const Pending& one) {
    return one.id == delivery.notification_id;
  });
  if (found == log.pending.end()) {
    out.changed = settle_replay(log, delivery);
    return out;
  }
  out.changed = true;
  Pending message = std::move(*found);
  log.pending.erase(found);
  switch (delivery.state) {
    case DeliveryState::delivered:
    case DeliveryState::delivered_via_digest:
    case DeliveryState::sent_unconfirmed:
      arrived(log, message);
      break;
    case DeliveryState::dead:
      failed(log, message, true, out.forgotten);
      break;
    case DeliveryState::superseded:
    case DeliveryState::expired:
    case DeliveryState::cancelled:
    case DeliveryState::pending:
      failed(log, message, false, out.forgotten);
      pass_on_ends(log, message, out);
      break;
  }
  return out;
}

}  // namespace tocsin::routing
