// Units of a layer: a position behind the batch axis, or a channel, whose samples run over batch and
// space (docs/statistics.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {

/// In row-major order `inner` elements of one unit follow each other, and then those of the next.
struct UnitLayout {
  std::uint64_t units = 0;
  std::uint64_t inner = 0;
  std::uint64_t samples = 0;  // of each unit
};

/// Axis 0 is the batch, axis 1 the unit; one dimension is one unit. nullopt: a single value, too
/// many units, or elements in another order.
inline std::optional<UnitLayout> layout_of_units(const TensorSample& sample) {
  constexpr std::uint64_t kMostUnits = std::uint64_t{1} << 20;
  if (!sample.row_major || sample.shape.empty() || sample.count == 0) return std::nullopt;
  if (sample.shape.size() == 1) return UnitLayout{1, sample.count, sample.count};
  UnitLayout out{static_cast<std::uint64_t>(sample.shape[1]), 1, 0};
  for (std::size_t i = 2; i < sample.shape.size(); ++i) {
    out.inner *= static_cast<std::uint64_t>(sample.shape[i]);
  }
  if (out.units > kMostUnits) return std::nullopt;
  out.samples = sample.count / out.units;
  return out;
}

/// Calls visit(unit, elements) with elements of one unit that follow each other. False, and no call,
/// for types that are not real.
template <typename Visit>
bool each_run(const TensorSample& sample, const UnitLayout& layout, Visit&& visit) {
  std::uint64_t unit = 0;
  std::uint64_t left = layout.inner;
  return each_block(sample.dtype, sample.data, sample.count, [&](std::span<const double> block) {
    while (!block.empty()) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size()));
      visit(unit, block.first(n));
      block = block.subspan(n);
      left -= n;
      if (left != 0) continue;
      left = layout.inner;
      if (++unit == layout.units) unit = 0;
    }
  });
}

/// How many elements of each unit are `active(x)`; nullopt: of a type that is not real.
template <typename Active>
std::optional<std::vector<std::uint64_t>> count_active(const TensorSample& sample,
                                                       const UnitLayout& layout, Active&& active) {
  std::vector<std::uint64_t> counts(layout.units);
  if (layout.inner > 1) {
    const auto add = [&](std::uint64_t unit, std::span<const double> run) {
      std::uint64_t found = 0;
      for (const double x : run) found += active(x) ? 1 : 0;
      counts[unit] += found;
    };
    if (!each_run(sample, layout, add)) return std::nullopt;
    return counts;
  }
  std::uint64_t unit = 0;  // one element of each follows the other
  const auto add = [&](std::span<const double> block) {
    while (!block.empty()) {
      const auto n =
          static_cast<std::size_t>(std::min<std::uint64_t>(layout.units - unit, block.size()));
      for (std::size_t i = 0; i < n; ++i) counts[unit + i] += active(block[i]) ? 1 : 0;
      block = block.subspan(n);
      unit = (unit + n) % layout.units;
    }
  };
  if (!each_block(sample.dtype, sample.data, sample.count, add)) return std::nullopt;
  return counts;
}

/// Units of which less than `percent` of the samples are `active(x)`; nullopt: of a type that is not
/// real.
template <typename Active>
std::optional<std::uint64_t> count_inactive(const TensorSample& sample, const UnitLayout& layout,
                                            double percent, Active&& active) {
  const auto counts = count_active(sample, layout, active);
  if (!counts) return std::nullopt;
  std::uint64_t inactive = 0;
  for (const std::uint64_t count : *counts) {
    const double share = 100 * static_cast<double>(count) / static_cast<double>(layout.samples);
    inactive += share < percent ? 1 : 0;
  }
  return inactive;
}

}  // namespace tocsin::collectors
