// What may follow the columns of a frame, and the entries of a dictionary frame (docs/wire.md).
// Views: they borrow from the frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/codes.h"

namespace tocsin::core {

/// Statistics of tag-1 extensions.
enum class SparseStat : std::uint16_t {
  median = 1,
  prod = 2,
  p05 = 3,
  p25 = 4,
  p75 = 5,
  p95 = 6,
  delta_l2 = 7,
  delta_max_abs = 8,
  delta_excess = 9,
  prev_l2 = 10,
  delta_from_step = 11,
  unit_count = 12,
  unit_inactive_count = 13,
  unit_saturated_count = 14,
  abs_ge_count = 15,
  depth = 16,
  abs_min = 17,
  abs_median = 18,
  abs_prod = 19,
  first_bad_index = 20,
  digest = 0x8001,
};

/// Extension tag 1: one statistic for some rows of the frame.
struct SparseColumn {
  SparseStat stat{};
  std::span<const std::byte> params_bytes;  // f64[p]
  std::span<const std::byte> row_bytes;     // u32[m], ascending
  std::span<const std::byte> value_bytes;   // f64[m] (u64 for digest)
  [[nodiscard]] std::size_t size() const noexcept { return row_bytes.size() / 4; }
  [[nodiscard]] std::uint32_t row(std::size_t i) const noexcept {
    return load<std::uint32_t>(row_bytes, i);
  }
  [[nodiscard]] double value(std::size_t i) const noexcept { return load<double>(value_bytes, i); }
  [[nodiscard]] double param(std::size_t i) const noexcept { return load<double>(params_bytes, i); }

 private:
  template <typename T>
  static T load(std::span<const std::byte> bytes, std::size_t i) noexcept {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  }
};

/// Statistics of tag-2 extensions.
enum class VectorStat : std::uint16_t {
  channel_sum = 32,
  channel_sumsq = 33,
  channel_count = 34,
  value_counts = 35,
  class_counts = 36,
  class_correct = 37,
  confusion = 38,
};

/// Extension tag 2: several numbers for one row.
struct SparseVector {
  VectorStat stat{};
  std::uint32_t row = 0;
  std::span<const std::byte> params_bytes;  // f64[p]
  std::span<const std::byte> value_bytes;   // f64[n]
  [[nodiscard]] std::size_t size() const noexcept { return value_bytes.size() / sizeof(double); }
  [[nodiscard]] double value(std::size_t i) const noexcept {
    double out = 0;
    std::memcpy(&out, value_bytes.data() + i * sizeof out, sizeof out);
    return out;
  }
};

enum class DictionaryType : std::uint8_t {
  tensor = 1,
  scalar = 2,
  series = 3,
  worker = 4,
  node = 5,
  span_name = 6,
  track = 7,
  span_args = 8,
};

/// One entry of a dictionary frame; borrows from the frame.
struct DictionaryEntry {
  std::uint64_t hash = 0;
  DictionaryType type = DictionaryType::tensor;
  Dtype dtype = Dtype::unknown;
  Role role = Role::other;
  std::span<const std::byte> dims_bytes;  // i64[ndim]
  std::string_view name;
  std::string_view attrs;  // JSON or empty
};

}  // namespace tocsin::core
