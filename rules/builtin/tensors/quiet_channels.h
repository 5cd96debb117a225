// The channels of a layer that say least: where the hook measures them (statistic `channels`), the evidence
// of dead_relu names them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/value.h"
#include "rules/contract/row.h"

namespace tocsin::rules {

inline constexpr std::size_t kMostQuietChannels = 10;

/// Of a row that was measured by channels: [number, mean], the least mean first; else empty.
inline core::ValueList quiet_channels(const RowBatch& batch, std::size_t row) {
  const core::SparseVector* sums = nullptr;
  const core::SparseVector* counts = nullptr;
  for (const core::SparseVector& one : batch.vectors) {
    if (one.row != row) continue;
    if (one.stat == core::VectorStat::channel_sum) sums = &one;
    if (one.stat == core::VectorStat::channel_count) counts = &one;
  }
  if (sums == nullptr || counts == nullptr || sums->size() != counts->size()) return {};
  std::vector<std::pair<double, std::uint64_t>> means;
  for (std::size_t i = 0; i < sums->size(); ++i) {
    if (counts->value(i) > 0) means.emplace_back(sums->value(i) / counts->value(i), i);
  }
  const std::size_t most = std::min(means.size(), kMostQuietChannels);
  const auto last = means.begin() + static_cast<std::ptrdiff_t>(most);
  std::partial_sort(means.begin(), last, means.end());
  core::ValueList out;
  for (auto one = means.begin(); one != last; ++one) {
    out.emplace_back(core::ValueList{one->second, one->first});
  }
  return out;
}

}  // namespace tocsin::rules
