// Rules by the kind of job: what `rule_groups:` of a configuration stands for.
#pragma once

#include <span>
#include <string_view>

namespace tocsin::rules {

struct RuleGroup {
  std::string_view name;
  std::string_view title;
  std::span<const std::string_view> rules;  // names of built-in rules
};

std::span<const RuleGroup> rule_groups() noexcept;

}  // namespace tocsin::rules
