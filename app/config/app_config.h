// The whole configuration file: which room reads which section, and what they must agree on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/config/reports_config.h"
#include "app/log/logging.h"
#include "app/process/rule_processes.h"
#include "app/recordings/evidence_config.h"
#include "app/serve/http_config.h"
#include "collectors/collectors.h"
#include "collectors/hook/hook.h"
#include "config/config.h"
#include "ingest/ingest.h"
#include "insights/insights.h"
#include "routing/routing.h"
#include "rules/rules.h"

namespace tocsin::app {

struct AppConfig {
  ingest::TransportConfig transport;
  ingest::TopicsConfig topics;
  std::string cluster = "default";
  std::map<std::string, std::string> labels;
  collectors::Config collect;
  hook::CaptureConfig capture;  // checked here; the hook is who follows it
  rules::RulesConfig rules;
  rules::EngineConfig engine;
  embedded::PluginsConfig plugins;
  ReportsConfig reports;
  EvidenceConfig evidence;
  routing::RouteConfig route;
  bool has_route = false;
  std::vector<routing::InhibitRule> inhibit_rules;
  std::vector<routing::TimeInterval> time_intervals;
  routing::Config router;
  actions::ReceiversConfig receivers;
  std::shared_ptr<const actions::PlatformsConfig> platforms = actions::no_platforms();
  std::shared_ptr<const actions::TracingConfig> tracing = actions::no_tracing();
  bool stops_dry_run = false;  // no stop is sent, whatever is armed
  HttpConfig http;
  std::string external_url;
  insights::Config insights;
  LogConfig log;
  std::string version;  // hash of what was read: stamped on every notification
  // What a reload compares and watches (config_reload.h):
  std::map<std::string, std::string> sections;  // top-level keys but `rules`, as JSON
  std::vector<std::string> files;               // the file, then those it includes
};

/// Reads every section; cross-checks (receivers that rules and routes name) are reported at their
/// place. Used for parsing, for the schema and for the docs tables alike.
void read(config::Reader& root, AppConfig& out);

/// What routing has to know of the configured integrations.
std::vector<routing::Integration> routing_integrations(const actions::ReceiversConfig& receivers);
std::vector<routing::RuleActions> rule_actions(const rules::RulesConfig& rules);

/// Loads a file. Every problem is in `diagnostics`; the result is usable only without errors.
AppConfig load_config(const std::string& path, const config::Environment& environment,
                      config::Diagnostics& diagnostics);

}  // namespace tocsin::app
