#include "app/api/alert_list.h"

#include <algorithm>

namespace tocsin::app {
namespace {

struct ForcedSilence {
  const std::string* id;
  routing::SilenceScope scope;
};

std::vector<ForcedSilence> silences_in_force(const TopicView& view, core::WallTime now) {
  std::vector<ForcedSilence> out;
  for (const auto& [id, silence] : view.silences()) {
    if (!routing::in_force(silence, now)) continue;
    if (auto scope = routing::SilenceScope::of(silence)) out.push_back({&id, std::move(*scope)});
  }
  return out;
}

bool fires(const TopicView& view, const core::Issue& issue, core::Duration resolve_timeout,
           core::WallTime now) {
  if (issue.status != core::IssueStatus::firing || issue.shadow) return false;
  if (!issue.explicit_expiry && issue.ends_at.value_or(issue.time + resolve_timeout) <= now)
    return false;
  return view.outlived(issue) == core::Resolution::none;
}

bool reaches(const AlertFilter& filter, const std::vector<routing::MatchedRoute>& leaves) {
  if (filter.receiver.empty()) return true;
  return std::any_of(leaves.begin(), leaves.end(), [&](const routing::MatchedRoute& leaf) {
    return std::any_of(leaf.receivers.begin(), leaf.receivers.end(), [&](const std::string& name) {
      return filter.receiver.matches(core::Labels{{"receiver", name}});
    });
  });
}

// Names of the intervals that mute every route it reaches; empty: somebody is told.
std::vector<std::string> muting(const routing::Router* routing,
                                const std::vector<routing::MatchedRoute>& leaves,
                                core::WallTime now) {
  std::vector<std::string> out;
  for (const auto& leaf : leaves) {
    const auto reasons = routing->muted_by(leaf.route_id, now);
    if (reasons.empty()) return {};
    for (const std::string& reason : reasons) {
      const std::string name = reason.substr(reason.find(':') + 1);
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
  }
  return out;
}

}  // namespace

core::Result<AlertFilter> AlertFilter::parse(const UrlQuery& query) {
  AlertFilter out;
  for (const auto& [name, place] :
       {std::pair{"active", &out.active}, std::pair{"silenced", &out.silenced},
        std::pair{"muted", &out.muted}}) {
    const auto given = query.flag(name, true);
    if (!given) return given.error();
    *place = *given;
  }
  auto labels = routing::Matchers::parse(query.values("filter"));
  if (!labels) return labels.error().in("filter");
  out.labels = std::move(*labels);
  if (const auto name = query.value("receiver"); name && !name->empty()) {
    auto receiver =
        routing::Matchers::parse("receiver=~" + core::to_json(core::Value(std::string(*name))));
    if (!receiver) return receiver.error().in("receiver");
    out.receiver = std::move(*receiver);
  }
  return out;
}

void for_each_alert(const TopicView& view, const routing::Router* routing,
                    const AlertFilter& filter, core::Duration resolve_timeout, core::WallTime now,
                    core::FunctionRef<void(const ShownAlert&)> show) {
  const auto silences = silences_in_force(view, now);
  for (const auto& [key, seen] : view.issues()) {
    const core::Issue& issue = seen.newest;
    if (!fires(view, issue, resolve_timeout, now)) continue;
    core::Labels labels = issue.labels;
    if (!labels.has(kAlertName)) labels.set(kAlertName, issue.rule);
    if (!filter.labels.matches(labels)) continue;
    std::vector<std::string> silenced_by;
    for (const ForcedSilence& silence : silences) {
      if (silence.scope.matches(issue.labels)) silenced_by.push_back(*silence.id);
    }
    if (silenced_by.empty() ? !filter.active : !filter.silenced) continue;
    std::vector<routing::MatchedRoute> leaves;
    if (routing != nullptr) leaves = routing->explain(issue.labels).leaves;
    if (!reaches(filter, leaves)) continue;
    std::vector<std::string> muted_by = muting(routing, leaves, now);
    if (!muted_by.empty() && !filter.muted) continue;
    show({std::move(labels), issue, seen.since, std::move(leaves), std::move(silenced_by),
          std::move(muted_by)});
  }
}

}  // namespace tocsin::app
