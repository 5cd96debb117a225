// Where labels lead in the tree, and where not.
#pragma once

#include <string>
#include <vector>

#include "core/labels.h"
#include "core/time.h"

namespace tocsin::routing {

/// A leaf that given labels reach.
struct MatchedRoute {
  std::string route_id;
  std::string path;  // canonical matchers from the root: `{}/{severity="error"}`
  std::vector<std::string> receivers;
  std::vector<std::string> integrations;
  core::Labels group_labels;
  std::string group_key;
  core::Duration group_wait{};
  core::Duration group_interval{};
  core::Duration repeat_interval{};  // first rung
};
/// A node that was tried and did not match, with the first term that failed.
struct NearMiss {
  std::string route_id;
  std::string path;
  std::string term;
  std::string value;  // of the label; empty = absent
};
struct Explanation {
  std::vector<MatchedRoute> leaves;
  std::vector<NearMiss> misses;
};

}  // namespace tocsin::routing
