#include "app/config/route_moves.h"

#include <utility>

namespace tocsin::app {
namespace {

// What a reader of the file can change of a rule.
std::string compared_rule(const rules::RuleSettings& rule) {
  std::string out = rule.name + '\n' + rule.type + '\n' + rule.params_hash + '\n' +
                    std::string(core::to_string(rule.severity)) + '\n' + rule.runbook_url +
                    (rule.shadow ? "\nshadow" : "");
  for (const std::string& action : rule.actions) out += '\n' + action;
  return out;
}

std::string compared_rules(const AppConfig& config) {
  std::string out;
  for (const auto& rule : config.rules.rules) out += compared_rule(rule) + "\n\n";
  return out;
}

}  // namespace

core::Result<RoutePreview> RoutePreview::of(const AppConfig& config) {
  RoutePreview out;
  auto actions_of_rules = rule_actions(config.rules);
  if (!config.has_route && actions_of_rules.empty()) return out;
  auto integrations = routing_integrations(config.receivers);
  for (const routing::Integration& one : integrations) {
    if (!one.enabled) continue;
    if (one.when.empty()) {
      out.filters_.emplace(one.id, routing::Matchers());
      continue;
    }
    auto filter = routing::Matchers::parse(one.when);
    if (!filter) return filter.error().in("when of integration " + one.id);
    out.filters_.emplace(one.id, std::move(*filter));
  }
  routing::RouterOptions options;
  options.limits = config.router;
  options.time_intervals = config.time_intervals;
  auto router = routing::Router::create(config.route, std::move(actions_of_rules),
                                        std::move(integrations), std::move(options));
  if (!router) return router.error();
  out.router_ = std::move(*router);
  return out;
}

Destinations RoutePreview::destinations(const core::Labels& labels) const {
  Destinations out;
  if (!router_) return out;
  for (const routing::MatchedRoute& leaf : router_->explain(labels).leaves) {
    for (const std::string& id : leaf.integrations) {
      const auto filter = filters_.find(id);
      if (filter == filters_.end() || !filter->second.matches(labels)) continue;
      out[id].insert(leaf.route_id + " " + leaf.group_key);
    }
  }
  return out;
}

bool RoutePreview::tells(const std::string& integration, const core::Labels& labels) const {
  const auto filter = filters_.find(integration);
  return filter != filters_.end() && filter->second.matches(labels);
}

RouteMove move_between(const Destinations& before, const Destinations& after) {
  RouteMove out;
  for (const auto& [id, groups] : before) {
    const auto now = after.find(id);
    if (now == after.end()) {
      out.lost.push_back(id);
    } else if (now->second != groups) {
      out.regrouped.push_back(id);
    }
  }
  for (const auto& [id, groups] : after) {
    if (!before.contains(id)) out.gained.push_back(id);
  }
  return out;
}

std::vector<std::string> changed_sections(const AppConfig& before, const AppConfig& after) {
  std::set<std::string> out;
  for (const auto& [name, text] : before.sections) {
    const auto other = after.sections.find(name);
    if (other == after.sections.end() || other->second != text) out.insert(name);
  }
  for (const auto& [name, text] : after.sections) {
    if (!before.sections.contains(name)) out.insert(name);
  }
  if (compared_rules(before) != compared_rules(after)) out.insert("rules");
  return {out.begin(), out.end()};
}

}  // namespace tocsin::app
