// Where labels lead in the tree, and where not.
#pragma once

#include <cstddef>
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

/// A setting of a node as it is written, and whether the node says it itself.
struct RouteSetting {
  std::string name;   // the key: group_wait, …
  std::string value;  // as a configuration would have it
  bool own = false;   // else inherited
};
/// A node of the tree with what holds for it.
struct RouteView {
  std::string id;
  std::string path;
  std::size_t depth = 0;  // of the root: 0
  std::string matchers;   // its own, canonical
  bool proceed = false;   // `continue`
  bool beside = false;    // of a rule's `actions`
  std::vector<std::string> receivers;
  bool own_receivers = false;
  std::vector<std::string> integrations;
  std::vector<RouteSetting> settings;  // the others, in the order of the page
};

}  // namespace tocsin::routing
