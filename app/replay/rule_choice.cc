#include "app/replay/rule_choice.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "app/app_config.h"
#include "app/commands.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

constexpr const char* kGroups[] = {"default", "all_pytorch", "all_xgboost", "all_profiler"};

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

bool is_file(const std::string& text) {
  std::error_code error;
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.find('/') != std::string::npos ||
         std::filesystem::is_regular_file(text, error);
}

/// Of a group, in its order.
std::vector<std::string> rules_of(const std::string& group) {
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document =
      config::Document::parse("rule_groups: [" + group + "]", "rules", nothing, diagnostics);
  rules::RulesConfig found;
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { rules::read_rules(root, found); });
  }
  std::vector<std::string> names;
  for (const auto& rule : found.rules) names.push_back(rule.type);
  return names;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    std::string name = text.substr(at, comma - at);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    if (!name.empty()) out.push_back(std::move(name));
    at = comma + 1;
  }
  return out;
}

std::string unknown(const std::string& name) {
  std::vector<std::string> known(std::begin(kGroups), std::end(kGroups));
  for (const auto& rule : rules::builtin_rules()) known.emplace_back(rule.name);
  const std::string near = core::nearest(name, known);
  return "no rule, group or file \"" + name + "\"" +
         (near.empty() ? "" : "; did you mean \"" + near + "\"?") + " (see tocsin rules list)";
}

int add(const std::string& name, rules::Preset preset, rules::RulesConfig& out) {
  auto rule = rules::make_rule(name, preset);
  if (!rule) return told(kUsage, "--rules " + name + ": " + rule.error().message);
  const bool there = std::any_of(out.rules.begin(), out.rules.end(),
                                 [&](const auto& other) { return other.name == rule->name; });
  if (!there) out.rules.push_back(std::move(*rule));
  return kOk;
}

int named_rules(const std::string& text, rules::Preset preset, rules::RulesConfig& out) {
  for (const std::string& name : split(text)) {
    if (std::find(std::begin(kGroups), std::end(kGroups), name) != std::end(kGroups)) {
      for (const std::string& one : rules_of(name)) {
        if (const int code = add(one, preset, out); code != kOk) return code;
      }
    } else if (rules::find_rule(name) == nullptr) {
      return told(kUsage, unknown(name));
    } else if (const int code = add(name, preset, out); code != kOk) {
      return code;
    }
  }
  return out.rules.empty() ? told(kUsage, "--rules names no rule") : kOk;
}

/// A file of rules alone, or a whole configuration: then everything in it is checked.
int rules_of_file(const std::string& path, ChosenRules& out) {
  config::Diagnostics diagnostics;
  AppConfig whole;
  const auto document = config::Document::load(path, config::process_environment(), diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) {
      if (root.has("receivers") || root.has("route") || root.has("transport")) {
        read(root, whole);
      } else {
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

int read_config(const RuleChoice& choice, ChosenRules& out) {
  const std::string path = config_path(choice.config_file);
  std::error_code error;
  const bool named = !choice.config_file.empty() || std::getenv("TOCSIN_CONFIG") != nullptr;
  if (!named && !std::filesystem::exists(path, error)) return kOk;
  config::Diagnostics diagnostics;
  AppConfig config = load_config(path, config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) return told(diagnostics);
  out.engine = config.engine;
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

int choose_rules(const RuleChoice& choice, ChosenRules& out) {
  if (const int code = read_config(choice, out); code != kOk) return code;
  const auto preset = choice.preset == "original" ? rules::Preset::original : rules::Preset::tocsin;
  const bool file = is_file(choice.rules);
  const bool of_file = file || (choice.rules.empty() && !out.rules.rules.empty());
  if (of_file && !choice.preset.empty()) {
    return told(kUsage, "--preset is for rules named by --rules; a file says it itself, per rule");
  }
  if (file) return rules_of_file(choice.rules, out);
  if (of_file) return kOk;
  out.rules = {};
  out.from = choice.rules.empty() ? "group default" : choice.rules;
  if (!choice.preset.empty()) out.from += ", preset " + choice.preset;
  return named_rules(choice.rules.empty() ? "default" : choice.rules, preset, out.rules);
}

}  // namespace tocsin::app
