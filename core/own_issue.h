// What a room tells of without a rule of the user's. Each room that makes such issues keeps a table of
// them (own_issues() of its door) and makes them from its rows only: `tocsin check` knows the names
// and labels from there.
#pragma once

#include <span>
#include <string_view>

namespace tocsin::core {

struct OwnIssue {
  std::string_view name;  // its labels `rule`; also the type
  /// Labels that say what it speaks of, beside those of the run and of the configuration.
  std::span<const std::string_view> labels;
};

}  // namespace tocsin::core
