#include "ingest/wire/frame_writer.h"

#include <algorithm>
#include <cstring>

#include "ingest/wire/crc32c.h"
#include "ingest/wire/field.h"
#include "ingest/wire/tensor_chunk.h"

namespace tocsin::ingest {
namespace {

using core::FrameHeader;
using core::FrameKind;

constexpr std::uint16_t kSparseTag = 1;
constexpr std::uint16_t kVectorTag = 2;
constexpr std::uint16_t kHistogramTag = 3;
constexpr std::size_t kExtensionHead = 8;

}  // namespace

void FrameWriter::begin(FrameKind kind, const FrameHeader& header, std::size_t rows,
                        std::size_t stride) {
  refusal_ = {};
  header_ = header;
  header_.magic = FrameHeader{}.magic;
  header_.major = 1;
  header_.minor = 0;
  header_.kind = kind;
  header_.header_length = core::kFrameHeaderBytes;
  header_.row_stride = static_cast<std::uint16_t>(stride);
  header_.row_count = static_cast<std::uint32_t>(std::min<std::size_t>(rows, 0xFFFFFFFFU));
  header_.crc = 0;
  header_.flags &= ~core::frame_flag::kUnsequenced;
  columnar_ = stride != 0;
  buffer_.resize(core::kFrameHeaderBytes);
  too_large_ = rows > core::kMaxFrameRows;
}

template <typename Row>
FrameWriter& FrameWriter::columns(FrameKind kind, const FrameHeader& header,
                                  std::span<const Row> rows) {
  begin(kind, header, rows.size(), sizeof(Row));
  if (core::kFrameHeaderBytes + rows.size_bytes() > kMaxRecordBytes) too_large_ = true;
  if (too_large_) return *this;  // finish() says so; nothing is copied for it
  buffer_.resize(core::kFrameHeaderBytes + rows.size_bytes());
  std::byte* const to = buffer_.data() + core::kFrameHeaderBytes;
  const std::size_t column = rows.size() * core::kColumnBytes;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto* from = reinterpret_cast<const std::byte*>(&rows[row]);
    for (std::size_t k = 0; k < sizeof(Row) / core::kColumnBytes; ++k) {
      std::memcpy(to + k * column + row * core::kColumnBytes, from + k * core::kColumnBytes,
                  core::kColumnBytes);
    }
  }
  return *this;
}

FrameWriter& FrameWriter::summary(const FrameHeader& header,
                                  std::span<const core::SummaryRow> rows) {
  return columns(FrameKind::summary, header, rows);
}
FrameWriter& FrameWriter::scalars(const FrameHeader& header,
                                  std::span<const core::ScalarRow> rows) {
  return columns(FrameKind::scalar, header, rows);
}
FrameWriter& FrameWriter::step_ends(const FrameHeader& header,
                                    std::span<const core::StepEndRow> rows) {
  return columns(FrameKind::step_end, header, rows);
}
FrameWriter& FrameWriter::system(const FrameHeader& header, std::span<const core::SystemRow> rows) {
  return columns(FrameKind::system, header, rows);
}
FrameWriter& FrameWriter::spans(const FrameHeader& header, std::span<const core::SpanRow> rows) {
  return columns(FrameKind::span, header, rows);
}

FrameWriter& FrameWriter::lifecycle(const FrameHeader& header, std::string_view json) {
  begin(FrameKind::lifecycle, header, 1, 0);
  append(json.data(), json.size());
  return *this;
}

FrameWriter& FrameWriter::dictionary(const FrameHeader& header,
                                     std::span<const core::DictionaryEntry> entries) {
  begin(FrameKind::dictionary, header, entries.size(), 0);
  for (const core::DictionaryEntry& entry : entries) {
    const std::size_t dims = entry.dims_bytes.size() / 8;
    if (dims > 255) {
      refuse("a dictionary entry has more than 255 dimensions");
      break;
    }
    if (entry.name.size() + entry.attrs.size() > kMaxRecordBytes) too_large_ = true;
    if (too_large_) break;
    put(entry.hash);
    put(entry.type);
    put(entry.dtype);
    put(entry.role);
    put(static_cast<std::uint8_t>(dims));
    put(static_cast<std::uint32_t>(entry.name.size()));
    put(static_cast<std::uint32_t>(entry.attrs.size()));
    put(std::uint32_t{0});
    append(entry.dims_bytes.data(), dims * 8);
    append(entry.name.data(), entry.name.size());
    append(entry.attrs.data(), entry.attrs.size());
    pad();
  }
  return *this;
}

FrameWriter& FrameWriter::tensor_chunk(const FrameHeader& header, const TensorChunk& chunk) {
  begin(FrameKind::tensor_chunk, header, 1, 0);
  const std::size_t dims = chunk.dims_bytes.size() / 8;
  if (dims > 255) refuse("a tensor chunk has more than 255 dimensions");
  put(chunk.name);
  put(chunk.dtype);
  put(static_cast<std::uint8_t>(dims));
  put(std::uint16_t{0});
  put(chunk.chunk);
  put(chunk.chunks);
  put(static_cast<std::uint32_t>(chunk.data.size()));
  put(chunk.byte_offset);
  put(chunk.total_bytes);
  append(chunk.dims_bytes.data(), dims * 8);
  append(chunk.data.data(), chunk.data.size());
  if (chunk.about) {
    pad();
    const std::size_t at = extend(kAboutTag);
    put(chunk.about->meta);
    put(static_cast<std::uint32_t>(chunk.about->name.size()));
    put(static_cast<std::uint32_t>(chunk.about->worker.size()));
    append(chunk.about->name.data(), chunk.about->name.size());
    append(chunk.about->worker.data(), chunk.about->worker.size());
    end_extension(at);
  }
  if (chunk.dataref) {
    pad();
    const std::size_t at = extend(kDataRefTag);
    put(chunk.dataref->offset);
    put(chunk.dataref->bytes);
    append(chunk.dataref->uri.data(), chunk.dataref->uri.size());
    end_extension(at);
  }
  return *this;
}

FrameWriter& FrameWriter::snapshot(const FrameHeader& header, std::span<const std::byte> body) {
  begin(FrameKind::snapshot, header, 0, 0);
  append(body.data(), body.size());
  return *this;
}

FrameWriter& FrameWriter::sparse_column(core::SparseStat stat, std::span<const double> params,
                                        std::span<const std::uint32_t> rows,
                                        std::span<const double> values) {
  return sparse(stat, params, rows, std::as_bytes(values));
}

FrameWriter& FrameWriter::sparse_bits(core::SparseStat stat, std::span<const std::uint32_t> rows,
                                      std::span<const std::uint64_t> values) {
  return sparse(stat, {}, rows, std::as_bytes(values));
}

FrameWriter& FrameWriter::sparse(core::SparseStat stat, std::span<const double> params,
                                 std::span<const std::uint32_t> rows,
                                 std::span<const std::byte> values) {
  std::uint64_t next = 0;
  for (const std::uint32_t row : rows) {
    if (row < next || row >= header_.row_count) {
      refuse("the rows of a sparse column ascend and exist");
      return *this;
    }
    next = std::uint64_t{row} + 1;
  }
  if (rows.size() * 8 != values.size() || params.size() > 0xFFFF) {
    refuse("a sparse column has one value per row and at most 65535 parameters");
    return *this;
  }
  const std::size_t at = begin_extension(kSparseTag);
  put(stat);
  put(static_cast<std::uint16_t>(params.size()));
  put(static_cast<std::uint32_t>(rows.size()));
  append(params.data(), params.size_bytes());
  append(rows.data(), rows.size_bytes());
  pad();
  append(values.data(), values.size());
  end_extension(at);
  return *this;
}

FrameWriter& FrameWriter::vector(std::uint16_t stat, std::uint32_t row,
                                 std::span<const double> params, std::span<const double> values) {
  if (row >= header_.row_count || params.size() > 0xFFFF) {
    refuse("a vector belongs to a row that exists and has at most 65535 parameters");
    return *this;
  }
  const std::size_t at = begin_extension(kVectorTag);
  put(stat);
  put(static_cast<std::uint16_t>(params.size()));
  put(row);
  put(static_cast<std::uint32_t>(values.size()));
  put(std::uint32_t{0});
  append(params.data(), params.size_bytes());
  append(values.data(), values.size_bytes());
  end_extension(at);
  return *this;
}

FrameWriter& FrameWriter::histogram(std::uint32_t row, std::int32_t positive_offset,
                                    std::span<const std::uint64_t> positive,
                                    std::int32_t negative_offset,
                                    std::span<const std::uint64_t> negative) {
  if (row >= header_.row_count) {
    refuse("a histogram belongs to a row that exists");
    return *this;
  }
  const std::size_t at = begin_extension(kHistogramTag);
  put(row);
  put(positive_offset);
  put(static_cast<std::uint32_t>(positive.size()));
  put(negative_offset);
  put(static_cast<std::uint32_t>(negative.size()));
  put(std::uint32_t{0});
  append(positive.data(), positive.size_bytes());
  append(negative.data(), negative.size_bytes());
  end_extension(at);
  return *this;
}

FrameWriter& FrameWriter::extension(std::uint16_t tag, std::span<const std::byte> payload) {
  const std::size_t at = begin_extension(tag);
  append(payload.data(), payload.size());
  end_extension(at);
  return *this;
}

core::Result<std::span<const std::byte>> FrameWriter::finish() {
  if (!refusal_.empty()) return core::invalid_argument("frame refused: " + std::string(refusal_));
  if (too_large_ || buffer_.size() > kMaxRecordBytes) {
    return core::Error{core::Code::resource_exhausted,
                       "frame too large: a record holds at most " +
                           std::to_string(kMaxRecordBytes) + " bytes and " +
                           std::to_string(core::kMaxFrameRows) + " rows; split it"};
  }
  header_.body_length = static_cast<std::uint32_t>(buffer_.size() - core::kFrameHeaderBytes);
  header_.crc = 0;
  std::memcpy(buffer_.data(), &header_, sizeof header_);
  header_.crc = crc32c(buffer_);
  std::memcpy(buffer_.data(), &header_, sizeof header_);
  return std::span<const std::byte>(buffer_);
}

std::size_t FrameWriter::begin_extension(std::uint16_t tag) {
  if (!columnar_) refuse("only kinds with columns have extensions");
  return extend(tag);
}

std::size_t FrameWriter::extend(std::uint16_t tag) {
  const std::size_t at = buffer_.size();
  put(tag);
  put(std::uint16_t{0});
  put(std::uint32_t{0});  // length: end_extension() knows it
  return at;
}

void FrameWriter::end_extension(std::size_t at) {
  if (too_large_) return;
  const auto length = static_cast<std::uint32_t>(buffer_.size() - at - kExtensionHead);
  std::memcpy(buffer_.data() + at + 4, &length, sizeof length);
  pad();
}

void FrameWriter::append(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  if (bytes > kMaxRecordBytes || buffer_.size() > kMaxRecordBytes) {
    too_large_ = true;  // keeps a caller that never splits from growing the buffer without end
    return;
  }
  const auto* from = static_cast<const std::byte*>(data);
  buffer_.insert(buffer_.end(), from, from + bytes);
}

void FrameWriter::pad() { buffer_.resize(padded(buffer_.size())); }

void FrameWriter::refuse(std::string_view why) {
  if (refusal_.empty()) refusal_ = why;
}

}  // namespace tocsin::ingest
