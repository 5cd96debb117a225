#include "app/api/sibling_band.h"

#include <algorithm>
#include <cmath>

namespace tocsin::app {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

SiblingBand band_of(const std::vector<RunValues>& siblings) {
  SiblingBand out;
  if (siblings.size() < kLeastSiblings) return out;
  std::map<std::int64_t, std::vector<double>> values;
  for (const RunValues& one : siblings) {
    for (const auto& [x, value] : one) {
      if (value) values[x].push_back(*value);
    }
  }
  for (auto& [x, some] : values) {
    if (some.size() < kLeastSiblings) continue;
    std::sort(some.begin(), some.end());
    out[x] = {percentile(some, 0.05), percentile(some, 0.5), percentile(some, 0.95),
              static_cast<std::int64_t>(some.size())};
  }
  return out;
}

std::optional<std::int64_t> leaves_band(const SiblingBand& band, const RunValues& run,
                                        std::int64_t in_a_row) {
  std::int64_t outside = 0;
  std::int64_t first = 0;
  for (const auto& [x, value] : run) {
    const auto at = band.find(x);
    if (at == band.end()) continue;
    if (value && *value >= at->second.p5 && *value <= at->second.p95) {
      outside = 0;
      continue;
    }
    if (outside++ == 0) first = x;
    if (outside == in_a_row) return first;
  }
  return std::nullopt;
}

}  // namespace tocsin::app
