// From rows to bytes: builds one frame at a time in a buffer that is kept, so that writing does not
// allocate once the buffer has grown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/result.h"
#include "ingest/wire/frame_decoder.h"

namespace tocsin::ingest {

/// What one Kafka record may hold; brokers refuse 1 MB by default.
inline constexpr std::size_t kMaxRecordBytes = 900 * 1024;

/// Order of calls: one of the kinds, any number of extensions, finish(). The kind's call starts a
/// new frame, whatever happened before. `header` gives run, worker, steps, time, sequence and
/// flags; the writer fills in magic, version, kind, lengths, row count and CRC. Not thread-safe.
class FrameWriter {
 public:
  FrameWriter& summary(const core::FrameHeader& header, std::span<const core::SummaryRow> rows);
  FrameWriter& scalars(const core::FrameHeader& header, std::span<const core::ScalarRow> rows);
  FrameWriter& step_ends(const core::FrameHeader& header, std::span<const core::StepEndRow> rows);
  FrameWriter& system(const core::FrameHeader& header, std::span<const core::SystemRow> rows);
  FrameWriter& spans(const core::FrameHeader& header, std::span<const core::SpanRow> rows);
  /// `json`: one lifecycle object, see encode_lifecycle().
  FrameWriter& lifecycle(const core::FrameHeader& header, std::string_view json);
  FrameWriter& dictionary(const core::FrameHeader& header,
                          std::span<const core::DictionaryEntry> entries);
  /// Kind 8, with its two extensions as far as they are there.
  FrameWriter& tensor_chunk(const core::FrameHeader& header, const TensorChunk& chunk);
  /// Kind 9: opaque bytes of the engine.
  FrameWriter& snapshot(const core::FrameHeader& header, std::span<const std::byte> body);

  /// Tag 1: `values[i]` is the statistic of row `rows[i]`; rows ascend. Same length of both.
  FrameWriter& sparse_column(core::SparseStat stat, std::span<const double> params,
                             std::span<const std::uint32_t> rows, std::span<const double> values);
  /// Tag 1 with the values as bits: those of numbers, or of integers such as `digest`.
  FrameWriter& sparse_bits(core::SparseStat stat, std::span<const std::uint32_t> rows,
                           std::span<const std::uint64_t> values);
  /// Tag 2: a vector of one row (channel sums, class counts, …); `stat` as in docs/statistics.md.
  FrameWriter& vector(std::uint16_t stat, std::uint32_t row, std::span<const double> params,
                      std::span<const double> values);
  /// Tag 3: exponential histogram of scale 3 of one row.
  FrameWriter& histogram(std::uint32_t row, std::int32_t positive_offset,
                         std::span<const std::uint64_t> positive, std::int32_t negative_offset,
                         std::span<const std::uint64_t> negative);
  /// Any other tag.
  FrameWriter& extension(std::uint16_t tag, std::span<const std::byte> payload);

  /// Bytes of the frame so far, header included: what a caller looks at to split in time.
  [[nodiscard]] std::size_t size() const noexcept { return buffer_.size(); }

  /// The finished frame; valid until the next call. Errors: resource_exhausted (larger than
  /// kMaxRecordBytes or more than kMaxFrameRows rows: split it), invalid_argument (rows and values
  /// of a sparse column differ in number, a row number that does not exist, an extension on a kind
  /// that has none, no kind was started).
  [[nodiscard]] core::Result<std::span<const std::byte>> finish();

 private:
  template <typename Row>
  FrameWriter& columns(core::FrameKind kind, const core::FrameHeader& header,
                       std::span<const Row> rows);
  void begin(core::FrameKind kind, const core::FrameHeader& header, std::size_t rows,
             std::size_t stride);
  FrameWriter& sparse(core::SparseStat stat, std::span<const double> params,
                      std::span<const std::uint32_t> rows, std::span<const std::byte> values);
  std::size_t begin_extension(std::uint16_t tag);
  std::size_t extend(std::uint16_t tag);
  void end_extension(std::size_t at);
  void append(const void* data, std::size_t bytes);
  template <typename T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void pad();
  void refuse(std::string_view why);

  std::vector<std::byte> buffer_;
  core::FrameHeader header_;
  std::string_view refusal_ = "no frame was started";  // static text; empty = fine
  bool columnar_ = false;
  bool too_large_ = false;
};

}  // namespace tocsin::ingest
