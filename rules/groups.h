// Rules by the kind of job: what `rule_groups:` of a configuration stands for. Which groups a rule is in
// stands in its own file (RuleDescriptor::groups).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "rules/rules.h"

namespace tocsin::rules {

struct RuleGroup {
  std::string_view name;
  std::string_view title;
  std::uint32_t bit = 0;  // group::…

  [[nodiscard]] bool holds(const RuleDescriptor& rule) const noexcept {
    return (rule.groups & bit) != 0;
  }
};

std::span<const RuleGroup> rule_groups() noexcept;

}  // namespace tocsin::rules
