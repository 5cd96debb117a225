#include "routing/standing/router_standing.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "routing/tables/flaps.h"
#include "routing/tables/state_codec.h"
#include "routing/tables/told.h"

namespace tocsin::routing {

using core::WallTime;

namespace {

constexpr std::size_t kGroupHashLength = 64;

template <typename Value>
using ByName = std::map<std::string, Value, std::less<>>;

IntegrationStanding standing_of(const std::string& integration, const TellLog& log) {
  IntegrationStanding out;
  out.integration = integration;
  out.incident_open = incident_open(log);
  out.messages = log.seq;
  out.last_message_at = log.last_tick;
  for (const auto& [key, told] : log.told) {
    out.told.push_back({key.text(), told.episode, told.severity, told.by == 0});
  }
  for (const auto& [key, owed] : log.owed)
    out.owed.push_back({key.text(), owed.episode, owed.since});
  for (const TellLog::Pending& one : log.pending) {
    out.waiting.push_back({one.id, one.kind, one.decided_at});
  }
  return out;
}

}  // namespace

struct RouterStanding::Parts {
  ByName<Group> groups;                                // by hash
  ByName<GroupLogs> logs;                              // by group hash, then integration
  ByName<std::vector<std::string>> joined;             // issue key → hashes of its groups
  ByName<std::set<std::string, std::less<>>> members;  // hash → issue keys
  ByName<FlapState> flaps;                             // by issue key
  std::uint64_t unreadable = 0;

  void issue(std::string_view key, std::optional<std::string_view> value);
  void log(std::string_view rest, std::optional<std::string_view> value);
  [[nodiscard]] GroupStanding view(const std::string& hash, const Group& group) const;
  [[nodiscard]] bool shown(const std::string& hash, const Group& group) const;
};

void RouterStanding::Parts::issue(std::string_view key, std::optional<std::string_view> value) {
  if (const auto known = joined.find(key); known != joined.end()) {
    for (const std::string& hash : known->second) {
      const auto group = members.find(hash);
      if (group == members.end()) continue;
      group->second.erase(known->first);
      if (group->second.empty()) members.erase(group);
    }
    joined.erase(known);
  }
  if (!value) return;
  auto state = decode_issue_state(*value);
  if (!state) {
    ++unreadable;
    return;
  }
  for (const std::string& hash : state->joined) members[hash].emplace(key);
  if (!state->joined.empty()) joined.emplace(key, std::move(state->joined));
}

void RouterStanding::Parts::log(std::string_view rest, std::optional<std::string_view> value) {
  if (rest.size() < kGroupHashLength + 2 || rest[kGroupHashLength] != '/') {
    ++unreadable;
    return;
  }
  const std::string hash(rest.substr(0, kGroupHashLength));
  const std::string integration(rest.substr(kGroupHashLength + 1));
  if (!value) {
    const auto found = logs.find(hash);
    if (found == logs.end()) return;
    found->second.erase(integration);
    if (found->second.empty()) logs.erase(found);
    return;
  }
  auto decoded = decode_log(*value);
  if (decoded) {
    logs[hash].insert_or_assign(integration, std::move(*decoded));
  } else {
    ++unreadable;
  }
}

bool RouterStanding::Parts::shown(const std::string& hash, const Group& group) const {
  if (group.active() || members.count(hash) > 0) return true;
  const auto found = logs.find(hash);
  return found != logs.end() &&
         std::any_of(found->second.begin(), found->second.end(), [](const auto& entry) {
           return !entry.second.told.empty() || !entry.second.owed.empty() ||
                  !entry.second.pending.empty();
         });
}

GroupStanding RouterStanding::Parts::view(const std::string& hash, const Group& group) const {
  GroupStanding out{hash,
                    group.key,
                    group.route_id,
                    group.labels,
                    group.overflow,
                    group.generation,
                    group.created_at,
                    group.next_flush(),
                    group.last_tick,
                    group.held,
                    {},
                    {}};
  if (const auto found = members.find(hash); found != members.end()) {
    out.members.assign(found->second.begin(), found->second.end());
  }
  if (const auto found = logs.find(hash); found != logs.end()) {
    for (const auto& [integration, log] : found->second) {
      out.integrations.push_back(standing_of(integration, log));
    }
  }
  return out;
}

RouterStanding::RouterStanding() : parts_(std::make_unique<Parts>()) {}
RouterStanding::~RouterStanding() = default;
RouterStanding::RouterStanding(RouterStanding&&) noexcept = default;
RouterStanding& RouterStanding::operator=(RouterStanding&&) noexcept = default;

void RouterStanding::apply(std::string_view key, std::optional<std::string_view> value) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return;
  const std::string_view kind = key.substr(0, slash);
  const std::string_view rest = key.substr(slash + 1);
  if (kind == "issue") return parts_->issue(rest, value);
  if (kind == "log") return parts_->log(rest, value);
  const auto keep = [&](auto& table, auto decoded) {
    if (decoded) {
      table.insert_or_assign(std::string(rest), std::move(*decoded));
    } else {
      ++parts_->unreadable;
    }
  };
  if (kind == "group") {
    if (value) return keep(parts_->groups, decode_group(*value));
    if (const auto found = parts_->groups.find(rest); found != parts_->groups.end())
      parts_->groups.erase(found);
  } else if (kind == "flap") {
    FlapState flap;
    const bool read = value && decode(*value, flap);
    parts_->unreadable += value && !read ? 1 : 0;
    if (read && !flap.flapping.empty()) {
      parts_->flaps.insert_or_assign(std::string(rest), std::move(flap));
    } else if (const auto found = parts_->flaps.find(rest); found != parts_->flaps.end()) {
      parts_->flaps.erase(found);
    }
  }
}

std::vector<GroupStanding> RouterStanding::groups() const {
  std::vector<GroupStanding> out;
  for (const auto& [hash, group] : parts_->groups) {
    if (parts_->shown(hash, group)) out.push_back(parts_->view(hash, group));
  }
  std::sort(out.begin(), out.end(), [](const GroupStanding& a, const GroupStanding& b) {
    return std::tie(a.key, a.hash) < std::tie(b.key, b.hash);
  });
  return out;
}

std::optional<GroupStanding> RouterStanding::find(std::string_view hash) const {
  if (hash.empty()) return std::nullopt;
  const auto found = parts_->groups.lower_bound(hash);
  const auto begins = [&](auto at) {
    return at != parts_->groups.end() && at->first.starts_with(hash);
  };
  if (!begins(found) || begins(std::next(found))) return std::nullopt;
  return parts_->view(found->first, found->second);
}

std::vector<GroupStanding> RouterStanding::groups_of(std::string_view issue_key) const {
  std::vector<GroupStanding> out;
  const std::string key(issue_key);
  const auto joined = parts_->joined.find(issue_key);
  for (const auto& [hash, group] : parts_->groups) {
    const bool member =
        joined != parts_->joined.end() &&
        std::find(joined->second.begin(), joined->second.end(), hash) != joined->second.end();
    const auto logs = parts_->logs.find(hash);
    const bool told = logs != parts_->logs.end() &&
                      std::any_of(logs->second.begin(), logs->second.end(), [&](const auto& entry) {
                        return entry.second.told.count(key) > 0 || entry.second.owed.count(key) > 0;
                      });
    if (member || told) out.push_back(parts_->view(hash, group));
  }
  std::sort(out.begin(), out.end(), [](const GroupStanding& a, const GroupStanding& b) {
    return std::tie(a.key, a.hash) < std::tie(b.key, b.hash);
  });
  return out;
}

std::optional<WallTime> RouterStanding::flapping_since(std::string_view issue_key) const {
  const auto found = parts_->flaps.find(issue_key);
  if (found == parts_->flaps.end()) return std::nullopt;
  WallTime first = WallTime::max();
  for (const auto& [route, since] : found->second.flapping) first = std::min(first, since);
  return first;
}

std::uint64_t RouterStanding::unreadable() const noexcept { return parts_->unreadable; }

}  // namespace tocsin::routing
