// Rows of a family and blocks of its pyramid as bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "insights/series/bucket.h"

namespace tocsin::insights {

inline constexpr std::uint64_t kAllColumns = ~std::uint64_t{0};

/// Rows with one x and one number per column; x strictly grows.
struct SeriesRows {
  std::vector<std::int64_t> x;
  std::vector<std::vector<double>> columns;

  explicit SeriesRows(std::size_t of = 0) : columns(of) {}
  [[nodiscard]] std::size_t size() const noexcept { return x.size(); }
  void append(const SeriesRows& more, std::size_t from, std::size_t count);
};

/// In place of what `out` has. `pack`: small, for what is written once; else fast, for what is soon
/// written again.
void encode_rows(const SeriesRows& rows, bool pack, std::string& out);
/// nullopt: the bytes are not what encode_rows writes.
std::optional<SeriesRows> decode_rows(std::string_view bytes);

/// The x and the columns whose bits are set in `wanted`: the others are passed over, and stay empty.
std::optional<SeriesRows> decode_columns(std::string_view bytes, std::uint64_t wanted);

/// The buckets first, first + 1, … up to kBlockBuckets of them, of `buckets`, in place of what `out` has.
void encode_block(const Buckets& buckets, std::int64_t first, bool pack, std::string& out);
/// False: the bytes are not what encode_block writes; `out` has what could be read.
bool decode_block(std::string_view bytes, std::int64_t first, Buckets& out);

}  // namespace tocsin::insights
