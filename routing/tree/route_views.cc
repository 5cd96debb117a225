// The tree as people look at it.
#include <functional>
#include <string>
#include <utility>

#include "routing/tree/route_tree.h"

namespace tocsin::routing {
namespace {

std::string list_text(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return "[" + out + "]";
}

std::string ladder_text(const std::vector<RepeatStep>& steps) {
  if (steps.size() == 1 && !steps.front().until) return core::to_text(steps.front().every);
  std::string out;
  for (const RepeatStep& step : steps) {
    out += out.empty() ? "{" : ", {";
    if (step.until) out += "until: " + core::to_text(*step.until) + ", ";
    out += "every: " + core::to_text(step.every) + "}";
  }
  return "[" + out + "]";
}

std::string escalation_text(const std::vector<EscalationStep>& steps) {
  std::string out;
  for (const EscalationStep& step : steps) {
    out += out.empty() ? "{" : ", {";
    out += "after: " + core::to_text(step.after) + ", receiver: " + step.receiver + "}";
  }
  return "[" + out + "]";
}

/// Keys that a route has only where somebody wrote them.
void add_rare_settings(const Route& route,
                       const std::function<void(std::string name, std::string value)>& add) {
  if (!route.mute_times.empty()) add("mute_time_intervals", list_text(route.mute_times));
  if (!route.active_times.empty()) add("active_time_intervals", list_text(route.active_times));
  if (!route.escalation.empty()) add("escalation", escalation_text(route.escalation));
  if (route.on_failure) {
    add("on_delivery_failure", "{after: " + core::to_text(route.on_failure->after) +
                                   ", receiver: " + route.on_failure->receiver + "}");
  }
  if (route.propagate_ack) add("propagate_ack", "true");
  if (route.flap) {
    add("flap", "{episodes: " + std::to_string(route.flap->episodes) +
                    ", within: " + core::to_text(route.flap->within) +
                    ", hold: " + core::to_text(route.flap->hold) + "}");
  }
}

}  // namespace

void RouteTree::view(std::size_t node, std::size_t depth, std::vector<RouteView>& out) const {
  const Route& route = routes_[node];
  RouteView one;
  one.id = route.id;
  one.path = route.path;
  one.depth = depth;
  one.matchers = route.matchers.canonical();
  one.proceed = route.proceed;
  one.beside = route.beside;
  one.receivers = route.receivers;
  one.own_receivers = route.own.contains("receivers");
  for (const Integration* integration : route.integrations) {
    one.integrations.push_back(integration->id);
  }
  const auto add = [&](std::string name, std::string value) {
    const bool own = route.own.contains(name);
    one.settings.push_back({std::move(name), std::move(value), own});
  };
  add("group_by", route.by_all ? "[...]" : list_text(route.group_by));
  add("group_wait", core::to_text(route.group_wait));
  add("group_interval", core::to_text(route.group_interval));
  add("repeat_interval", ladder_text(route.repeat));
  if (route.immediate_on) {
    add("immediate_on", route.immediate_on->canonical());
    add("urgent_wait", core::to_text(route.urgent_wait));
    add("urgent_min_gap", core::to_text(route.urgent_min_gap));
  }
  add_rare_settings(route, add);
  out.push_back(std::move(one));
  for (const std::size_t child : route.children) view(child, depth + 1, out);
}

bool RouteTree::asks_for(std::string_view name, std::string_view value) const noexcept {
  for (const Route& route : routes_) {
    for (const Matchers::Term& term : route.matchers.terms()) {
      if (term.op == MatchOperator::equal && term.name == name && term.value == value) return true;
    }
  }
  return false;
}

std::vector<RouteView> RouteTree::views() const {
  std::vector<RouteView> out;
  for (const std::size_t node : beside_) view(node, 0, out);
  view(root_, 0, out);
  return out;
}

}  // namespace tocsin::routing
