#include "app/cli/rule_worker.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "app/app.h"
#include "app/config/config_path.h"
#include "app/config/transport_settings.h"
#include "app/process/exit_code.h"
#include "app/process/rule_processes.h"
#include "core/system_clock.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

int worker_refusal(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

int worker_refusal(const config::Diagnostics& diagnostics) {
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error) std::cerr << config::to_text(item) << "\n";
  }
  return kConfiguration;
}

std::string whole_path(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal().string();
}

// Without a file of its own the worker needs a transport only.
int worker_config(const WorkerOptions& options, AppConfig& out,
                  std::vector<config::Diagnostic>& doubts) {
  const std::string path = config_path(options.serve.config_file);
  std::error_code ignored;
  const bool named = !options.serve.config_file.empty() || std::getenv("TOCSIN_CONFIG") != nullptr;
  if (named || std::filesystem::exists(path, ignored)) {
    config::Diagnostics diagnostics;
    out = load_config(path, config::process_environment(), diagnostics);
    if (diagnostics.has_errors()) return worker_refusal(diagnostics);
    doubts = diagnostics.items();
    if (options.out.empty()) return kOk;
  }
  auto settings = transport_settings(options.serve.config_file, options.out);
  if (!settings) return worker_refusal(kConfiguration, settings.error().message);
  out.transport = settings->transport;
  out.topics = settings->topics;
  return kOk;
}

// As the configuration would name it: one way into a rule's settings.
std::string as_configuration(const std::string& source, const std::string& name,
                             const std::vector<std::string>& parameters) {
  std::string text = "rules:\n- name: " + core::to_json(core::Value(name)) +
                     "\n  type: python\n  source: " + core::to_json(core::Value(source)) +
                     "\n  class: " + core::to_json(core::Value(name)) + "\n";
  if (parameters.empty()) return text;
  text += "  with:\n";
  for (const std::string& one : parameters) {
    const std::size_t equals = one.find('=');
    text += "    " + one.substr(0, equals) + ": " + one.substr(equals + 1) + "\n";
  }
  return text;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

bool is_wanted(const WorkerOptions& options, const std::string& name) {
  return options.classes.empty() ||
         std::find(options.classes.begin(), options.classes.end(), name) != options.classes.end();
}

int discovered_rules(const WorkerOptions& options, const AppConfig& config, core::Log& log,
                     std::vector<rules::RuleSettings>& out) {
  rules::HostedRule file;
  file.name = options.file;
  file.source = whole_path(options.file);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file.source, ignored)) {
    return worker_refusal(kUsage, "there is no file " + file.source);
  }
  const core::SystemClock clock;
  const auto classes = RuleProcesses(config.plugins, clock, log).classes(file);
  if (!classes)
    return worker_refusal(kConfiguration, options.file + ": " + classes.error().message);
  for (const std::string& name : options.classes) {
    if (std::find(classes->begin(), classes->end(), name) == classes->end()) {
      const std::string near = core::nearest(name, *classes);
      return worker_refusal(kUsage, options.file + " has no rule " + name +
                                        (near.empty() ? "; it has " + listed(*classes)
                                                      : "; did you mean " + near + "?"));
    }
  }
  for (const std::string& name : *classes) {
    if (!is_wanted(options, name)) continue;
    config::Diagnostics diagnostics;
    rules::RulesConfig one;
    const config::Environment nothing = [](const std::string&) { return std::nullopt; };
    const auto document = config::Document::parse(
        as_configuration(file.source, name, options.parameters), "--set", nothing, diagnostics);
    if (document) {
      document->read(diagnostics, [&](config::Reader& root) { rules::read_rules(root, one); });
    }
    if (diagnostics.has_errors()) return worker_refusal(diagnostics);
    for (auto& rule : one.rules) out.push_back(std::move(rule));
  }
  // A misspelt argument would else be the status `Error` of every run to come.
  core::NullLog quiet;
  for (const rules::RuleSettings& rule : out) {
    if (options.parameters.empty()) break;
    const auto takes = RuleProcesses(config.plugins, clock, quiet).ready(*rule.hosted);
    if (!takes) return worker_refusal(kUsage, "--set: " + takes.error().message);
  }
  return out.empty() ? worker_refusal(kConfiguration, options.file +
                                                          " has no rule: derive a class from "
                                                          "tocsin.rules.Rule")
                     : kOk;
}

}  // namespace

void check_hosted(const AppConfig& config, const std::string& file,
                  config::Diagnostics& diagnostics) {
  const core::SystemClock clock;
  core::NullLog quiet;
  for (const rules::RuleSettings& rule : config.rules.rules) {
    if (!rule.hosted) continue;
    const auto ready = RuleProcesses(config.plugins, clock, quiet).ready(*rule.hosted);
    if (ready) continue;
    diagnostics.add({{file}, config::Grade::warning, "rules." + rule.name, ready.error().message});
  }
}

int rule_worker(const WorkerOptions& options) {
  for (const std::string& one : options.parameters) {
    if (one.find('=') == std::string::npos)
      return worker_refusal(kUsage, "--set " + one + ": expected NAME=VALUE");
  }
  AppConfig config;
  std::vector<config::Diagnostic> doubts;
  if (const int code = worker_config(options, config, doubts); code != kOk) return code;
  std::vector<rules::RuleSettings> chosen;
  for (const rules::RuleSettings& rule : config.rules.rules) {
    const bool named =
        rule.hosted && rule.hosted->source == whole_path(options.file) &&
        (is_wanted(options, rule.hosted->class_name) || is_wanted(options, rule.name));
    if (named) chosen.push_back(rule);
  }
  if (chosen.empty()) {
    core::SystemClock clock;
    const auto log = make_log({"warn", "logfmt"}, clock);
    if (const int code = discovered_rules(options, config, *log, chosen); code != kOk) return code;
  } else if (!options.parameters.empty()) {
    return worker_refusal(kUsage, "--set: the configuration names rules of " + options.file +
                                      "; their arguments stand there, under `with`");
  }
  config.rules = {std::move(chosen)};
  config.has_route = false;
  config.http.listen = "127.0.0.1:0";  // beside the server on the same machine
  return serve(options.serve, {false, false, false, true}, std::move(config), doubts);
}

}  // namespace tocsin::app
