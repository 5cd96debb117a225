// Which rules judge, wherever they do: by the names of rules and groups, or from a file.
#pragma once

#include <map>
#include <string>

#include "core/result.h"
#include "rules/embedded/plugins_config.h"
#include "rules/rules.h"

namespace tocsin::embedded {

/// What an engine needs beside records.
struct ChosenRules {
  rules::RulesConfig rules;
  rules::EngineConfig engine;
  PluginsConfig plugins;
  std::string cluster = "default";
  std::map<std::string, std::string> labels;
  std::string topic_prefix = "tocsin";
  std::string from;  // for people: "rules of tocsin.yaml", "group default"
};

/// Names of rules and groups with commas between. invalid_argument: one that does not exist, with
/// the nearest that does, or none at all.
core::Result<rules::RulesConfig> rules_by_name(const std::string& names, rules::Preset preset);

/// Does the text mean a file rather than names?
bool names_a_file(const std::string& text);

/// Names, a YAML file (rules alone, or a whole configuration, of which sections of other parts are
/// passed over), or YAML text that begins with '{'. Empty: the group `default`. Without regard to any
/// configuration that lies about. invalid_argument with every problem.
core::Result<ChosenRules> rules_by_text(const std::string& text);

}  // namespace tocsin::embedded
