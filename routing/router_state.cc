// Router: restoring state, following a changed configuration, handing over what changed
// (docs/routing.md).
#include <algorithm>
#include <utility>

#include "routing/router_impl.h"
#include "routing/tables/size.h"

namespace tocsin::routing {

namespace {

/// Of the runs in one message: beside its issues they must fit into a record.
constexpr std::size_t kMaxRunBytes = std::size_t{64} * 1024;

}  // namespace

using core::Status;
using core::WallTime;

Status Router::Impl::restore(std::string_view key, std::string_view value) {
  const std::size_t slash = key.find('/');
  const std::string_view kind = key.substr(0, slash);
  const std::string_view rest = slash == std::string_view::npos ? "" : key.substr(slash + 1);
  Status read = core::ok();
  if (kind == "issue") {
    read = issues_.restore(rest, value);
  } else if (kind == "group") {
    read = groups_.restore(rest, value);
  } else if (kind == "member") {
    read = old_members_.restore(rest);
  } else if (kind == "log") {
    read = log_.restore(rest, value);
  } else if (kind == "run") {
    read = runs_.restore(rest, value);
  } else if (kind == "silence") {
    read = silences_->restore(rest, value);
  } else if (kind == "seen") {
    read = dedup_.restore(rest, value);
  }
  if (read) return read;
  return core::Error{core::Code::data_loss, read.error().message}.in("router state " +
                                                                     std::string(key));
}

/// Groups whose route or grouping is gone are closed; routes that lost an integration close its
/// incident. Their issues are announced anew by restored().
void Router::Impl::close_unrouted(WallTime now) {
  for (const auto& [hash, group] : groups_.in_order()) {
    const bool kept = group->route != nullptr && group->route->grouping() == group->grouping;
    for (const auto& [id, log] : *group->logs) {
      const auto is_same = [&, &log_id = id](const Integration* one) { return one->id == log_id; };
      const bool told = kept && std::any_of(group->route->integrations.begin(),
                                            group->route->integrations.end(), is_same);
      if (!told && !(log.told.empty() && log.owed.empty())) teller_.close(*group, id, now);
    }
    if (!kept && group->active()) groups_.abandon(*group, now);
  }
}

void Router::Impl::restored(WallTime now) {
  if (restored_) return;
  dedup_.restored();
  issues_.restored();
  log_.restored([this](const std::string& group) { return groups_.find(group) != nullptr; });
  old_members_.link(issues_);
  groups_.link();
  runs_.restored();
  close_unrouted(now);
  groups_.start(now, options_.limits.catchup_hold_max,
                [&](const Group& group) { return teller_.passed_quietly(group, now); });
  for (const auto& [key, state] : issues_.in_order()) {
    if (state->firing) {
      groups_.route(*state, now, false);  // routes that are new since
    } else if (state->groups.empty()) {
      issues_.retire(*state);
    }
  }
  restored_ = true;
  intake_.tell_overflows();
  catchup_.start();
}

void Router::Impl::name_report(core::Issue& issue) const {
  const std::string* where = runs_.report_of(issue);
  if (where == nullptr) return;
  const bool told = std::any_of(issue.annotations.begin(), issue.annotations.end(),
                                [](const auto& one) { return one.first == "report"; });
  if (!told) issue.annotations.emplace_back("report", *where);  // else as its producer says
}

/// How the runs of the listed issues stand, and what was done about them.
void Router::Impl::name_runs(core::Notification& notification) const {
  std::size_t bytes = 0;
  for (const core::NotifiedIssue& one : notification.issues) {
    const core::RunRef& run = one.issue.run;
    const bool named = std::any_of(
        notification.runs.begin(), notification.runs.end(), [&](const core::RunTold& known) {
          return known.run.uid == run.uid && (run.attempt == 0 || known.run.attempt == run.attempt);
        });
    if (run.uid.nil() || named || bytes > kMaxRunBytes) continue;
    if (auto told = runs_.told(one.issue)) {
      bytes += approximate_bytes(*told);
      notification.runs.push_back(std::move(*told));
    }
  }
}

Output Router::Impl::take() {
  Output out;
  teller_.take(out);
  for (core::Notification& notification : out.notifications) {
    for (core::NotifiedIssue& one : notification.issues) name_report(one.issue);
    name_runs(notification);
  }
  out.transitions = issues_.take_transitions();
  groups_.take(out.state);
  issues_.take(out.state);
  log_.take(out.state);
  old_members_.take(out.state);
  runs_.take(out.state);
  dedup_.take(out.state);
  silences_->take(out.state);
  return out;
}

std::vector<StateRecord> Router::Impl::snapshot() const {
  std::vector<StateRecord> out;
  groups_.snapshot(out);
  issues_.snapshot(out);
  log_.snapshot(out);
  runs_.snapshot(out);
  dedup_.snapshot(out);
  silences_->snapshot(out);
  return out;
}

}  // namespace tocsin::routing
