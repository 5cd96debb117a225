#include "app/cli/routes_command.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/cli/looking.h"
#include "app/cli/route_cases.h"
#include "app/config/app_config.h"
#include "app/config/config_path.h"
#include "app/config/route_moves.h"
#include "app/process/exit_code.h"
#include "app/view/topic_view.h"
#include "app/view/view_words.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kRoutesPatience{60};

std::optional<AppConfig> routes_config(const std::string& file) {
  config::Diagnostics diagnostics;
  AppConfig out = load_config(config_path(file), config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) return out;
  for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
  return std::nullopt;
}

std::string joined_names(const std::vector<std::string>& names, const char* none = "nobody") {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + core::visible(name, 100);
  return out.empty() ? none : out;
}

core::Value texts_value(const std::vector<std::string>& texts) {
  core::ValueList out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

// ---- the tree

std::string node_text(const routing::RouteView& node) {
  const std::string margin(2 * node.depth, ' ');
  std::string out = margin + core::visible(node.id, 200);
  if (node.matchers != "{}" && !node.id.ends_with(node.matchers)) {
    out += "  " + core::visible(node.matchers, 300);
  }
  if (node.proceed) out += "  continue";
  if (node.beside) out += "  (actions of a rule, beside the tree)";
  out += "\n" + margin + "    receivers " + joined_names(node.receivers) +
         (node.own_receivers || node.depth == 0 ? "" : " (inherited)") + ": " +
         joined_names(node.integrations, "no integration") + "\n";
  std::string own;
  std::string inherited;
  for (const routing::RouteSetting& one : node.settings) {
    std::string& out_line = one.own || node.depth == 0 ? own : inherited;
    out_line += (out_line.empty() ? "" : ", ") + one.name + " " + core::visible(one.value, 200);
  }
  if (!own.empty()) out += margin + "    " + own + "\n";
  if (!inherited.empty()) out += margin + "    inherited: " + inherited + "\n";
  return out;
}

core::Value node_value(const routing::RouteView& node) {
  core::ValueList settings;
  for (const routing::RouteSetting& one : node.settings) {
    settings.push_back(core::ValueMap{{"name", one.name}, {"value", one.value}, {"own", one.own}});
  }
  return core::ValueMap{{"id", node.id},
                        {"path", node.path},
                        {"depth", static_cast<std::uint64_t>(node.depth)},
                        {"matchers", node.matchers},
                        {"continue", node.proceed},
                        {"beside", node.beside},
                        {"receivers", texts_value(node.receivers)},
                        {"own_receivers", node.own_receivers},
                        {"integrations", texts_value(node.integrations)},
                        {"settings", std::move(settings)}};
}

// ---- where labels lead

struct RouteAnswer {
  std::set<std::string> receivers;  // that are told
  routing::Explanation explanation;
  std::optional<core::WallTime> at;
  std::map<std::string, std::vector<std::string>> muted_by;  // by route id, at `at`

  [[nodiscard]] const std::vector<std::string>& muting(const std::string& route_id) const {
    static const std::vector<std::string> kNone;
    const auto found = muted_by.find(route_id);
    return found == muted_by.end() ? kNone : found->second;
  }
};

RouteAnswer answer_of(const RoutePreview& routes, const core::Labels& labels,
                      std::optional<core::WallTime> at) {
  RouteAnswer out;
  out.at = at;
  if (routes.router() == nullptr) return out;
  out.explanation = routes.router()->explain(labels);
  for (const auto& leaf : out.explanation.leaves) {
    auto muting = at ? routes.router()->muted_by(leaf.route_id, *at) : std::vector<std::string>();
    if (muting.empty()) {
      out.receivers.insert(leaf.receivers.begin(), leaf.receivers.end());
    } else {
      out.muted_by.emplace(leaf.route_id, std::move(muting));
    }
  }
  return out;
}

// "mute_time:nights" and "active_time:office" as sentences.
std::string muting_text(const std::string& reason, core::WallTime at) {
  const std::size_t colon = reason.find(':');
  const std::string name = core::visible(reason.substr(colon + 1), 100);
  return reason.starts_with("mute_time")
             ? "muted at " + core::to_rfc3339(at) + " by the time interval " + name
             : "not active at " + core::to_rfc3339(at) + ": outside the time interval " + name;
}

std::string leaf_text(const routing::MatchedRoute& leaf, const RouteAnswer& answer,
                      const RoutePreview& routes, const core::Labels& labels) {
  std::string out =
      core::visible(leaf.route_id, 200) + "\n    receivers " + joined_names(leaf.receivers) +
      "\n    group " + core::visible(leaf.group_key, 300) + "\n    group_wait " +
      core::to_text(leaf.group_wait) + ", group_interval " + core::to_text(leaf.group_interval) +
      ", repeat_interval " + core::to_text(leaf.repeat_interval) + "\n";
  for (const std::string& reason : answer.muting(leaf.route_id)) {
    out += "    " + muting_text(reason, *answer.at) + ": nobody is told then\n";
  }
  for (const std::string& id : leaf.integrations) {
    out += "    " + core::visible(id, 100) +
           (routes.tells(id, labels) ? "" : ": not told (`enabled` or `when`)") + "\n";
  }
  return out;
}

std::string miss_text(const routing::NearMiss& miss) {
  return "  " + core::visible(miss.route_id, 200) + ": " + core::visible(miss.term, 200) +
         " does not hold, " +
         (miss.value.empty() ? std::string("the label is absent")
                             : "the value is \"" + core::visible(miss.value, 100) + "\"") +
         "\n";
}

core::Value answer_value(const RouteAnswer& answer, const RoutePreview& routes,
                         const core::Labels& labels) {
  core::ValueList leaves;
  for (const auto& leaf : answer.explanation.leaves) {
    core::ValueList integrations;
    for (const std::string& id : leaf.integrations) {
      integrations.push_back(core::ValueMap{{"id", id}, {"told", routes.tells(id, labels)}});
    }
    leaves.push_back(core::ValueMap{{"route_id", leaf.route_id},
                                    {"path", leaf.path},
                                    {"receivers", texts_value(leaf.receivers)},
                                    {"integrations", std::move(integrations)},
                                    {"group_key", leaf.group_key},
                                    {"muted_by", texts_value(answer.muting(leaf.route_id))},
                                    {"group_wait", core::to_text(leaf.group_wait)},
                                    {"group_interval", core::to_text(leaf.group_interval)},
                                    {"repeat_interval", core::to_text(leaf.repeat_interval)}});
  }
  core::ValueList misses;
  for (const auto& miss : answer.explanation.misses) {
    misses.push_back(
        core::ValueMap{{"route_id", miss.route_id}, {"matcher", miss.term}, {"value", miss.value}});
  }
  return core::ValueMap{{"routes", std::move(leaves)}, {"misses", std::move(misses)}};
}

core::Result<core::Labels> labels_of_issue(const RoutesOptions& options) {
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened) return opened.error();
  TopicView view;
  if (auto read = read_view(looking.transport(), view, kRoutesPatience); !read) return read.error();
  std::vector<const core::Issue*> found;
  for (const auto& [key, seen] : view.issues()) {
    if (goes_by(key, seen.newest, options.issue)) found.push_back(&seen.newest);
  }
  if (found.size() == 1) return found.front()->labels;
  return core::not_found(
      (found.empty() ? std::string("no issue") : std::to_string(found.size()) + " issues") +
      " with ID " + core::visible(options.issue, 100) + "; see: tocsin issues list --all");
}

// Exit code 1 where others are told than were expected.
int judge_answer(const RouteAnswer& answer, const RoutesOptions& options) {
  if (!options.expects) return kOk;
  const std::set<std::string> wanted(options.expected.begin(), options.expected.end());
  if (wanted == answer.receivers) return kOk;
  std::cerr << "tocsin: expected " << joined_names({wanted.begin(), wanted.end()}) << ", got "
            << joined_names({answer.receivers.begin(), answer.receivers.end()}) << "\n";
  return kFailed;
}

int test_one(const RoutesOptions& options, const RoutePreview& routes, const core::Labels& labels) {
  std::optional<core::WallTime> at;
  if (!options.at.empty()) {
    const auto time = route_time(options.at);
    if (!time) {
      std::cerr << "tocsin: --at: " << time.error().message << "\n";
      return kUsage;
    }
    at = *time;
  }
  const RouteAnswer answer = answer_of(routes, labels, at);
  if (options.json) {
    std::cout << core::to_json(answer_value(answer, routes, labels)) << "\n";
    return judge_answer(answer, options);
  }
  if (answer.explanation.leaves.empty()) std::cout << "no route: nobody is told\n";
  for (const auto& leaf : answer.explanation.leaves)
    std::cout << leaf_text(leaf, answer, routes, labels);
  if (options.explain && !answer.explanation.misses.empty()) {
    std::cout << "not matched:\n";
    for (const auto& miss : answer.explanation.misses) std::cout << miss_text(miss);
  }
  return judge_answer(answer, options);
}

int test_file(const RoutesOptions& options, const RoutePreview& routes) {
  const auto cases = read_route_cases(options.file);
  if (!cases) return kConfiguration;
  core::ValueList list;
  std::size_t failed = 0;
  for (const RouteCase& one : *cases) {
    const RouteAnswer answer = answer_of(routes, one.labels, one.at);
    const std::set<std::string> wanted(one.receivers.begin(), one.receivers.end());
    const bool passed = wanted == answer.receivers;
    failed += passed ? 0 : 1;
    const std::vector<std::string> got(answer.receivers.begin(), answer.receivers.end());
    if (options.json) {
      list.push_back(core::ValueMap{{"name", one.name},
                                    {"passed", passed},
                                    {"expected", texts_value(one.receivers)},
                                    {"receivers", texts_value(got)}});
    } else {
      std::cout << (passed ? "ok      " : "FAILED  ") << core::visible(one.name, 200) << "\n";
      if (passed) continue;
      std::cout << "        expected " << joined_names(one.receivers) << ", got "
                << joined_names(got) << "\n";
      for (const auto& miss : answer.explanation.misses) std::cout << "      " << miss_text(miss);
    }
  }
  if (options.json) {
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else {
    std::cout << cases->size() << " cases, " << failed << " failed\n";
  }
  return failed == 0 ? kOk : kFailed;
}

}  // namespace

int routes_tree(const RoutesOptions& options) {
  const auto config = routes_config(options.config_file);
  if (!config) return kConfiguration;
  const auto routes = RoutePreview::of(*config);
  if (!routes) return refuse(routes.error());
  std::vector<routing::RouteView> nodes;
  if (routes->router() != nullptr) nodes = routes->router()->routes();
  core::ValueList list;
  for (const auto& node : nodes) {
    if (options.json) {
      list.push_back(node_value(node));
    } else {
      std::cout << node_text(node);
    }
  }
  if (options.json) std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  if (!options.json && nodes.empty()) std::cout << "no routes: nobody is told\n";
  return kOk;
}

int routes_test(const RoutesOptions& options) {
  const auto config = routes_config(options.config_file);
  if (!config) return kConfiguration;
  const auto routes = RoutePreview::of(*config);
  if (!routes) return refuse(routes.error());
  if (!options.file.empty()) return test_file(options, *routes);
  if (!options.issue.empty()) {
    const auto labels = labels_of_issue(options);
    return labels ? test_one(options, *routes, *labels) : refuse(labels.error());
  }
  const auto labels = labels_from(options.labels);
  if (!labels) {
    std::cerr << "tocsin: " << labels.error().message << "\n";
    return kUsage;
  }
  return test_one(options, *routes, *labels);
}

}  // namespace tocsin::app
