// `tocsin rules list|describe`.
#pragma once

#include <string>

namespace tocsin::app {

struct RulesListOptions {
  bool json = false;
};
/// Always 0.
int rules_list(const RulesListOptions& options);

struct RulesDescribeOptions {
  std::string rule;  // its name; "declared": rules of one's own in YAML
  bool json = false;
};
/// 1: there is no such rule.
int rules_describe(const RulesDescribeOptions& options);

}  // namespace tocsin::app
