// How a tree is put together from its configuration, and what is wrong with one.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/text.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

using core::Result;
using core::Status;
/// Puts the tree together; every error names the route.
class RouteTree::Builder {
 public:
  explicit Builder(RouteTree& tree) : tree_(tree) {}

  Status integrations(std::vector<Integration> integrations) {
    for (Integration& integration : integrations) {
      auto filter = Matchers::parse(integration.when);
      if (!filter) return filter.error().in("when of integration " + integration.id);
      const auto& kept =
          tree_.integrations_.emplace_back(std::make_unique<Integration>(std::move(integration)));
      if (!tree_.integration_of_id_.try_emplace(kept->id, kept.get()).second) {
        return core::invalid_argument("two integrations have the id '" + kept->id + "'");
      }
      if (!filter->empty()) tree_.filters_.emplace(kept.get(), std::move(*filter));
    }
    return core::ok();
  }

  Status root(const RouteConfig& config) {
    if (!config.matchers.empty()) return core::invalid_argument("the root route has no matchers");
    if (config.proceed) return core::invalid_argument("the root route has no continue");
    if (config.mute_times || config.active_times) {
      return core::invalid_argument("the root route has no time intervals");
    }
    // A configuration without `route` is an empty root: only rules with actions tell anybody.
    if (config.receivers.empty() && !config.routes.empty()) {
      return core::invalid_argument("the root route needs a receiver");
    }
    Route defaults;
    defaults.group_by = {"job", "run_uid"};
    defaults.group_wait = std::chrono::seconds(30);
    defaults.group_interval = std::chrono::minutes(5);
    defaults.repeat = {RepeatStep{}};
    defaults.urgent_wait = std::chrono::seconds(2);
    defaults.urgent_min_gap = std::chrono::seconds(30);
    auto node = add(config, defaults, "{}", "{}");
    if (!node) return node.error();
    tree_.root_ = *node;
    return core::ok();
  }

  Status beside(const RuleActions& actions) {
    RouteConfig config;
    config.matchers = {to_text({"rule", MatchOperator::equal, actions.rule})};
    config.receivers = actions.receivers;
    config.group_by = {{"rule", "run_uid"}};
    config.group_wait = core::Duration::zero();
    // A restarted job's new episode must not wait for the interval of the first.
    config.immediate_on = config.matchers.front();
    config.urgent_wait = core::Duration::zero();
    config.urgent_min_gap = std::chrono::seconds(1);
    const std::string matcher = "{" + config.matchers.front() + "}";
    Route parent = tree_.routes_[tree_.root_];
    parent.escalation.clear();  // who is paged is for the tree to say
    parent.on_failure.reset();
    parent.flap.reset();
    auto node = add(config, parent, "actions/" + matcher, "{}/" + matcher);
    if (!node) return node.error();
    tree_.routes_[*node].beside = true;
    tree_.beside_.push_back(*node);
    return core::ok();
  }

 private:
  Result<std::size_t> add(const RouteConfig& config, const Route& parent, const std::string& id,
                          const std::string& path) {
    Route route;
    route.id = config.id.empty() ? id : config.id;
    route.path = path;
    const std::size_t index = tree_.routes_.size();
    if (!tree_.index_of_id_.try_emplace(route.id, index).second) {
      return core::invalid_argument("two routes have the id '" + route.id + "'");
    }
    if (Status status = inherit(config, parent, route); !status) {
      return status.error().in("route " + route.id);
    }
    tree_.routes_.push_back(route);  // its place is taken before its children's
    std::vector<std::size_t> children;
    for (std::size_t i = 0; i < config.routes.size(); ++i) {
      auto matchers = Matchers::parse(config.routes[i].matchers);
      if (!matchers) return matchers.error().in("route " + std::to_string(i) + " of " + route.id);
      const std::string own = matchers->canonical();
      auto child =
          add(config.routes[i], route, id + "/" + std::to_string(i) + own, path + "/" + own);
      if (!child) return child.error();
      children.push_back(*child);
    }
    tree_.routes_[index].children = std::move(children);
    return index;
  }

  Status inherit(const RouteConfig& config, const Route& parent, Route& route) {
    auto matchers = Matchers::parse(config.matchers);
    if (!matchers) return matchers.error();
    route.matchers = std::move(*matchers);
    for (const Matchers::Term& term : route.matchers.terms())
      route.names.push_back(name(term.name));
    route.proceed = config.proceed;
    route.receivers = config.receivers.empty() ? parent.receivers : config.receivers;
    route.group_wait = config.group_wait.value_or(parent.group_wait);
    route.group_interval = config.group_interval.value_or(parent.group_interval);
    route.repeat = config.repeat_interval.value_or(parent.repeat);
    route.urgent_wait = config.urgent_wait.value_or(parent.urgent_wait);
    route.urgent_min_gap = config.urgent_min_gap.value_or(parent.urgent_min_gap);
    note_own(config, route);
    route.mute_times = config.mute_times.value_or(std::vector<std::string>());
    route.active_times = config.active_times.value_or(std::vector<std::string>());
    if (route.group_interval <= core::Duration::zero()) {
      return core::invalid_argument("group_interval must be greater than zero");
    }
    if (route.group_wait < core::Duration::zero()) {
      return core::invalid_argument("group_wait must not be negative");
    }
    if (Status status = check_repeat(route.repeat); !status) return status;
    if (Status status = grouping(config, parent, route); !status) return status;
    if (!config.immediate_on.empty()) {
      auto immediate = Matchers::parse(config.immediate_on);
      if (!immediate) return immediate.error().in("immediate_on");
      route.immediate_on = std::move(*immediate);
    }
    route.escalation = config.further.steps.value_or(parent.escalation);
    route.on_failure = config.further.on_failure;
    if (!route.on_failure) route.on_failure = parent.on_failure;
    route.propagate_ack = config.further.propagate_ack.value_or(parent.propagate_ack);
    route.flap = config.flap;
    if (!route.flap) route.flap = parent.flap;
    if (Status status = resolve_receivers(route); !status) return status;
    return resolve_further(route);
  }

  static void note_own(const RouteConfig& config, Route& route) {
    const auto note = [&](const char* key, bool said) {
      if (said) route.own.insert(key);
    };
    note("receivers", !config.receivers.empty());
    note("group_by", config.group_by.has_value());
    note("group_wait", config.group_wait.has_value());
    note("group_interval", config.group_interval.has_value());
    note("repeat_interval", config.repeat_interval.has_value());
    note("immediate_on", !config.immediate_on.empty());
    note("urgent_wait", config.urgent_wait.has_value());
    note("urgent_min_gap", config.urgent_min_gap.has_value());
    note("mute_time_intervals", config.mute_times.has_value());
    note("active_time_intervals", config.active_times.has_value());
    note("escalation", config.further.steps.has_value());
    note("on_delivery_failure", config.further.on_failure.has_value());
    note("propagate_ack", config.further.propagate_ack.has_value());
    note("flap", config.flap.has_value());
  }

  static Status check_repeat(const std::vector<RepeatStep>& steps) {
    if (steps.empty()) return core::invalid_argument("repeat_interval is an empty list");
    core::Duration reached{};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].every <= core::Duration::zero()) {
        return core::invalid_argument("repeat_interval must be greater than zero");
      }
      const bool last = i + 1 == steps.size();
      if (!steps[i].until && !last) {
        return core::invalid_argument("only the last step of repeat_interval may lack until");
      }
      if (steps[i].until && *steps[i].until <= reached) {
        return core::invalid_argument("until must grow from step to step of repeat_interval");
      }
      if (steps[i].until) reached = *steps[i].until;
    }
    return core::ok();
  }

  static Status grouping(const RouteConfig& config, const Route& parent, Route& route) {
    route.by_all = parent.by_all;
    route.group_by = parent.group_by;
    if (!config.group_by) return core::ok();
    route.by_all = false;
    route.group_by = *config.group_by;
    std::set<std::string> seen;
    for (const std::string& label : route.group_by) {
      if (!seen.insert(label).second) {
        return core::invalid_argument("group_by names '" + label + "' twice");
      }
    }
    if (seen.count("...") > 0) {
      if (seen.size() > 1) return core::invalid_argument("group_by mixes ... with label names");
      route.by_all = true;
      route.group_by.clear();
    }
    return core::ok();
  }

  Status add_receiver(const std::string& receiver, std::vector<const Integration*>& out) {
    const auto found = tree_.integrations_of(receiver);
    for (const Integration* integration : found) {
      if (std::find(out.begin(), out.end(), integration) == out.end()) out.push_back(integration);
    }
    if (!found.empty()) return core::ok();
    std::vector<std::string> names;
    for (const auto& integration : tree_.integrations_) names.push_back(integration->receiver);
    const auto near = core::nearest(receiver, names);
    return core::invalid_argument("no receiver is called '" + receiver + "'" +
                                  (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  Status resolve_receivers(Route& route) {
    for (const std::string& receiver : route.receivers) {
      if (Status status = add_receiver(receiver, route.integrations); !status) return status;
    }
    return core::ok();
  }

  /// Those of the ladder and the backups; a backup may have one too.
  Status resolve_further(Route& route) {
    std::vector<const Integration*> all = route.integrations;
    for (const EscalationStep& step : route.escalation) {
      if (Status status = add_receiver(step.receiver, all); !status) return status;
    }
    if (route.on_failure) {
      if (Status status = add_receiver(route.on_failure->receiver, all); !status) return status;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string fallback = all[i]->fallback;
      if (fallback.empty()) continue;
      if (Status status = add_receiver(fallback, all); !status) {
        return status.error().in("fallback of integration " + all[i]->id);
      }
    }
    const bool asks =
        !route.escalation.empty() || route.on_failure ||
        std::any_of(all.begin(), all.end(), [](const auto* one) { return !one->fallback.empty(); });
    if (asks) route.further = std::move(all);
    return core::ok();
  }

  std::size_t name(const std::string& label) {
    const auto at = std::find(tree_.names_.begin(), tree_.names_.end(), label);
    if (at == tree_.names_.end()) tree_.names_.push_back(label);
    return static_cast<std::size_t>(std::distance(
        tree_.names_.begin(), std::find(tree_.names_.begin(), tree_.names_.end(), label)));
  }

  RouteTree& tree_;
};

Result<RouteTree> RouteTree::build(const RouteConfig& root,
                                   const std::vector<RuleActions>& rule_actions,
                                   std::vector<Integration> integrations) {
  RouteTree tree;
  Builder builder(tree);
  if (Status status = builder.integrations(std::move(integrations)); !status) return status.error();
  if (Status status = builder.root(root); !status) return status.error();
  for (const RuleActions& actions : rule_actions) {
    if (actions.receivers.empty()) continue;
    if (Status status = builder.beside(actions); !status) {
      return status.error().in("actions of rule " + actions.rule);
    }
  }
  return tree;
}

}  // namespace tocsin::routing
