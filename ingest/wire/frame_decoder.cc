#include "ingest/wire/frame_decoder.h"

#include <array>
#include <cstring>

#include "ingest/wire/crc32c.h"
#include "ingest/wire/field.h"

namespace tocsin::ingest {
namespace {

using core::FrameHeader;
using core::FrameKind;
using core::FrameView;

constexpr std::size_t kMajorAt = 4;
constexpr std::size_t kCrcAt = 20;
constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kDictionaryHead = 24;

/// One entry at `at`, which moves behind it. False when it does not fit.
bool next_entry(std::span<const std::byte> body, std::size_t& at, core::DictionaryEntry& out) {
  if (body.size() - at < kDictionaryHead) return false;
  const std::span<const std::byte> rest = body.subspan(at);
  const std::size_t dims = std::to_integer<std::size_t>(rest[11]) * 8;
  const std::size_t name = load<std::uint32_t>(rest, 12);
  const std::size_t attrs = load<std::uint32_t>(rest, 16);
  const std::size_t length = kDictionaryHead + dims + name + attrs;
  if (length > rest.size()) return false;
  out.hash = load<std::uint64_t>(rest, 0);
  out.type = static_cast<core::DictionaryType>(rest[8]);
  out.dtype = static_cast<core::Dtype>(rest[9]);
  out.role = static_cast<core::Role>(rest[10]);
  out.dims_bytes = rest.subspan(kDictionaryHead, dims);
  out.name = text_of(rest.subspan(kDictionaryHead + dims, name));
  out.attrs = text_of(rest.subspan(kDictionaryHead + dims + name, attrs));
  // The padding of the last entry may be missing: nothing stands behind it.
  at = padded(length) < rest.size() ? at + padded(length) : body.size();
  return true;
}

/// Tag 1: parameters, rows and values inside the payload, rows that exist and ascend.
bool sparse_fits(std::span<const std::byte> payload, std::uint32_t frame_rows) noexcept {
  if (payload.size() < 8) return false;
  const std::size_t params = load<std::uint16_t>(payload, 2);
  const std::size_t m = load<std::uint32_t>(payload, 4);
  if (m > frame_rows) return false;
  const std::size_t rows_at = 8 + params * 8;
  if (rows_at + padded(m * 4) + m * 8 > payload.size()) return false;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < m; ++i) {
    const std::uint32_t row = load<std::uint32_t>(payload, rows_at + i * 4);
    if (row < next || row >= frame_rows) return false;
    next = std::uint64_t{row} + 1;
  }
  return true;
}

/// Tag 2: u16 stat, u16 p, u32 row, u32 n, u32 0, f64 params[p], f64 values[n].
bool vector_fits(std::span<const std::byte> payload, std::uint32_t frame_rows) noexcept {
  if (payload.size() < 16 || load<std::uint32_t>(payload, 4) >= frame_rows) return false;
  const std::size_t numbers =
      std::size_t{load<std::uint16_t>(payload, 2)} + load<std::uint32_t>(payload, 8);
  return 16 + numbers * 8 <= payload.size();
}

/// Tag 3: u32 row, i32 offset, u32 n, i32 offset, u32 n, u32 0, u64 counts.
bool histogram_fits(std::span<const std::byte> payload, std::uint32_t frame_rows) noexcept {
  if (payload.size() < 24 || load<std::uint32_t>(payload, 0) >= frame_rows) return false;
  const std::size_t counts =
      std::size_t{load<std::uint32_t>(payload, 8)} + load<std::uint32_t>(payload, 16);
  return 24 + counts * 8 <= payload.size();
}

std::string_view check_extensions(std::span<const std::byte> area, std::uint32_t rows) noexcept {
  std::size_t at = 0;
  while (at < area.size()) {
    if (area.size() - at < 8) return "the extension area ends inside an extension's head";
    const std::uint16_t tag = load<std::uint16_t>(area, at);
    const std::size_t length = load<std::uint32_t>(area, at + 4);
    if (padded(length) > area.size() - at - 8) return "an extension reaches beyond the frame";
    const std::span<const std::byte> payload = area.subspan(at + 8, length);
    if (tag == 1 && !sparse_fits(payload, rows)) {
      return "a sparse column does not fit its extension, or names rows that do not exist";
    }
    if (tag == 2 && !vector_fits(payload, rows)) {
      return "a vector does not fit its extension, or names a row that does not exist";
    }
    if (tag == 3 && !histogram_fits(payload, rows)) {
      return "a histogram does not fit its extension, or names a row that does not exist";
    }
    at += 8 + padded(length);
  }
  return {};
}

/// What the kind asks of the body; empty = fine.
std::string_view check_body(const FrameHeader& header, std::span<const std::byte> body) noexcept {
  const std::size_t least = core::least_columns(header.kind);
  if (least != 0) {
    if (header.row_count != 0 && header.row_stride < least * core::kColumnBytes) {
      return "the rows have fewer columns than their kind";
    }
    return check_extensions(body.subspan(std::size_t{header.row_stride} * header.row_count),
                            header.row_count);
  }
  if (header.row_stride != 0) return "a kind without columns has a row stride";
  if (header.kind == FrameKind::dictionary) {
    std::size_t at = 0;
    core::DictionaryEntry entry;
    for (std::uint32_t i = 0; i < header.row_count; ++i) {
      if (!next_entry(body, at, entry)) return "a dictionary entry reaches beyond the frame";
    }
  } else if (header.kind == FrameKind::lifecycle) {
    if (header.row_count != 1) return "a lifecycle frame has one row";
  } else if (header.kind == FrameKind::tensor_chunk) {
    TensorChunk chunk;
    if (header.row_count != 1) return "a tensor chunk frame has one row";
    return read_tensor_chunk(body, chunk);
  }
  return {};
}

// The header is copied for its 4 bytes, and a short frame whole: the checksum takes as long to begin as for
// 100 bytes.
std::uint32_t frame_crc(std::span<const std::byte> record) noexcept {
  constexpr std::size_t kShort = 512;
  std::array<std::byte, kShort> copy;  // NOLINT: written before it is read
  const std::size_t size = record.size() <= kShort ? record.size() : core::kFrameHeaderBytes;
  std::memcpy(copy.data(), record.data(), size);
  std::memset(copy.data() + kCrcAt, 0, kCrcBytes);
  const std::uint32_t head = crc32c({copy.data(), size});
  return size == record.size() ? head : crc32c(record.subspan(size), head);
}

bool known(FrameKind kind) noexcept {
  return kind >= FrameKind::summary && kind <= FrameKind::snapshot;
}

}  // namespace

std::string_view to_string(DecodeError error) noexcept {
  switch (error) {
    case DecodeError::not_a_frame:
      return "not_a_frame";
    case DecodeError::unknown_major:
      return "unknown_major";
    case DecodeError::truncated:
      return "truncated";
    case DecodeError::bad_length:
      return "bad_length";
    case DecodeError::too_large:
      return "too_large";
    case DecodeError::bad_crc:
      return "bad_crc";
    case DecodeError::unknown_kind:
      return "unknown_kind";
    case DecodeError::bad_json:
      return "bad_json";
    case DecodeError::bad_lifecycle:
      return "bad_lifecycle";
  }
  return "unknown";
}

Decoded decode_frame(std::span<const std::byte> record) noexcept {
  if (record.size() < 4 || std::memcmp(record.data(), "TCSN", 4) != 0) {
    return {DecodeError::not_a_frame, "the record does not begin with TCSN"};
  }
  if (record.size() > kMajorAt && record[kMajorAt] != std::byte{1}) {
    return {DecodeError::unknown_major, "this reader knows major version 1"};
  }
  if (record.size() < core::kFrameHeaderBytes) {
    return {DecodeError::truncated, "the record is shorter than the header"};
  }
  FrameHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.header_length < core::kFrameHeaderBytes || header.header_length % 8 != 0) {
    return {DecodeError::bad_length, "the header length is below 112 or no multiple of 8"};
  }
  const std::size_t frame = std::size_t{header.header_length} + header.body_length;
  if (frame > record.size()) {
    return {DecodeError::truncated, "the record is shorter than header and body"};
  }
  if (frame < record.size()) {
    return {DecodeError::bad_length, "the record is longer than header and body"};
  }
  const std::size_t columns = std::size_t{header.row_stride} * header.row_count;
  if (header.row_stride % core::kColumnBytes != 0 || columns > header.body_length) {
    return {DecodeError::bad_length, "row stride × rows does not fit the body"};
  }
  if (header.row_count > core::kMaxFrameRows) {
    return {DecodeError::too_large, "more than 65536 rows"};
  }
  if (frame > core::kMaxFrameBytes) return {DecodeError::too_large, "more than 1 MiB"};
  if (frame_crc(record) != header.crc) {
    return {DecodeError::bad_crc, "the CRC32C does not match the bytes"};
  }
  if (!known(header.kind)) return {DecodeError::unknown_kind, "this reader knows kinds 1 to 9"};
  if (header.mode > core::Mode::predict) {
    return {DecodeError::unknown_kind, "this reader knows modes 0 to 3"};
  }
  const std::span<const std::byte> body = record.subspan(header.header_length);
  if (const std::string_view wrong = check_body(header, body); !wrong.empty()) {
    return {DecodeError::bad_length, wrong};
  }
  header.flags &= ~core::frame_flag::kUnsequenced;  // ours alone: never believed from the wire
  return FrameView(header, body.data());
}

std::size_t for_each_dictionary_entry(const FrameView& frame,
                                      core::FunctionRef<void(const core::DictionaryEntry&)> visit) {
  if (frame.header().kind != FrameKind::dictionary) return 0;
  std::size_t at = 0;
  std::size_t count = 0;
  core::DictionaryEntry entry;
  for (; count < frame.rows() && next_entry(frame.body(), at, entry); ++count) visit(entry);
  return count;
}

}  // namespace tocsin::ingest
