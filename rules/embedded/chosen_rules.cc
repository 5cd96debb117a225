#include "rules/embedded/chosen_rules.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/text.h"

namespace tocsin::embedded {
namespace {

constexpr const char* kGroups[] = {"default", "all_pytorch", "all_xgboost", "all_profiler"};

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

core::Status add(const std::string& name, rules::Preset preset, rules::RulesConfig& out) {
  auto rule = rules::make_rule(name, preset);
  if (!rule) return core::invalid_argument("--rules " + name + ": " + rule.error().message);
  const bool there = std::any_of(out.rules.begin(), out.rules.end(),
                                 [&](const auto& other) { return other.name == rule->name; });
  if (!there) out.rules.push_back(std::move(*rule));
  return core::ok();
}

void read_labels(config::Reader& root, std::map<std::string, std::string>& out) {
  core::Value given;
  root.any("labels", given, "labels of every issue");
  const auto* map = core::as<core::ValueMap>(given);
  if (map == nullptr) return;
  for (const auto& [name, value] : *map) {
    const auto* text = core::as<std::string>(value);
    out[name] = text == nullptr ? core::to_json(value) : *text;
  }
}

// What stands in other sections than these is not what judges.
void read_chosen(config::Reader& root, ChosenRules& out) {
  rules::read_rules(root, out.rules);
  rules::read_engine(root, out.engine);
  root.optional("cluster", out.cluster, "name of the installation");
  read_labels(root, out.labels);
}

// The first problems of a text; empty: none.
std::string problems_of(const config::Diagnostics& diagnostics) {
  std::string problems;
  for (const auto& item : diagnostics.items()) {
    const bool section = item.unknown_key && item.path.find('.') == item.path.npos;
    if (item.grade == config::Grade::error && !section) {
      problems += (problems.empty() ? "" : "; ") + config::to_text(item);
    }
  }
  return problems;
}

}  // namespace

bool names_a_file(const std::string& text) {
  std::error_code error;
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.find('/') != std::string::npos ||
         std::filesystem::is_regular_file(text, error);
}

core::Result<rules::RulesConfig> rules_by_name(const std::string& names, rules::Preset preset) {
  rules::RulesConfig out;
  for (const std::string& name : split(names)) {
    core::Status added = core::ok();
    if (std::find(std::begin(kGroups), std::end(kGroups), name) != std::end(kGroups)) {
      for (const std::string& one : rules_of(name)) {
        if (added) added = add(one, preset, out);
      }
    } else if (rules::find_rule(name) == nullptr) {
      return core::invalid_argument(unknown(name));
    } else {
      added = add(name, preset, out);
    }
    if (!added) return added.error();
  }
  if (out.rules.empty()) return core::invalid_argument("--rules names no rule");
  rules::complete(out);  // without parameters there is nothing that could be given twice
  return out;
}

core::Result<ChosenRules> rules_by_text(const std::string& text) {
  config::Diagnostics diagnostics;
  if (text.starts_with('{') || names_a_file(text)) {
    ChosenRules read;
    const auto declared = [&](config::Reader& root) { read_chosen(root, read); };
    if (text.starts_with('{')) {
      const auto document =
          config::Document::parse(text, "rules", config::process_environment(), diagnostics);
      if (document) document->read(diagnostics, declared);
      read.from = "rules given";
    } else {
      config::read_own_sections(text, config::process_environment(), declared, diagnostics);
      read.from = "rules of " + text;
    }
    const std::string problems = problems_of(diagnostics);
    if (!problems.empty()) return core::invalid_argument(problems);
    if (read.rules.rules.empty()) return core::invalid_argument(text + " has no rules");
    return read;
  }
  ChosenRules out;
  out.from = text.empty() ? "group default" : text;
  auto named = rules_by_name(text.empty() ? "default" : text, rules::Preset::tocsin);
  if (!named) return named.error();
  out.rules = std::move(*named);
  return out;
}

}  // namespace tocsin::embedded
