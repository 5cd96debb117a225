// The issues of one rule among all that were reported.
#pragma once

#include <string_view>
#include <vector>

#include "core/issue.h"

namespace tocsin::rules {

inline std::vector<core::Issue> issues_of(const std::vector<core::Issue>& issues,
                                          std::string_view rule) {
  std::vector<core::Issue> out;
  for (const core::Issue& issue : issues) {
    if (issue.rule == rule) out.push_back(issue);
  }
  return out;
}

}  // namespace tocsin::rules
