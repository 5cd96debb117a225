// Labels and the receivers that they must lead to, as `tocsin routes test --file` reads them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/labels.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app {

struct RouteCase {
  std::string name;
  core::Labels labels;
  std::vector<std::string> receivers;
  std::optional<core::WallTime> at;  // nothing: time intervals decide nothing
};

/// `name=value` words. invalid_argument: one that is none.
core::Result<core::Labels> labels_from(const std::vector<std::string>& words);
/// `2026-11-28T03:00:00+01:00`, or a date: its midnight, UTC. invalid_argument: anything else.
core::Result<core::WallTime> route_time(const std::string& text);
/// A YAML file: `tests`, a list of `name`, `labels`, `receivers` and `at`. nullopt: what is wrong was said.
std::optional<std::vector<RouteCase>> read_route_cases(const std::string& path);

}  // namespace tocsin::app
