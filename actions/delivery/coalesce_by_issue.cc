// Merging where each message tells of issues of its own, and several may belong to one flush.
#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "actions/delivery/coalesce.h"

namespace tocsin::actions {

std::vector<Superseded> coalesce_by_issue(std::deque<Item>& queue) {
  std::vector<Superseded> out;
  if (queue.size() < 2) return out;
  std::unordered_map<std::string, std::size_t> told;  // issue key → the first behind that has it
  for (std::size_t i = queue.size(); i-- > 0;) {
    Item& item = queue[i];
    const auto issues = core::listing_of(*item.notification).issues;
    const bool covered = !issues.empty() &&
                         std::all_of(issues.begin(), issues.end(),
                                     [&](const auto& one) { return told.contains(one.issue_key); });
    if (!covered || item.in_flight) {
      for (const auto& one : issues) told[one.issue_key] = item.ticket;
      continue;
    }
    std::size_t last = 0;
    for (const auto& one : issues) last = std::max(last, told.at(one.issue_key));
    const auto heir = std::find_if(queue.begin(), queue.end(),
                                   [&](const Item& one) { return one.ticket == last; });
    // A far side that is failing is not asked sooner because there is news.
    Item& next = queue[i + 1];
    next.not_before = std::max(next.not_before, item.not_before);
    next.failures = std::max(next.failures, item.failures);
    if (!next.misconfigured_since) next.misconfigured_since = item.misconfigured_since;
    std::string successor = heir->notification->notification_id;
    out.push_back({std::move(item), std::move(successor)});
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

}  // namespace tocsin::actions
