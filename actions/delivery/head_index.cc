#include "actions/delivery/head_index.h"

#include <algorithm>

namespace tocsin::actions {

using core::WallTime;

int urgency(int rank, WallTime enqueued, WallTime now) {
  const auto aged = (now - enqueued) / std::chrono::minutes(10);
  return rank + static_cast<int>(std::clamp<std::int64_t>(aged, 0, 10));
}

void HeadIndex::forget(const Head& head) {
  due_.at(static_cast<std::size_t>(head.rank)).erase(head.ticket);
  later_.erase({head.not_before, head.ticket});
  expiries_.erase({head.expires, head.ticket});
}

void HeadIndex::put(const std::string& group, const Head& head) {
  const auto [found, added] = heads_.try_emplace(group);
  if (!added) forget(found->second);
  found->second = head;
  const std::string* const name = &found->first;
  if (!head.in_flight) later_.emplace(std::pair(head.not_before, head.ticket), name);
  if (head.expires != WallTime::max()) {
    expiries_.emplace(std::pair(head.expires, head.ticket), name);
  }
}

void HeadIndex::erase(const std::string& group) {
  const auto found = heads_.find(group);
  if (found == heads_.end()) return;
  forget(found->second);
  heads_.erase(found);
}

void HeadIndex::ripen(WallTime now) {
  while (!later_.empty() && later_.begin()->first.first <= now) {
    const auto& [when, group] = *later_.begin();
    due_.at(static_cast<std::size_t>(heads_.at(*group).rank)).emplace(when.second, group);
    later_.erase(later_.begin());
  }
}

const std::string* HeadIndex::best(WallTime now) {
  ripen(now);
  const std::string* out = nullptr;
  std::pair<int, std::uint64_t> most{};  // urgency; ticket
  for (const auto& queue : due_) {
    if (queue.empty()) continue;
    const auto& [ticket, group] = *queue.begin();
    const Head& head = heads_.at(*group);
    const int urgent = urgency(head.rank, head.enqueued, now);
    if (out != nullptr && (urgent < most.first || (urgent == most.first && ticket > most.second))) {
      continue;
    }
    out = group;
    most = {urgent, ticket};
  }
  return out;
}

std::vector<std::string> HeadIndex::due(WallTime now) {
  ripen(now);
  std::map<std::uint64_t, const std::string*> all;
  for (const auto& queue : due_) all.insert(queue.begin(), queue.end());
  std::vector<std::string> out;
  out.reserve(all.size());
  for (const auto& [ticket, group] : all) out.push_back(*group);
  return out;
}

std::optional<WallTime> HeadIndex::next_due() const {
  for (const auto& queue : due_) {
    if (!queue.empty()) return WallTime::min();
  }
  if (later_.empty()) return std::nullopt;
  return later_.begin()->first.first;
}

const std::string* HeadIndex::expired(WallTime now) const {
  if (expiries_.empty() || expiries_.begin()->first.first > now) return nullptr;
  return expiries_.begin()->second;
}

std::optional<WallTime> HeadIndex::next_expiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first.first;
}

}  // namespace tocsin::actions
