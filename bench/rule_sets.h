// Sets of rules that several benchmarks judge with, made from the table of built-in rules: a new rule is
// measured without a line here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "rules/rules.h"

namespace tocsin::bench {

/// Every rule that looks at tensors or losses of deep learning. Rules without a group judge only what the
/// user selects, so they stand here with a selection.
inline constexpr char kTensorRules[] =
    "rule_groups: [all_pytorch]\n"
    "rules:\n"
    "  - {use: all_zero, with: {collection_names: [weights, gradients]}}\n"
    "  - {use: unchanged_tensor, with: {collection_names: [weights]}}\n"
    "  - {use: tensor_variance, with: {collection_names: [weights, gradients], max_threshold: "
    "1e9}}\n";

/// Rules in one of `groups` whose unit is one of `units`.
inline std::vector<std::string_view> rules_with_unit(
    std::uint32_t groups, std::initializer_list<std::string_view> units) {
  std::vector<std::string_view> out;
  for (const rules::RuleDescriptor& rule : rules::builtin_rules()) {
    const bool wanted = std::find(units.begin(), units.end(), rule.unit) != units.end();
    if (wanted && (rule.groups & groups) != 0) out.push_back(rule.name);
  }
  return out;
}

}  // namespace tocsin::bench
