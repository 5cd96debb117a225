#include "actions/delivery/lane_queue.h"

#include <algorithm>
#include <cstddef>

namespace tocsin::actions {

using core::WallTime;

std::optional<WallTime> LaneQueue::oldest() const {
  if (ages_.empty()) return std::nullopt;
  return ages_.begin()->first;
}

void LaneQueue::push(Item item) {
  Group& group = groups_[item.notification->group_key];
  group.push_back(std::move(item));
}

LaneQueue::Group* LaneQueue::find(const std::string& group) {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

Item* LaneQueue::under_way(const std::string& group) {
  Group* const found = find(group);
  return found != nullptr && !found->empty() && found->front().in_flight ? &found->front()
                                                                         : nullptr;
}

Item LaneQueue::take_first(const std::string& group) {
  Group& items = groups_.at(group);
  Item out = std::move(items.front());
  items.pop_front();
  return out;
}

namespace {

template <typename Predicate>
void move_out(LaneQueue::Group& group, Predicate goes, std::vector<Item>& out) {
  for (std::size_t i = 0; i < group.size();) {
    if (!goes(group[i])) {
      ++i;
      continue;
    }
    out.push_back(std::move(group[i]));
    group.erase(group.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

std::vector<Item> LaneQueue::take_expired(const std::string& group, WallTime now) {
  std::vector<Item> out;
  move_out(
      groups_.at(group), [&](const Item& item) { return !item.in_flight && item.expires <= now; },
      out);
  return out;
}

std::vector<Item> LaneQueue::take_all(std::vector<std::string>& touched) {
  std::vector<Item> out;
  for (auto& [key, group] : groups_) {
    touched.push_back(key);
    move_out(
        group, [](const Item& item) { return !item.in_flight; }, out);
  }
  return out;
}

void LaneQueue::index(const std::string& group) {
  fresh_.erase(group);
  failed_.erase(group);
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  if (found->second.empty()) {
    groups_.erase(found);
    return;
  }
  const Item& first = found->second.front();
  Head head{first.ticket,     first.rank,      first.enqueued,
            first.not_before, WallTime::max(), first.in_flight};
  for (const Item& item : found->second) {
    if (!item.in_flight) head.expires = std::min(head.expires, item.expires);
  }
  (tried(first) ? failed_ : fresh_).put(group, head);
}

const std::string* LaneQueue::expired(WallTime now) const {
  const std::string* const out = fresh_.expired(now);
  return out == nullptr ? failed_.expired(now) : out;
}

}  // namespace tocsin::actions
