// Declarative rules of the configuration (docs/custom-rules.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/config.h"
#include "rules/rules.h"

namespace tocsin::rules::declared {

/// What such rules have as their type.
inline constexpr std::string_view kType = "declared";

/// Reads an item of `rules:` that has no `use`. Name, severity, actions and the like have been read
/// before; `rule.program` stays null where something is wrong, which is then reported.
void read(config::Reader& item, RuleSettings& rule);

/// Whether the rules that others follow are there and can be followed; `paths`: where each of `rules`
/// was read, by its name ("rules[3]").
void check_followed(config::Reader& root, const std::vector<RuleSettings>& rules,
                    const std::map<std::string, std::string>& paths);

}  // namespace tocsin::rules::declared
