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
  const auto kept = [&](const Status& read) { return read ? read : Status(damaged(read.error())); };
  if (kind == "issue") {
    const Status read = issues_.restore(rest, value);
    if (read) issues_.at(rest).key = rest;
    return kept(read);
  }
  if (kind == "group") {
    const Status read = groups_.restore(rest, value);
    if (read) groups_.at(rest).hash = rest;
    return kept(read);
  }
  if (kind == "run") return kept(runs_.restore(rest, value));
  if (kind == "seen") return kept(dedup_.restore(rest, value));
  if (kind != "member" && kind != "log") return core::ok();
  auto parts = split_key(rest);
  if (!parts) return damaged({core::Code::data_loss, "key without group and member"});
  if (kind == "member") {
    unlinked_members_.push_back(std::move(*parts));
    return core::ok();
  }
  auto log = decode_log(value);
  if (!log) return damaged(log.error());
  unlinked_logs_.emplace_back(parts->first, parts->second, std::move(*log));
  return core::ok();
}

void Router::Impl::link_issues() {
  for (const auto& [key, state] : issues_) {
    if (!state->firing) continue;
    ++firing_;
    if (const std::string run = run_of(state->issue); !run.empty()) firing_of_run_[run].insert(key);
    if (state->expires_at) agenda_.set(Due::expire_issue, key, *state->expires_at);
  }
}

void Router::Impl::link_logs() {
  for (auto& [hash, integration, log] : unlinked_logs_) {
    Group* group = groups_.find(hash);
    if (group == nullptr) {
      touch_log(hash, integration);  // nothing left that it belongs to
    } else {
      for (const auto& one : log.pending) undelivered_.insert(one.decided_at);
      group->logs[integration] = std::move(log);
    }
  }
  unlinked_logs_.clear();
}

/// Who is a member stands in the issue's record; once it was a record of its own.
void Router::Impl::link_members() {
  for (const auto& [hash, key] : unlinked_members_) {
    IssueState* issue = issues_.find(key);
    gone_members_.insert("member/" + hash + "/" + key);
    if (issue == nullptr) continue;
    issue->joined.push_back(hash);
    touch(*issue);
  }
  unlinked_members_.clear();
  for (const auto& [key, issue] : issues_) {
    std::vector<std::string> hashes = std::exchange(issue->joined, {});
    std::sort(hashes.begin(), hashes.end());
    for (const std::string& hash : hashes) {
      Group* group = groups_.find(hash);
      if (group == nullptr) {
        touch(*issue);
      } else if (group->members.emplace(key, Group::Member{issue.get(), false}).second) {
        issue->groups.push_back(group);
      }
    }
  }
}

/// A log whose integration is no longer told of this group: its incident is closed on the old key.
/// The log stays, so that no notification id can come twice.
void Router::Impl::close_log(Group& group, const std::string& integration_id, WallTime now) {
  TellLog& log = group.logs.at(integration_id);
  const Integration* integration = tree_.find_integration(integration_id);
  touch_log(group.hash, integration_id);
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
  for (const auto& [hash, group] : groups_) {
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
  for (const auto& [hash, group] : groups_) {
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
  for (const auto& [key, state] : issues_) {
    if (state->firing) {
      route(*state, now, false);  // routes that are new since
    } else if (state->groups.empty()) {
      agenda_.set(Due::forget_issue, key, state->last_transition + options_.limits.retention);
    }
  }
}

void Router::Impl::restored(WallTime now) {
  if (restored_) return;
  dedup_.restored();
  link_issues();
  link_logs();
  link_members();
  runs_.restored();
  close_unrouted(now);
  arrange_all(now);
  restored_ = true;
  catchup_.start();
}

Output Router::Impl::take() {
  std::vector<StateRecord>& out = out_.state;
  groups_.take(out);
  issues_.take(out);
  for (const auto& [hash, integration] : std::exchange(changed_logs_, {})) {
    const Group* group = groups_.find(hash);
    StateRecord record{"log/" + hash + "/" + integration, std::nullopt};
    if (group != nullptr) {
      const auto log = group->logs.find(integration);
      if (log != group->logs.end()) record.value = encode(log->second);
    }
    out.push_back(std::move(record));
  }
  for (const std::string& key : std::exchange(gone_members_, {})) out.push_back({key, {}});
  runs_.take(out);
  dedup_.take(out);
  sent_bytes_ = 0;
  return std::exchange(out_, {});
}

std::vector<StateRecord> Router::Impl::snapshot() const {
  std::vector<StateRecord> out;
  groups_.snapshot(out);
  issues_.snapshot(out);
  for (const auto& [hash, group] : groups_) {
    for (const auto& [id, log] : group->logs) {
      out.push_back({"log/" + hash + "/" + id, encode(log)});
    }
  }
  runs_.snapshot(out);
  dedup_.snapshot(out);
  return out;
}

}  // namespace tocsin::routing
