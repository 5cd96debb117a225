// Elements of a tensor counted by their magnitude: what the statistic `histogram` sends (docs/wire.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::insights {

/// Buckets first, first + 1, … of one sign.
struct MagnitudeCounts {
  std::int64_t first = 0;
  std::vector<std::uint64_t> counts;  // the first and the last are not 0

  [[nodiscard]] bool empty() const noexcept { return counts.empty(); }
  [[nodiscard]] std::int64_t end() const noexcept {
    return first + static_cast<std::int64_t>(counts.size());
  }
};

/// Bucket i of scale s holds 2^(i / 2^s) < |x| ≤ 2^((i + 1) / 2^s). One scale down two buckets are one,
/// exactly: histograms of any scales add up at the coarser one. Counts stop at the greatest number.
struct ExponentialCounts {
  static constexpr int kFinest = 3;      // as frames have it
  static constexpr int kCoarsest = -11;  // two buckets hold all numbers of one sign

  int scale = kFinest;
  MagnitudeCounts positive, negative;
  std::uint64_t zero = 0, nan = 0, posinf = 0, neginf = 0;

  [[nodiscard]] std::uint64_t elements() const noexcept;
  /// Halves the resolution until it is `coarser`; nothing if it is coarse enough.
  void coarsen_to(int coarser);
  void add(const ExponentialCounts& more);
};

std::uint64_t sum_of(const MagnitudeCounts& counts) noexcept;

/// The row of the frame and its buckets, of a tag-3 extension. nullopt: it is none, or it counts elements
/// where no finite number is.
struct RowCounts {
  std::uint32_t row = 0;
  ExponentialCounts counts;
};
std::optional<RowCounts> read_row_counts(std::span<const std::byte> payload);

/// Buckets of one sign that are kept of one tensor and step; of more the resolution is halved.
inline constexpr std::size_t kMostBuckets = 1024;

/// As the store has it: at most kMostBuckets of each sign.
std::string encode_counts(ExponentialCounts counts);
/// nullopt: the bytes are not what encode_counts writes.
std::optional<ExponentialCounts> decode_counts(std::string_view bytes);

}  // namespace tocsin::insights
