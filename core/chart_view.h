// The curves that somebody has chosen for a job: they are there for its next run too. Records of `router-control`,
// keys `view/<id>` (docs/http-routes.md).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace tocsin::core {

struct ChartView {
  std::string id;     // view_…, of owner and job
  std::string owner;  // the name of whoever has chosen
  std::string job;
  std::vector<std::string> charts;  // names of curves, in their order
  WallTime at{};
};

inline constexpr std::string_view kViewPrefix = "view/";
inline constexpr std::size_t kMostChartsOfAView = 100;

}  // namespace tocsin::core
