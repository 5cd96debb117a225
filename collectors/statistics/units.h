// Units of a layer: a position behind the batch axis, or a channel, whose samples run over batch and
// space (docs/statistics.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectors/elements.h"
#include "collectors/statistics/statistic.h"

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

/// Units of which less than `percent` of the samples are `active(x)`; nullopt: the tensor has no
/// units, or its type no order.
template <typename Active>
std::optional<std::uint64_t> count_inactive(const TensorSample& sample, const UnitLayout& layout,
                                            double percent, Active&& active) {
  std::vector<std::uint64_t> counts(layout.units);
  std::uint64_t unit = 0;
  std::uint64_t left = layout.inner;
  const bool real =
      each_block(sample.dtype, sample.data, sample.count, [&](std::span<const double> block) {
        for (const double x : block) {
          counts[unit] += active(x) ? 1 : 0;
          if (--left != 0) continue;
          left = layout.inner;
          if (++unit == layout.units) unit = 0;
        }
      });
  if (!real) return std::nullopt;
  std::uint64_t inactive = 0;
  for (const std::uint64_t count : counts) {
    const double share = 100 * static_cast<double>(count) / static_cast<double>(layout.samples);
    inactive += share < percent ? 1 : 0;
  }
  return inactive;
}

}  // namespace tocsin::collectors
