#include "app/cli/rule_choice.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <utility>

#include "app/config/app_config.h"
#include "app/config/config_path.h"
#include "app/process/exit_code.h"

namespace tocsin::app {
namespace {

int told(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

int told(const config::Diagnostics& diagnostics) {
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error) std::cerr << config::to_text(item) << "\n";
  }
  return kConfiguration;
}

int named_rules(const std::string& text, rules::Preset preset, rules::RulesConfig& out) {
  auto named = embedded::rules_by_name(text, preset);
  if (!named) return told(kUsage, named.error().message);
  out = std::move(*named);
  return kOk;
}

/// A file of rules alone, or a whole configuration: then everything in it is checked.
int rules_of_file(const std::string& path, embedded::ChosenRules& out) {
  config::Diagnostics diagnostics;
  AppConfig whole;
  const auto document = config::Document::load(path, config::process_environment(), diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) {
      if (root.has("receivers") || root.has("route") || root.has("transport")) {
        read(root, whole);
        out.plugins = whole.plugins;
      } else {
        root.section("plugins", "", [&](config::Reader& in) { read(in, out.plugins); });
        rules::read_rules(root, whole.rules);
        rules::read_engine(root, out.engine);
      }
    });
  }
  if (diagnostics.has_errors()) return told(diagnostics);
  if (whole.rules.rules.empty()) return told(kConfiguration, path + " has no rules");
  out.rules = std::move(whole.rules);
  out.from = "rules of " + path;
  return kOk;
}

int read_config(const RuleChoice& choice, embedded::ChosenRules& out) {
  const std::string path = config_path(choice.config_file);
  std::error_code error;
  const bool named = !choice.config_file.empty() || std::getenv("TOCSIN_CONFIG") != nullptr;
  if (!named && !std::filesystem::exists(path, error)) return kOk;
  config::Diagnostics diagnostics;
  AppConfig config = load_config(path, config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) return told(diagnostics);
  out.engine = config.engine;
  out.plugins = config.plugins;
  out.cluster = config.cluster;
  out.labels = config.labels;
  out.topic_prefix = config.topics.prefix;
  if (!config.rules.rules.empty()) {
    out.rules = std::move(config.rules);
    out.from = "rules of " + path;
  }
  return kOk;
}

}  // namespace

int choose_rules(const RuleChoice& choice, embedded::ChosenRules& out, const char* otherwise) {
  if (const int code = read_config(choice, out); code != kOk) return code;
  const auto preset = choice.preset == "original" ? rules::Preset::original : rules::Preset::tocsin;
  const bool file = embedded::names_a_file(choice.rules);
  const bool of_file = file || (choice.rules.empty() && !out.rules.rules.empty());
  if (of_file && !choice.preset.empty()) {
    return told(kUsage, "--preset is for rules named by --rules; a file says it itself, per rule");
  }
  if (file) return rules_of_file(choice.rules, out);
  if (of_file) return kOk;
  out.rules = {};
  const bool group = choice.rules.empty() && std::string_view(otherwise) == "default";
  const std::string named = choice.rules.empty() ? otherwise : choice.rules;
  out.from = group ? "group default" : named;
  if (!choice.preset.empty()) out.from += ", preset " + choice.preset;
  return named_rules(named, preset, out.rules);
}

}  // namespace tocsin::app
