#include "insights/series/pyramid.h"

#include <utility>

namespace tocsin::insights {

void visit_rolled(
    const SeriesRows& chunk, std::size_t column, std::int64_t k0,
    core::FunctionRef<void(std::int64_t level, std::int64_t at, const Bucket&)> visit) {
  Buckets part;
  for (std::size_t at = 0; at < chunk.size(); ++at)
    part[chunk.x[at] >> k0].add(chunk.x[at], chunk.columns[column][at]);
  for (std::int64_t step = 0; step < kLevels; ++step) {
    if (step > 0) {
      Buckets wider;
      for (const auto& entry : part) wider[entry.first >> kLevelStep].append(entry.second);
      part = std::move(wider);
    }
    for (const auto& entry : part) visit(k0 + step * kLevelStep, entry.first, entry.second);
  }
}

}  // namespace tocsin::insights
