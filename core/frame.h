// Frame v1: the layout of telemetry on the wire (docs/wire.md), and views into it.
// Views borrow and never check: only ingest/wire/frame_decoder makes them, after
// validating every length.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/codes.h"
#include "core/frame_extensions.h"
#include "core/frame_rows.h"
#include "core/identity.h"

namespace tocsin::core {

static_assert(std::endian::native == std::endian::little, "frame v1 is read in place");

inline constexpr std::size_t kFrameHeaderBytes = 112;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;
inline constexpr std::size_t kTargetFrameBytes = 256 * 1024;
inline constexpr std::uint32_t kMaxFrameRows = 65536;

/// Header flags.
namespace frame_flag {
inline constexpr std::uint32_t kAfterUpdate = 1;  // values taken after the update
inline constexpr std::uint32_t kFromSpool = 2;    // sent late from a spool
inline constexpr std::uint32_t kDegraded = 4;     // the overhead governor stretched the interval
inline constexpr std::uint32_t kUnsequenced =
    1U << 31;  // never on the wire: made from JSON, no sequence
}  // namespace frame_flag

/// The 112 bytes, as they are.
struct FrameHeader {
  std::array<char, 4> magic{'T', 'C', 'S', 'N'};
  std::uint8_t major = 1;
  std::uint8_t minor = 0;
  FrameKind kind = FrameKind::summary;
  Mode mode = Mode::global;
  std::uint16_t header_length = kFrameHeaderBytes;
  std::uint16_t row_stride = 0;  // 8 × columns the writer knows
  std::uint32_t row_count = 0;
  std::uint32_t body_length = 0;  // bytes after the header
  std::uint32_t crc = 0;          // CRC32C of the whole frame with these 4 bytes zero
  RunUid run;
  std::uint32_t attempt = 1;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;  // 0 unknown
  std::uint16_t shard = 0;
  std::uint16_t shard_count = 1;
  std::int64_t step = 0;  // mode step; the last one in the frame
  std::int64_t global_step = 0;
  std::int64_t time = 0;          // of measurement, UTC ns
  std::uint64_t sequence = 0;     // +1 per frame of (worker, incarnation, shard)
  std::uint64_t incarnation = 0;  // wall ns when the client opened
  std::uint64_t worker = 0;       // hash of the worker's name
  std::uint32_t pass = 0;         // how often this worker entered this mode before
  std::uint32_t flags = 0;
};
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

/// One column of n rows; loads are unaligned-safe.
template <typename T>
class ColumnView {
  static_assert(sizeof(T) == kColumnBytes);

 public:
  ColumnView() = default;
  ColumnView(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T operator[](std::size_t row) const noexcept {
    T value;
    std::memcpy(&value, data_ + row * kColumnBytes, sizeof value);
    return value;
  }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A validated frame. Copy freely; it borrows the record's bytes.
class FrameView {
 public:
  FrameView(const FrameHeader& header, const std::byte* body) : header_(header), body_(body) {}

  [[nodiscard]] const FrameHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::size_t rows() const noexcept { return header_.row_count; }
  /// Column k as T; valid for k < row_stride / 8.
  template <typename T>
  [[nodiscard]] ColumnView<T> column(std::size_t k) const noexcept {
    return {body_ + k * kColumnBytes * rows(), rows()};
  }
  /// Row `at` < rows() as a Row, a struct of columns. What its writer knew and Row does not is
  /// passed over; what Row knows and its writer did not stays as Row{} has it. `kSure`: columns that
  /// no frame of the kind lacks.
  template <typename Row, std::size_t kSure = 0>
  [[nodiscard]] Row row(std::size_t at) const noexcept {
    constexpr std::size_t kKnown = sizeof(Row) / kColumnBytes;
    static_assert(kSure <= kKnown);
    Row out;
    auto* to = reinterpret_cast<std::byte*>(&out);
    const auto copy = [&](std::size_t k) {
      std::memcpy(to + k * kColumnBytes, body_ + (k * rows() + at) * kColumnBytes, kColumnBytes);
    };
    for (std::size_t k = 0; k < kSure; ++k) copy(k);
    for (std::size_t k = kSure; k < kKnown; ++k) {
      if (k * kColumnBytes < header_.row_stride) copy(k);
    }
    return out;
  }
  /// The same for a frame of the kind that the name says.
  [[nodiscard]] SummaryRow summary(std::size_t at) const noexcept {
    return row<SummaryRow, least_columns(FrameKind::summary)>(at);
  }
  [[nodiscard]] ScalarRow scalar(std::size_t at) const noexcept {
    return row<ScalarRow, least_columns(FrameKind::scalar)>(at);
  }
  [[nodiscard]] StepEndRow step_end(std::size_t at) const noexcept {
    return row<StepEndRow, least_columns(FrameKind::step_end)>(at);
  }
  [[nodiscard]] SystemRow system(std::size_t at) const noexcept {
    return row<SystemRow, least_columns(FrameKind::system)>(at);
  }
  [[nodiscard]] SpanRow span(std::size_t at) const noexcept {
    return row<SpanRow, least_columns(FrameKind::span)>(at);
  }

  /// Lifecycle: the JSON object. Snapshot, dictionary, tensor chunk: the raw body.
  [[nodiscard]] std::string_view body_text() const noexcept {
    return {reinterpret_cast<const char*>(body_), header_.body_length};
  }
  [[nodiscard]] std::span<const std::byte> body() const noexcept {
    return {body_, header_.body_length};
  }

  /// True for the kinds made of columns: only these have extensions behind them.
  [[nodiscard]] bool columnar() const noexcept {
    return header_.kind == FrameKind::summary || header_.kind == FrameKind::scalar ||
           header_.kind == FrameKind::step_end || header_.kind == FrameKind::system ||
           header_.kind == FrameKind::span;
  }

  /// Calls visit(tag, payload) for each extension; the codec has checked that they fit.
  template <typename Visit>
  void extensions(Visit&& visit) const {
    if (!columnar()) return;
    std::size_t at = static_cast<std::size_t>(header_.row_stride) * rows();
    while (at + 8 <= header_.body_length) {
      std::uint16_t tag = 0;
      std::uint32_t length = 0;
      std::memcpy(&tag, body_ + at, 2);
      std::memcpy(&length, body_ + at + 4, 4);
      visit(tag, std::span<const std::byte>(body_ + at + 8, length));
      at += 8 + ((std::size_t{length} + 7) & ~std::size_t{7});
    }
  }

  /// Calls visit(const SparseColumn&) for each well-formed tag-1 extension.
  template <typename Visit>
  void sparse_columns(Visit&& visit) const {
    extensions([&](std::uint16_t tag, std::span<const std::byte> bytes) {
      if (tag != 1 || bytes.size() < 8) return;
      std::uint16_t stat = 0;
      std::uint16_t params = 0;
      std::uint32_t m = 0;
      std::memcpy(&stat, bytes.data(), 2);
      std::memcpy(&params, bytes.data() + 2, 2);
      std::memcpy(&m, bytes.data() + 4, 4);
      const std::size_t rows_at = 8 + std::size_t{params} * 8;
      const std::size_t values_at = rows_at + ((std::size_t{m} * 4 + 7) & ~std::size_t{7});
      if (m > kMaxFrameRows || values_at + std::size_t{m} * 8 > bytes.size()) return;
      SparseColumn column;
      column.stat = static_cast<SparseStat>(stat);
      column.params_bytes = bytes.subspan(8, std::size_t{params} * 8);
      column.row_bytes = bytes.subspan(rows_at, std::size_t{m} * 4);
      column.value_bytes = bytes.subspan(values_at, std::size_t{m} * 8);
      visit(column);
    });
  }

  /// Calls visit(const SparseVector&) for each well-formed tag-2 extension.
  template <typename Visit>
  void vectors(Visit&& visit) const {
    extensions([&](std::uint16_t tag, std::span<const std::byte> bytes) {
      constexpr std::size_t kFixed = 16;
      if (tag != 2 || bytes.size() < kFixed) return;
      SparseVector vector;
      std::uint16_t params = 0;
      std::uint32_t n = 0;
      static_assert(sizeof vector.stat == 2);
      std::memcpy(&vector.stat, bytes.data(), 2);
      std::memcpy(&params, bytes.data() + 2, 2);
      std::memcpy(&vector.row, bytes.data() + 4, 4);
      std::memcpy(&n, bytes.data() + 8, 4);
      const std::size_t values_at = kFixed + std::size_t{params} * 8;
      if (vector.row >= rows() || values_at + std::size_t{n} * 8 > bytes.size()) return;
      vector.params_bytes = bytes.subspan(kFixed, std::size_t{params} * 8);
      vector.value_bytes = bytes.subspan(values_at, std::size_t{n} * 8);
      visit(vector);
    });
  }

 private:
  FrameHeader header_;
  const std::byte* body_;
};

}  // namespace tocsin::core
