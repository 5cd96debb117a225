#include "insights/series/pyramid.h"

#include <utility>
#include <vector>

namespace tocsin::insights {

void visit_rolled(
    const SeriesRows& chunk, std::size_t column, std::int64_t k0,
    core::FunctionRef<void(std::int64_t level, std::int64_t at, const Bucket&)> visit) {
  // x grows, so what comes belongs to the last bucket or begins another one.
  std::vector<std::pair<std::int64_t, Bucket>> part;
  const auto last_at = [](auto& buckets, std::int64_t at) -> Bucket& {
    if (buckets.empty() || buckets.back().first != at) buckets.emplace_back(at, Bucket());
    return buckets.back().second;
  };
  for (std::size_t at = 0; at < chunk.size(); ++at)
    last_at(part, chunk.x[at] >> k0).add(chunk.x[at], chunk.columns[column][at]);
  for (std::int64_t step = 0; step < kLevels; ++step) {
    if (step > 0) {
      std::vector<std::pair<std::int64_t, Bucket>> wider;
      for (const auto& entry : part) last_at(wider, entry.first >> kLevelStep).append(entry.second);
      part = std::move(wider);
    }
    for (const auto& entry : part) visit(k0 + step * kLevelStep, entry.first, entry.second);
  }
}

}  // namespace tocsin::insights
