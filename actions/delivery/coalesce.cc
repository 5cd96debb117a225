#include "actions/delivery/coalesce.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace tocsin::actions {

using core::NotificationKind;
using core::Severity;

namespace {

// `newer` takes the place of `older`, and its debts: the incident may still have to be opened, and
// a far side that is failing is not asked sooner because there is news.
void inherit(const Item& older, Item& newer) {
  if (older.notification->kind == NotificationKind::open &&
      newer.notification->kind != NotificationKind::open) {
    auto merged = std::make_shared<core::Notification>(*newer.notification);
    merged->kind = NotificationKind::open;
    merged->rendered.clear();  // was written as an update
    newer.notification = std::move(merged);
  }
  newer.not_before = std::max(newer.not_before, older.not_before);
  newer.failures = std::max(newer.failures, older.failures);
  newer.fault.inherit(older.fault);
  if (older.together > 0) newer.together = older.together;
  newer.maybe_announced = newer.maybe_announced || older.maybe_announced;
  if (!newer.misconfigured_since) newer.misconfigured_since = older.misconfigured_since;
}

}  // namespace

std::vector<Superseded> coalesce(std::deque<Item>& queue) {
  std::vector<Superseded> out;
  std::size_t i = 0;
  while (i + 1 < queue.size()) {
    Item& older = queue[i];
    Item& newer = queue[i + 1];
    if (older.in_flight) {
      ++i;
      continue;
    }
    const bool opens = older.notification->kind == NotificationKind::open;
    const bool closes = older.notification->kind == NotificationKind::close;
    const bool ends = newer.notification->kind == NotificationKind::close;
    if (opens && ends) {
      const bool unseen =
          !older.maybe_announced && core::worst_of(*older.notification) < Severity::critical;
      if (!unseen) {
        ++i;
        continue;
      }
      out.push_back({std::move(older), ""});
      out.push_back({std::move(newer), ""});
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i),
                  queue.begin() + static_cast<std::ptrdiff_t>(i) + 2);
      if (i > 0) --i;  // what stands before may now merge with what stands behind
      continue;
    }
    if (closes && !ends) {
      ++i;  // the old incident ends before the next one begins
      continue;
    }
    inherit(older, newer);
    out.push_back({std::move(older), newer.notification->notification_id});
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

}  // namespace tocsin::actions
