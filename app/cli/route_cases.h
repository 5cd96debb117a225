// Labels and the receivers that they must lead to, as `tocsin routes test --file` reads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/labels.h"
#include "core/result.h"

namespace tocsin::app {

struct RouteCase {
  std::string name;
  core::Labels labels;
  std::vector<std::string> receivers;
};

/// `name=value` words. invalid_argument: one that is none.
core::Result<core::Labels> labels_from(const std::vector<std::string>& words);
/// A YAML file: `tests`, a list of `name`, `labels` and `receivers`. nullopt: what is wrong was said.
std::optional<std::vector<RouteCase>> read_route_cases(const std::string& path);

}  // namespace tocsin::app
