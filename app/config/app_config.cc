#include "app/config/app_config.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "app/config/alarm_check.h"
#include "app/config/fallback_check.h"
#include "app/config/inbound_check.h"
#include "app/config/silence_notice_route.h"
#include "collectors/hook/hook.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

bool known(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_rule_receivers(const config::Reader& root, const AppConfig& config) {
  for (const auto& rule : config.rules.rules) {
    for (std::size_t i = 0; i < rule.actions.size(); ++i) {
      const std::string& receiver = rule.actions[i];
      if (known(config.receivers.names, receiver)) continue;
      std::string message =
          "rule \"" + rule.name + "\" names receiver \"" + receiver + "\", which does not exist";
      if (const auto near = core::nearest(receiver, config.receivers.names); !near.empty()) {
        message += "; did you mean \"" + near + "\"?";
      }
      const std::string list = path_of_rule(root, rule) + ".actions";
      const std::string item = list + "[" + std::to_string(i) + "]";
      root.error(root.value(item) ? item : list, std::move(message));
    }
  }
}

void check_when(const config::Reader& root, const AppConfig& config) {
  for (const auto& integration : config.receivers.integrations) {
    const auto parsed = routing::Matchers::parse(integration.common.when);
    if (parsed) continue;
    root.error("receivers", "`when` of " + integration.common.id + ": " + parsed.error().message);
  }
}

// Topics of the user's lie on the cluster of the transport, and are none of Tocsin's.
void check_foreign_topics(const config::Reader& root, const AppConfig& config) {
  for (const auto& integration : config.receivers.integrations) {
    for (const std::string& topic : integration.config->topics()) {
      const std::string place = "receivers." + integration.receiver;
      if (config.transport.kafka.is_null()) {
        root.error(place, integration.common.id + " writes to topic " + topic +
                              ": that needs transport.kafka, the journal has no topics of yours");
      } else if (topic.starts_with(config.topics.prefix + ".")) {
        root.error(place, integration.common.id + ": topic " + topic +
                              " is one of Tocsin's own (topics.prefix)");
      }
    }
  }
}

// Every top-level key but `rules`.
constexpr std::array<std::string_view, 22> kSections{
    "transport", "topics",    "cluster", "labels",        "collect",        "capture",
    "engine",    "receivers", "route",   "inhibit_rules", "router",         "http",
    "log",       "plugins",   "reports", "evidence",      "time_intervals", "platforms",
    "stops",     "insights",  "store",   "tracing"};

std::vector<std::string> files_of(const config::Reader& root, const AppConfig& config,
                                  const std::string& path) {
  std::vector<std::string> out{path};
  const auto add = [&](const std::string& key) {
    std::string file = root.location(key).file;
    if (!file.empty() && !known(out, file)) out.push_back(std::move(file));
  };
  for (const std::string_view key : kSections) add(std::string(key));
  for (std::size_t i = 0; i < config.rules.rules.size(); ++i) {
    add("rules[" + std::to_string(i) + "]");
  }
  for (const std::string& name : config.receivers.names) add("receivers." + name);
  return out;
}

}  // namespace

void read(config::Reader& root, AppConfig& out) {
  hook::SharedSections shared;
  shared.cluster = out.cluster;
  hook::read_place(root, shared);
  root.section("collect", "system samples of this node",
               [&](config::Reader& in) { collectors::read(in, out.collect); });
  hook::read_capture(root, shared);
  out.transport = std::move(shared.transport);
  out.topics = std::move(shared.topics);
  out.cluster = std::move(shared.cluster);
  out.labels = std::move(shared.labels);
  out.capture = std::move(shared.capture);
  rules::read_rules(root, out.rules);
  rules::read_engine(root, out.engine);
  root.section("plugins", "rules of your own that are programs",
               [&](config::Reader& in) { read(in, out.plugins); });
  root.section("reports", "pages about runs that have ended",
               [&](config::Reader& in) { read(in, out.reports); });
  root.section("evidence", "what issues were decided by, kept longer than the topics keep it",
               [&](config::Reader& in) { read(in, out.evidence); });
  actions::read_receivers(root, out.receivers);
  root.section("stops", "of all stop_training actions", [&](config::Reader& in) {
    in.optional("dry_run", out.stops_dry_run,
                "every stop is decided and recorded, and none is sent, whatever is armed");
  });
  root.section("platforms", "who ends a run that does not answer, where no agent on its node can",
               [&](config::Reader& in) { out.platforms = actions::read_platforms(in); });
  root.section("tracing", "spans of messages, for an OpenTelemetry collector",
               [&](config::Reader& in) { out.tracing = actions::read_tracing(in); });
  routing::read_time_intervals(root, out.time_intervals);
  std::vector<std::string> intervals;
  for (const auto& one : out.time_intervals) intervals.push_back(one.name);
  out.has_route = routing::read_route(root, out.route, out.receivers.names, intervals);
  root.recurs("route.routes");
  routing::read_inhibit_rules(root, out.inhibit_rules);
  std::string notices;
  root.section("router", "limits of the router", [&](config::Reader& in) {
    routing::read(in, out.router);
    in.optional("silence_notices", notices,
                "the receiver that hears when a silence begins, is about to end, and ends");
  });
  root.section("http", "metrics and health", [&](config::Reader& in) {
    read(in, out.http);
    in.optional("external_url", out.external_url, "base of links in messages");
    while (out.external_url.ends_with('/')) out.external_url.pop_back();
    if (out.external_url.find_first_of("?#") != std::string::npos) {
      in.error("external_url", "expected an address without ? and #: paths of pages follow it");
    }
  });
  root.section("insights", "events of runs, kept for the page",
               [&](config::Reader& in) { insights::read(in, out.insights); });
  root.section("store", "how far back the stores of the page read, and how long they keep what",
               [&](config::Reader& in) { insights::read_store(in, out.insights); });
  root.section("log", "our own log", [&](config::Reader& in) { read(in, out.log); });
  if (!root.describing()) {
    check_rule_receivers(root, out);
    check_when(root, out);
    check_foreign_topics(root, out);
    check_fallbacks(root, out);
    check_silence_notices(root, out, notices);
    check_inbound(root, out);
    check_links(root, out);
  }
}

namespace {

std::optional<routing::SuppressedEnd> suppressed_end(const actions::RespectConfig& respect) {
  if (respect.resolve_when_suppressed == "send") return routing::SuppressedEnd::send;
  if (respect.resolve_when_suppressed == "defer") return routing::SuppressedEnd::defer;
  if (respect.resolve_when_suppressed == "drop") return routing::SuppressedEnd::drop;
  return std::nullopt;
}

}  // namespace

std::vector<routing::Integration> routing_integrations(const actions::ReceiversConfig& receivers) {
  std::vector<routing::Integration> out;
  for (const auto& configured : receivers.integrations) {
    routing::Integration integration;
    integration.id = configured.common.id;
    integration.receiver = configured.receiver;
    integration.type = configured.type;
    integration.index = configured.index;
    integration.send_resolved = configured.common.send_resolved;
    integration.max_alerts = configured.common.max_alerts;
    integration.max_age = configured.common.max_age;
    // Each text stands alone, with or without braces; routing takes one.
    if (const auto when = routing::Matchers::parse(configured.common.when)) {
      integration.when = when->canonical();
    }
    integration.enabled = configured.common.enabled;
    integration.shadow = configured.common.shadow;
    integration.fallback = configured.common.fallback;
    integration.fallback_after = configured.common.fallback_after;
    integration.acknowledges = configured.traits.acknowledges;
    integration.stateful = configured.traits.stateful;
    integration.every_issue = configured.traits.every_issue;
    if (configured.traits.stops) integration.purpose = routing::Purpose::stop;
    if (configured.traits.keeps_state) integration.purpose = routing::Purpose::show;
    integration.respect = {configured.respect.silences, configured.respect.inhibition,
                           configured.respect.time};
    integration.resolve_when_suppressed = suppressed_end(configured.respect);
    out.push_back(std::move(integration));
  }
  // A receiver without an action is how a route says "nobody"; routing wants something to name.
  for (const auto& name : receivers.names) {
    if (std::any_of(out.begin(), out.end(),
                    [&](const routing::Integration& other) { return other.receiver == name; })) {
      continue;
    }
    routing::Integration nobody;
    nobody.id = name + "/nobody";
    nobody.receiver = name;
    nobody.type = "nobody";
    nobody.enabled = false;
    out.push_back(std::move(nobody));
  }
  return out;
}

std::vector<routing::RuleActions> rule_actions(const rules::RulesConfig& rules) {
  std::vector<routing::RuleActions> out;
  for (const auto& rule : rules.rules) {
    if (!rule.actions.empty()) out.push_back({rule.name, rule.actions});
  }
  return out;
}

AppConfig load_config(const std::string& path, const config::Environment& environment,
                      config::Diagnostics& diagnostics) {
  AppConfig out;
  const auto document = config::Document::load(path, environment, diagnostics);
  if (!document) return out;
  document->read(diagnostics, [&](config::Reader& root) {
    read(root, out);
    check_alarms(root, out);
    out.files = files_of(root, out, path);
    // Behind the checks, which look at the routes that somebody wrote.
    const std::string notices = silence_notices_receiver(root);
    if (out.has_route && !notices.empty()) add_silence_notices(out.route, notices);
  });
  for (const std::string_view key : kSections) {
    if (const auto value = document->value(key)) {
      out.sections.emplace(key, core::to_json(*value));
    }
  }
  explain_misplaced(*document, diagnostics);
  diagnostics.sort(path);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  out.version = core::params_hash(text.str());
  return out;
}

}  // namespace tocsin::app
