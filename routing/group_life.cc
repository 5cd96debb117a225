// Groups: their turns, their end, and their restoring (docs/routing.md).
#include <algorithm>

#include "routing/groups.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

constexpr std::size_t kHashLength = 64;
constexpr Duration kLeastLogRetention = std::chrono::hours(24);
/// The generation is remembered as long as deliveries are kept: a notification id of the past must
/// not come again.
constexpr Duration kGenerationRetention = std::chrono::hours(24 * 90);

Duration log_retention(const Group& group) {
  return group.route == nullptr ? kLeastLogRetention
                                : std::max(2 * group.route->longest_repeat(), kLeastLogRetention);
}

}  // namespace

// ---- turns

void Groups::arrange(const Group& group) {
  if (const auto next = group.next_flush()) {
    agenda_.set(Due::flush_group, group.hash, *next);
  } else {
    agenda_.cancel(Due::flush_group, group.hash);
  }
}

std::optional<WallTime> Groups::tick_for(Group& group, WallTime due, WallTime now) {
  if (!group.next_tick || *group.next_tick > now) return due;
  const WallTime newest = last_on_grid(*group.next_tick, group.route->group_interval, now);
  if (newest <= due) return newest;
  group.next_tick = newest;
  group.urgent_at.reset();
  arrange(group);
  return std::nullopt;
}

void Groups::advance(Group& group, WallTime tick, WallTime now) {
  const Duration interval = group.route->group_interval;
  if (group.urgent_at && *group.urgent_at <= tick) {
    group.urgent_at.reset();
    group.last_urgent = tick;
  }
  // An urgent flush leaves the grid where it is, so that repeats stay on their multiples.
  if (!group.running || !group.next_tick) group.next_tick = tick;
  if (*group.next_tick <= tick) group.next_tick = *group.next_tick + interval;
  if (*group.next_tick <= now) {
    group.next_tick = last_on_grid(*group.next_tick, interval, now) + interval;
  }
  group.running = true;
  group.held = false;
  group.last_tick = tick;
  ++group.flush_seq;
}

// ---- the end

void Groups::dissolve(Group& group, WallTime at) {
  group.next_tick.reset();
  group.urgent_at.reset();
  group.running = false;
  group.held = false;
  group.absent_since = at;
  --active_;
  --active_of_route_[group.route_id];
  agenda_.set(Due::forget_group, group.hash, at + log_retention(group));
  if (group.overflow) overflows_.push_back({group.route_id, false, at});
}

void Groups::forget(const Agenda::Entry& due) {
  Group& group = table_.at(due.key);
  if (!group.members.empty() || !group.absent_since) return;
  if (const WallTime end = *group.absent_since + kGenerationRetention; end > due.at) {
    log_.forget_group(group.hash);
    agenda_.set(Due::forget_group, group.hash, end);
    return;
  }
  erase(due.key);
}

void Groups::erase(const std::string& hash) {
  const Group& group = table_.at(hash);
  hash_of_key_.erase(group.route_id + '\x1f' + group.key);
  agenda_.cancel(Due::flush_group, hash);
  agenda_.cancel(Due::forget_group, hash);
  table_.erase(hash);
  log_.drop_group(hash);
}

// ---- state

core::Status Groups::restore(std::string_view hash, std::string_view value) {
  const core::Status read = table_.restore(hash, value);
  if (!read) return read;
  Group& group = table_.at(hash);
  group.hash = hash;
  group.logs = &log_.of(group.hash);
  return read;
}

core::Status Groups::restore_member(std::string_view rest) {
  if (rest.size() < kHashLength + 2 || rest[kHashLength] != '/') {
    return core::Error{core::Code::data_loss, "key without group and member"};
  }
  old_members_.emplace_back(rest.substr(0, kHashLength), rest.substr(kHashLength + 1));
  return core::ok();
}

void Groups::link() {
  // Who is a member stands in the issue's record; once it was a record of its own.
  for (const auto& [hash, key] : std::exchange(old_members_, {})) {
    IssueState* issue = issues_.state_of(key);
    gone_members_.insert("member/" + hash + "/" + key);
    if (issue == nullptr) continue;
    issue->joined.push_back(hash);
    issues_.touch(*issue);
  }
  for (const auto& [key, issue] : issues_.in_order()) {
    std::vector<std::string> hashes = std::exchange(issue->joined, {});
    std::sort(hashes.begin(), hashes.end());
    for (const std::string& hash : hashes) {
      Group* group = table_.find(hash);
      if (group == nullptr) {
        issues_.touch(*issue);
      } else if (group->members.emplace(issue->key, Group::Member{issue, false}).second) {
        issue->groups.push_back(group);
      }
    }
  }
  for (const auto& [hash, group] : table_.in_order()) {
    group->route = tree_.find(group->route_id);
  }
}

void Groups::abandon(Group& group, WallTime now) {
  const auto members = group.members;
  for (const auto& [key, member] : members) leave(group, *member.state);
  group.next_tick.reset();
  group.urgent_at.reset();
  group.running = false;
  group.absent_since = now;
  touch(group);
}

void Groups::start(WallTime now, core::FunctionRef<bool(const Group&)> quiet) {
  for (const auto& [hash, group] : table_.in_order()) {
    for (auto& [key, member] : group->members) {
      member.strayed = group->route != nullptr && !belongs(*group, *member.state);
    }
    hash_of_key_[group->route_id + '\x1f' + group->key] = group->hash;
    if (!group->active()) {
      const WallTime since = group->absent_since.value_or(now);
      group->absent_since = since;
      agenda_.set(Due::forget_group, group->hash, since + log_retention(*group));
      continue;
    }
    ++active_;
    ++active_of_route_[group->route_id];
    // A shortened interval also caps the one that runs.
    const WallTime cap = now + std::max({group->route->group_interval, group->route->group_wait,
                                         limits_.catchup_hold_max});
    if (*group->next_tick > cap) {
      group->next_tick = cap;
      touch(*group);
    }
    // Ticks at which there was nothing to say may have passed without a record; what comes now must
    // not be told at one of them.
    if (quiet(*group)) advance(*group, *group->next_tick, now);
    group->changed = true;  // the configuration may be another one
    arrange(*group);
  }
}

void Groups::take_gone_members(std::vector<StateRecord>& out) {
  for (const std::string& key : std::exchange(gone_members_, {})) out.push_back({key, {}});
}

}  // namespace tocsin::routing
