// Groups: their end, and their restoring (docs/routing.md).
#include <algorithm>

#include "routing/tables/groups.h"

namespace tocsin::routing {

using core::Duration;
using core::WallTime;

namespace {

constexpr Duration kLeastLogRetention = std::chrono::hours(24);
/// The generation is remembered as long as deliveries are kept: a notification id of the past must
/// not come again.
constexpr Duration kGenerationRetention = std::chrono::hours(24 * 90);

Duration log_retention(const Group& group) {
  return group.route == nullptr ? kLeastLogRetention
                                : std::max(2 * group.route->longest_repeat(), kLeastLogRetention);
}

}  // namespace

// ---- the end

void Groups::forget_later(const Group& group, WallTime since) {
  agenda_.set(Due::forget_group, group.hash, since + log_retention(group));
}

void Groups::dissolve(Group& group, WallTime at) {
  turns_.end(group, at);
  group.held = false;
  capacity_.closed(group, at);
  forget_later(group, at);
}

void Groups::let_go(Group& group, WallTime now) {
  if (!group.active()) return;
  const auto members = group.members;
  for (const auto& [key, member] : members) {
    const IssueState& issue = *member.state;
    const bool over = !issue.firing && issue.issue.ends_at && *issue.issue.ends_at <= now;
    if (over && !told_in(*group.logs, issue.key)) leave(group, *member.state);
  }
  if (group.members.empty()) dissolve(group, now);
  turns_.arrange(group);
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

void Groups::link() {
  // In the order of their keys, so that each comes last in its groups.
  for (IssueState* issue : issues_.by_key()) {
    std::vector<std::string> hashes = std::exchange(issue->joined, {});
    std::sort(hashes.begin(), hashes.end());
    for (const std::string& hash : hashes) {
      Group* group = table_.find(hash);
      if (group == nullptr) {
        issues_.touch(*issue);
        continue;
      }
      const std::size_t before = group->members.size();
      group->members.emplace_hint(group->members.end(), issue->key, Group::Member{issue, false});
      if (group->members.size() > before) issue->groups.push_back(group);
    }
  }
  for (const auto& [hash, group] : table_.in_order()) {
    group->route = tree_.find(group->route_id);
  }
}

void Groups::abandon(Group& group, WallTime now) {
  const auto members = group.members;
  for (const auto& [key, member] : members) leave(group, *member.state);
  turns_.end(group, now);
  touch(group);
}

std::unordered_set<const IssueState*> Groups::start(
    WallTime now, Duration longest,
    core::FunctionRef<std::optional<WallTime>(const Group&)> quiet) {
  std::unordered_set<const IssueState*> strayed;
  for (const auto& [hash, group] : table_.in_order()) {
    for (auto& [key, member] : group->members) {
      member.strayed = group->route != nullptr && !belongs(*group, *member.state);
      if (member.strayed) strayed.insert(member.state);
    }
    hash_of_key_[group->route_id + '\x1f' + group->key] = group->hash;
    if (!group->active()) {
      const WallTime since = group->absent_since.value_or(now);
      group->absent_since = since;
      forget_later(*group, since);
      continue;
    }
    capacity_.opened(*group);
    // A shortened interval also caps the one that runs.
    const WallTime cap =
        now + std::max({group->route->group_interval, group->route->group_wait, longest});
    if (*group->next_tick > cap) {
      group->next_tick = cap;
      touch(*group);
    }
    // Ticks at which there was nothing to say may have passed without a record; what comes now must
    // not be told at one of them.
    while (const auto tick = quiet(*group)) turns_.advance(*group, *tick, now);
    group->changed = true;  // the configuration may be another one
    // Its record says neither: the next change of the group has to write it.
    group->unsaved = true;
    turns_.arrange(*group);
  }
  return strayed;
}

}  // namespace tocsin::routing
