// Who is told of what, as far as the configuration alone decides it.
#include "app/config/alarm_check.h"

#include <algorithm>
#include <set>

#include "app/config/file_check.h"
#include "app/config/input_check.h"
#include "app/config/route_check.h"
#include "app/config/silence_notice_route.h"

namespace tocsin::app {
namespace {

using actions::ConfiguredIntegration;
using rules::RuleSettings;

enum class Answer { no, maybe, yes };

// Only `rule`, and `severity` where the user fixed it, are known before an issue is there.
Answer meets(const routing::Matchers& matchers, const RuleSettings& rule) {
  Answer out = Answer::yes;
  for (std::size_t i = 0; i < matchers.terms().size(); ++i) {
    const std::string& name = matchers.terms()[i].name;
    if (name == "rule") {
      if (!matchers.holds(i, rule.name)) return Answer::no;
    } else if (name == "severity" && rule.severity_set) {
      if (!matchers.holds(i, core::to_string(rule.severity))) return Answer::no;
    } else {
      out = Answer::maybe;
    }
  }
  return out;
}

Answer meets(const std::vector<std::string>& texts, const RuleSettings& rule) {
  const auto matchers = routing::Matchers::parse(texts);
  return matchers ? meets(*matchers, rule) : Answer::maybe;  // reported where it was read
}

class Audience {
 public:
  explicit Audience(const AppConfig& config) : config_(config) {}

  /// Can any issue of this rule reach anybody?
  [[nodiscard]] bool told(const RuleSettings& rule) const {
    return any_acts(rule.actions, rule) || (config_.has_route && told(config_.route, {}, rule));
  }

 private:
  [[nodiscard]] bool any_acts(const std::vector<std::string>& receivers,
                              const RuleSettings& rule) const {
    return std::any_of(receivers.begin(), receivers.end(), [&](const std::string& name) {
      return std::any_of(config_.receivers.integrations.begin(),
                         config_.receivers.integrations.end(),
                         [&](const ConfiguredIntegration& one) {
                           return one.receiver == name && one.common.enabled &&
                                  !one.common.shadow && meets(one.common.when, rule) != Answer::no;
                         });
    });
  }

  [[nodiscard]] bool told(const routing::RouteConfig& route,
                          const std::vector<std::string>& inherited,
                          const RuleSettings& rule) const {
    const auto& receivers = route.receivers.empty() ? inherited : route.receivers;
    bool taken = false;  // a child takes every issue of this rule
    for (const routing::RouteConfig& child : route.routes) {
      const Answer answer = meets(child.matchers, rule);
      if (answer == Answer::no) continue;
      if (told(child, receivers, rule)) return true;
      taken = taken || answer == Answer::yes;
      if (answer == Answer::yes && !child.proceed) break;
    }
    return !taken && any_acts(receivers, rule);
  }

  const AppConfig& config_;
};

}  // namespace

std::string path_of_rule(const config::Reader& root, const RuleSettings& rule) {
  for (std::size_t i = 0;; ++i) {
    const std::string item = "rules[" + std::to_string(i) + "]";
    const auto value = root.value(item);
    if (!value) return "rules";
    const auto name = root.value(item + ".name");
    const auto use = name ? name : root.value(item + ".use");
    const core::Value& words = use ? *use : *value;
    const auto* text = core::as<std::string>(words);
    if (text == nullptr) continue;
    const auto* known = name ? nullptr : rules::find_rule(*text);
    if (*text == rule.name || (known != nullptr && known->name == rule.name)) return item;
  }
}

namespace {

void check_rules(const config::Reader& root, const AppConfig& config) {
  if (config.rules.rules.empty()) {
    const auto given = root.value("rules");
    const auto* list = given ? core::as<core::ValueList>(*given) : nullptr;
    if (list == nullptr || list->empty()) {
      root.warning("rules", "no rules: nothing is judged; choose rules from `tocsin rules list`");
    }
    return;
  }
  const bool routed = config.has_route || !rule_actions(config.rules).empty();
  if (!routed) {
    root.warning("rules", "no issue notifies anybody: add a `route`, or `actions` to a rule");
    return;
  }
  const Audience audience(config);
  for (const RuleSettings& rule : config.rules.rules) {
    if (rule.shadow || audience.told(rule)) continue;
    root.warning(path_of_rule(root, rule),
                 "issues of " + rule.name + " notify nobody: " +
                     (config.has_route ? "no route leads them to a receiver with actions"
                                       : "add a `route`, or `actions` to this rule"));
  }
}

// Routes and silences tell issues apart by the label `rule`.
void check_rule_names(const config::Reader& root, const AppConfig& config) {
  for (const auto own : {rules::own_issues(), routing::own_issues(), actions::own_issues()}) {
    for (const core::OwnIssue& issue : own) {
      for (const RuleSettings& rule : config.rules.rules) {
        if (rule.name != issue.name) continue;
        root.warning(path_of_rule(root, rule),
                     "\"" + rule.name +
                         "\" is also the name of an issue that Tocsin raises itself; routes and "
                         "silences cannot tell them apart: choose another name");
      }
    }
  }
}

void gather(const routing::RouteConfig& route, std::set<std::string>& used) {
  used.insert(route.receivers.begin(), route.receivers.end());
  if (route.further.steps) {
    for (const routing::EscalationStep& step : *route.further.steps) used.insert(step.receiver);
  }
  if (route.further.on_failure) used.insert(route.further.on_failure->receiver);
  for (const auto& child : route.routes) gather(child, used);
}

void check_receivers(const config::Reader& root, const AppConfig& config) {
  std::set<std::string> used;
  gather(config.route, used);
  used.insert(silence_notices_receiver(root));
  for (const RuleSettings& rule : config.rules.rules) {
    used.insert(rule.actions.begin(), rule.actions.end());
  }
  for (const ConfiguredIntegration& action : config.receivers.integrations) {
    used.insert(action.common.fallback);
  }
  for (const std::string& name : config.receivers.names) {
    if (used.contains(name)) continue;
    root.warning(
        "receivers." + name,
        "receiver \"" + name +
            "\" is unused: name it in a route, in `actions` of a rule, or as a `fallback`");
  }
}

// The first of a receiver's maps that holds the action, the one of this index among several.
std::string path_of_action(const config::Reader& root, const ConfiguredIntegration& action) {
  const std::string receiver = "receivers." + action.receiver;
  const std::string list = receiver + "[" + std::to_string(action.index) + "]." + action.type;
  return root.value(list) ? list : receiver + "." + action.type;
}

void check_stops(const config::Reader& root, const AppConfig& config) {
  for (const ConfiguredIntegration& action : config.receivers.integrations) {
    if (action.type != "stop_training" || !action.common.enabled || action.common.shadow) continue;
    const std::string path = path_of_action(root, action);
    if (config.stops_dry_run) {
      root.warning("stops.dry_run", "no job is stopped, whatever is armed: stops.dry_run is true");
      return;
    }
    const auto armed = root.value(path + ".armed");
    if (armed == core::Value(true) || armed == core::Value("true")) continue;
    root.warning(armed ? path + ".armed" : path,
                 "this stop is not armed: it is recorded, but no job is stopped; "
                 "`armed: true` arms it");
  }
}

}  // namespace

void check_alarms(const config::Reader& root, const AppConfig& config) {
  check_rules(root, config);
  check_rule_names(root, config);
  check_receivers(root, config);
  check_stops(root, config);
  check_names(root, config);
  check_routes(root, config);
  check_files(root, config);
  check_sample_windows(root, config);
  check_inputs(root, config);
}

}  // namespace tocsin::app
