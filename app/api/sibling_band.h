// What completed runs of the same job came to at each step, and where a run leaves that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tocsin::app {

/// Percentiles of the siblings' values in one bucket of steps, linear between neighbours as NumPy's.
struct BandBucket {
  double p5 = 0, p50 = 0, p95 = 0;
  std::int64_t siblings = 0;  // that have a value there
};
/// By the bucket's first step; buckets in which fewer than `kLeastSiblings` have a value are not there.
using SiblingBand = std::map<std::int64_t, BandBucket>;
inline constexpr std::size_t kLeastSiblings = 3;

/// Values of one run by the bucket's first step; nullopt: it has some that are not finite.
using RunValues = std::map<std::int64_t, std::optional<double>>;

/// Empty: there are fewer than kLeastSiblings.
SiblingBand band_of(const std::vector<RunValues>& siblings);

/// The first of `in_a_row` successive buckets in which the run is below p5, above p95 or not finite.
/// Buckets that the band or the run lacks are passed over. nullopt: nowhere.
std::optional<std::int64_t> leaves_band(const SiblingBand& band, const RunValues& run,
                                        std::int64_t in_a_row);

}  // namespace tocsin::app
