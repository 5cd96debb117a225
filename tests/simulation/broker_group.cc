#include "tests/simulation/broker_group.h"

#include <algorithm>
#include <utility>

#include "core/identity.h"

namespace tocsin::simulation {

void Group::begin_round() {
  preparing_ = !members_.empty();
  for (auto& [id, member] : members_) member.joined = false;
}

void Group::join(std::uint64_t id, std::vector<std::string> topics, core::Duration now) {
  Member member;
  member.topics = std::move(topics);
  member.seen = now;
  members_.emplace(id, std::move(member));
  begin_round();
}

void Group::leave(std::uint64_t id) {
  if (members_.erase(id) == 0) return;
  begin_round();
}

void Group::throw_out_all() {
  members_.clear();
  preparing_ = false;
}

void Group::expire(core::Duration now, core::Duration session) {
  const auto gone =
      std::erase_if(members_, [&](const auto& entry) { return now - entry.second.seen > session; });
  if (gone > 0) begin_round();
}

void Group::rebalance(std::uint64_t salt) {
  salt_ = salt;
  for (auto& [id, member] : members_) member.shaken = true;
  begin_round();
}

bool Group::may_commit(std::uint64_t id) const {
  const auto it = members_.find(id);
  return it != members_.end() && it->second.generation == generation_;
}

std::uint64_t Group::generation_of(std::uint64_t id) const {
  const auto it = members_.find(id);
  return it == members_.end() ? 0 : it->second.generation;
}

Group::Step Group::advance(std::uint64_t id, core::Duration now, bool eager,
                           const std::map<std::string, std::int32_t>& all) {
  const auto it = members_.find(id);
  if (it == members_.end()) return {};
  Member& member = it->second;
  member.seen = now;
  if (preparing_ && !member.joined) {
    const bool all_back = eager || std::exchange(member.shaken, false);
    if (all_back && !member.owned.empty()) {
      return {Step::Kind::give_back, {member.owned.begin(), member.owned.end()}};
    }
    member.joined = true;
    const bool everybody = std::all_of(members_.begin(), members_.end(),
                                       [](const auto& entry) { return entry.second.joined; });
    if (everybody) complete(eager, all);
  }
  if (preparing_ || member.generation == generation_) return {};
  // A round is over: first what has to go, then what came.
  std::vector<core::StreamPartition> gone;
  std::set_difference(member.owned.begin(), member.owned.end(), member.target.begin(),
                      member.target.end(), std::back_inserter(gone));
  if (!gone.empty()) {
    member.generation = generation_;  // it may commit while it gives back
    return {Step::Kind::give_back, std::move(gone)};
  }
  std::vector<core::StreamPartition> fresh;
  std::set_difference(member.target.begin(), member.target.end(), member.owned.begin(),
                      member.owned.end(), std::back_inserter(fresh));
  member.generation = generation_;
  member.owned.insert(fresh.begin(), fresh.end());
  return {Step::Kind::take, std::move(fresh)};
}

void Group::given_back(std::uint64_t id, const std::vector<core::StreamPartition>& partitions) {
  const auto it = members_.find(id);
  if (it == members_.end()) return;
  for (const auto& where : partitions) it->second.owned.erase(where);
  // What was given back is dealt out in one more round.
  if (!preparing_) begin_round();
}

void Group::complete(bool eager, const std::map<std::string, std::int32_t>& all) {
  preparing_ = false;
  ++generation_;
  auto wanted = desired(all);
  for (auto& [id, member] : members_) {
    member.target = std::move(wanted[id]);
    if (eager) continue;
    // What another one still holds comes in a later round, when it has been given back.
    for (const auto& [other, theirs] : members_) {
      if (other == id) continue;
      for (const auto& where : theirs.owned) member.target.erase(where);
    }
  }
}

std::map<std::uint64_t, Partitions> Group::desired(
    const std::map<std::string, std::int32_t>& all) const {
  std::map<std::uint64_t, Partitions> wanted;
  std::vector<std::uint64_t> ids;
  Partitions everything;
  for (const auto& [id, member] : members_) {
    ids.push_back(id);
    for (const auto& topic : member.topics) {
      const auto it = all.find(topic);
      for (std::int32_t p = 0; it != all.end() && p < it->second; ++p) {
        everything.insert({topic, p});
      }
    }
  }
  if (ids.empty()) return wanted;
  if (salt_ != 0) {
    for (const auto& where : everything) {
      const auto text = where.stream + "/" + std::to_string(where.partition);
      wanted[ids[(core::name_hash(text) ^ salt_) % ids.size()]].insert(where);
    }
    return wanted;
  }
  const std::size_t quota = (everything.size() + ids.size() - 1) / ids.size();
  for (const auto& [id, member] : members_) {
    for (const auto& where : member.owned) {
      if (wanted[id].size() < quota && everything.erase(where) != 0) wanted[id].insert(where);
    }
  }
  for (const auto& where : everything) {
    const auto least = std::min_element(ids.begin(), ids.end(), [&](auto left, auto right) {
      return wanted[left].size() < wanted[right].size();
    });
    wanted[*least].insert(where);
  }
  return wanted;
}

}  // namespace tocsin::simulation
