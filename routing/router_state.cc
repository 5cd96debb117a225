// Router: restoring state, following a changed configuration, handing over what changed
// (docs/routing.md).
#include <algorithm>
#include <utility>

#include "routing/router_impl.h"
#include "routing/runs.h"
#include "routing/state_codec.h"
#include "routing/told.h"

namespace tocsin::routing {

using core::Error;
using core::Status;
using core::WallTime;

namespace {

constexpr std::size_t kHashLength = 64;

/// "member/<hash>/<rest>" without its kind → {hash, rest}; nullopt when it is none.
std::optional<std::pair<std::string, std::string>> split_key(std::string_view text) {
  if (text.size() < kHashLength + 2 || text[kHashLength] != '/') return std::nullopt;
  return std::pair{std::string(text.substr(0, kHashLength)),
                   std::string(text.substr(kHashLength + 1))};
}

}  // namespace

Status Router::Impl::restore(std::string_view key, std::string_view value) {
  const std::size_t slash = key.find('/');
  const std::string_view kind = key.substr(0, slash);
  const std::string_view rest = slash == std::string_view::npos ? "" : key.substr(slash + 1);
  const auto damaged = [&](const Error& error) {
    return Error{core::Code::data_loss, error.message}.in("router state " + std::string(key));
  };
  if (kind == "issue") {
    auto state = decode_issue_state(value);
    if (!state) return damaged(state.error());
    state->key = rest;
    issues_[std::string(rest)] = std::make_unique<IssueState>(std::move(*state));
  } else if (kind == "group") {
    auto group = decode_group(value);
    if (!group) return damaged(group.error());
    group->hash = rest;
    groups_[std::string(rest)] = std::make_unique<Group>(std::move(*group));
  } else if (kind == "member" || kind == "log") {
    auto parts = split_key(rest);
    if (!parts) return damaged({core::Code::data_loss, "key without group and member"});
    if (kind == "member") {
      unlinked_members_.push_back(std::move(*parts));
      return core::ok();
    }
    auto log = decode_log(value);
    if (!log) return damaged(log.error());
    unlinked_logs_.emplace_back(parts->first, parts->second, std::move(*log));
  } else if (kind == "run") {
    auto run = decode_run(value);
    if (!run) return damaged(run.error());
    runs_[std::string(rest)] = std::move(*run);
  } else if (kind == "seen") {
    const auto time = decode_time(value);
    if (!time) return damaged(time.error());
    const auto [at, fresh] = seen_.try_emplace(std::string(rest), *time);
    if (fresh) seen_order_.insert({*time, at->first});
  }
  return core::ok();
}

void Router::Impl::link_issues() {
  for (auto& [key, state] : issues_) {
    if (!state->firing) continue;
    ++firing_;
    if (const std::string run = run_of(state->issue); !run.empty()) firing_of_run_[run].insert(key);
    if (state->expires_at) agenda_.set(Due::expire_issue, key, *state->expires_at);
  }
}

void Router::Impl::link_members() {
  for (auto& [hash, integration, log] : unlinked_logs_) {
    const auto group = groups_.find(hash);
    if (group == groups_.end()) {
      touch("log/" + hash + "/" + integration);  // nothing left that it belongs to
    } else {
      for (const auto& one : log.pending) undelivered_.insert(one.decided_at);
      group->second->logs[integration] = std::move(log);
    }
  }
  std::sort(unlinked_members_.begin(), unlinked_members_.end());
  for (const auto& [hash, key] : unlinked_members_) {
    const auto group = groups_.find(hash);
    const auto issue = issues_.find(key);
    if (group == groups_.end() || issue == issues_.end()) {
      touch("member/" + hash + "/" + key);
      continue;
    }
    const Group::Member member{issue->second.get(), false};
    if (!group->second->members.emplace(key, member).second) continue;
    issue->second->groups.push_back(group->second.get());
  }
  unlinked_logs_.clear();
  unlinked_members_.clear();
}

void Router::Impl::link_runs() {
  for (const auto& [uid, run] : runs_) watch(uid, run);
}

/// A log whose integration is no longer told of this group: its incident is closed on the old key.
/// The log stays, so that no notification id can come twice.
void Router::Impl::close_log(Group& group, const std::string& integration_id, WallTime now) {
  TellLog& log = group.logs.at(integration_id);
  const Integration* integration = tree_.find_integration(integration_id);
  touch("log/" + group.hash + "/" + integration_id);
  if (integration == nullptr || !integration->enabled || !integration->stateful ||
      !integration->send_resolved || !incident_open(log) ||
      (log.told.empty() && log.owed.empty())) {
    log.told.clear();
    log.owed.clear();
    return;
  }
  Verdict verdict;
  verdict.reason = "regrouped";
  verdict.kind = core::NotificationKind::close;
  for (const auto& [key, member] : group.members) {
    if (const auto told = log.told.find(key); told != log.told.end()) {
      verdict.resolved.push_back({member.state, told->second.episode, false});
    } else if (const auto owed = log.owed.find(key); owed != log.owed.end()) {
      verdict.resolved.push_back({member.state, owed->second.episode, false});
    }
  }
  log.told.clear();
  log.owed.clear();
  ++log.seq;
  const Route none{};
  const FlushContext context{none, *integration, nullptr, now, {}};
  send(log, verdict, compose(group, context, verdict, log, now, options_.config_version));
  out_.decisions.push_back({integration_id, group.route_id, group.key, verdict.reason});
}

/// Groups whose route or grouping is gone are closed; routes that lost an integration close its
/// incident. Their issues are announced anew by arrange_all().
void Router::Impl::close_unrouted(WallTime now) {
  for (auto& [hash, group] : groups_) {
    group->route = tree_.find(group->route_id);
    const bool kept = group->route != nullptr && group->route->grouping() == group->grouping;
    for (const auto& [id, log] : group->logs) {
      const auto is_same = [&, &log_id = id](const Integration* one) { return one->id == log_id; };
      const bool told = kept && std::any_of(group->route->integrations.begin(),
                                            group->route->integrations.end(), is_same);
      if (!told && !(log.told.empty() && log.owed.empty())) close_log(*group, id, now);
    }
    if (kept || !group->active()) continue;
    const auto members = group->members;
    for (const auto& [key, member] : members) leave(*group, *member.state);
    group->next_tick.reset();
    group->urgent_at.reset();
    group->running = false;
    group->absent_since = now;
    touch(*group);
  }
}

void Router::Impl::arrange_all(WallTime now) {
  for (auto& [hash, group] : groups_) {
    for (const auto& [id, log] : group->logs) stats_.owed += log.owed.size();
    for (auto& [key, member] : group->members) {
      member.strayed = group->route != nullptr && !belongs(*group, *member.state);
    }
    hash_of_key_[group->route_id + '\x1f' + group->key] = hash;
    if (!group->active()) {
      const WallTime since = group->absent_since.value_or(now);
      group->absent_since = since;
      agenda_.set(Due::forget_group, hash, since + log_retention(*group));
      continue;
    }
    ++active_groups_;
    ++active_of_route_[group->route_id];
    // A shortened interval also caps the one that runs.
    const WallTime cap = now + std::max({group->route->group_interval, group->route->group_wait,
                                         options_.limits.catchup_hold_max});
    if (*group->next_tick > cap) {
      group->next_tick = cap;
      touch(*group);
    }
    // Ticks at which there was nothing to say may have passed without a record; what comes now must
    // not be told at one of them.
    if (restored_quiet(*group, now)) set_next(*group, *group->next_tick, now);
    group->changed = true;  // the configuration may be another one
    arrange(*group);
  }
  for (auto& [key, state] : issues_) {
    if (state->firing) {
      route(*state, now, false);  // routes that are new since
    } else if (state->groups.empty()) {
      agenda_.set(Due::forget_issue, key, state->last_transition + options_.limits.retention);
    }
  }
}

void Router::Impl::restored(WallTime now) {
  if (restored_) return;
  link_issues();
  link_members();
  link_runs();
  close_unrouted(now);
  arrange_all(now);
  restored_ = starting_ = true;
}

std::optional<std::string> Router::Impl::encoded(const std::string& key) const {
  const std::size_t slash = key.find('/');
  const std::string kind = key.substr(0, slash);
  const std::string rest = key.substr(slash + 1);
  if (kind == "issue") {
    const auto found = issues_.find(rest);
    if (found != issues_.end()) return encode(*found->second);
  } else if (kind == "group") {
    const auto found = groups_.find(rest);
    if (found != groups_.end()) return encode(*found->second);
  } else if (kind == "run") {
    const auto found = runs_.find(rest);
    if (found != runs_.end()) return encode(found->second);
  } else if (kind == "seen") {
    const auto found = seen_.find(rest);
    if (found != seen_.end()) return encode_time(found->second);
  } else if (const auto parts = split_key(rest)) {
    const auto group = groups_.find(parts->first);
    if (group == groups_.end()) return std::nullopt;
    if (kind == "member") {
      return group->second->members.count(parts->second) > 0 ? std::optional<std::string>("1")
                                                             : std::nullopt;
    }
    const auto log = group->second->logs.find(parts->second);
    if (log != group->second->logs.end()) return encode(log->second);
  }
  return std::nullopt;
}

Output Router::Impl::take() {
  out_.state.reserve(dirty_.size());
  for (const std::string& key : dirty_) out_.state.push_back({key, encoded(key)});
  dirty_.clear();
  sent_bytes_ = 0;
  return std::exchange(out_, {});
}

std::vector<StateRecord> Router::Impl::snapshot() const {
  std::set<std::string> keys;
  for (const auto& [key, state] : issues_) keys.insert("issue/" + key);
  for (const auto& [uid, run] : runs_) keys.insert("run/" + uid);
  for (const auto& [id, time] : seen_) keys.insert("seen/" + id);
  for (const auto& [hash, group] : groups_) {
    keys.insert("group/" + hash);
    for (const auto& [key, state] : group->members) keys.insert("member/" + hash + "/" + key);
    for (const auto& [id, log] : group->logs) keys.insert("log/" + hash + "/" + id);
  }
  std::vector<StateRecord> records;
  records.reserve(keys.size());
  for (const std::string& key : keys) records.push_back({key, encoded(key)});
  return records;
}

}  // namespace tocsin::routing
