#include "app/api/alert_list.h"

#include <algorithm>

namespace tocsin::app {
namespace {

bool reaches(const AlertFilter& filter, const std::vector<routing::MatchedRoute>& leaves) {
  if (filter.receiver.empty()) return true;
  return std::any_of(leaves.begin(), leaves.end(), [&](const routing::MatchedRoute& leaf) {
    return std::any_of(leaf.receivers.begin(), leaf.receivers.end(), [&](const std::string& name) {
      return filter.receiver.matches(core::Labels{{"receiver", name}});
    });
  });
}

// The sources as their own alerts name them.
std::vector<std::string> source_fingerprints(const TopicView& view, const HeldBack& held) {
  std::vector<std::string> out;
  for (const routing::InhibitedBy& one : held.inhibitors) {
    const auto found = view.issues().find(one.source);
    if (found == view.issues().end()) continue;
    std::string name = core::fingerprint(found->second.newest.labels);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
  }
  return out;
}

bool is_shown(const AlertFilter& filter, const HeldBack& held) {
  if (!held.suppressed()) return filter.active;
  return (filter.silenced || held.silences.empty()) &&
         (filter.inhibited || held.inhibitors.empty()) && (filter.muted || held.muted_by.empty());
}

}  // namespace

core::Result<AlertFilter> AlertFilter::parse(const UrlQuery& query) {
  AlertFilter out;
  for (const auto& [name, place] :
       {std::pair{"active", &out.active}, std::pair{"silenced", &out.silenced},
        std::pair{"inhibited", &out.inhibited}, std::pair{"muted", &out.muted}}) {
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

void for_each_alert(const TopicView& view, const RoutingSight& sight, const AlertFilter& filter,
                    core::WallTime now, core::FunctionRef<void(const ShownAlert&)> show) {
  const HeldBackView held_back(view, sight, now);
  for (const auto& [key, seen] : view.issues()) {
    const core::Issue& issue = seen.newest;
    if (issue.shadow || !still_fires(view, issue, sight.resolve_timeout, now)) continue;
    core::Labels labels = issue.labels;
    if (!labels.has(kAlertName)) labels.set(kAlertName, issue.rule);
    if (!filter.labels.matches(labels)) continue;
    HeldBack held = held_back.of(view, key, seen);
    if (!is_shown(filter, held)) continue;
    std::vector<routing::MatchedRoute> leaves;
    if (sight.router != nullptr) leaves = sight.router->explain(issue.labels).leaves;
    if (!reaches(filter, leaves)) continue;
    std::vector<std::string> sources = source_fingerprints(view, held);
    show({std::move(labels), issue, seen.since, std::move(leaves), std::move(held),
          std::move(sources)});
  }
}

}  // namespace tocsin::app
