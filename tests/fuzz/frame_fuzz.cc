// Frames from any bytes: decoding never crashes, every accessor and visitor of what it lets through
// is safe, and rows written again give the same rows. The CRC is made right half of the time, else
// nothing behind it would ever be reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ingest/ingest.h"

namespace {

using tocsin::core::FrameView;
using tocsin::core::SummaryRow;

volatile std::uint64_t g_sink = 0;  // keeps the reads of visit() from being optimised away

void require(bool holds) {
  if (!holds) std::abort();
}

std::uint64_t touch(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<std::uint64_t>(byte);
  return sum;
}

std::uint64_t touch(std::string_view text) {
  return touch({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

/// Reads everything that the view offers.
std::uint64_t visit(const FrameView& frame) {
  std::uint64_t sum = touch(frame.body());
  frame.extensions(
      [&](std::uint16_t tag, std::span<const std::byte> payload) { sum += tag + touch(payload); });
  frame.sparse_columns([&](const tocsin::core::SparseColumn& column) {
    sum += touch(column.params_bytes);
    for (std::size_t i = 0; i < column.size(); ++i) {
      require(column.row(i) < frame.rows());
      sum += static_cast<std::uint64_t>(column.value(i) > 0);
    }
  });
  frame.vectors([&](const tocsin::core::SparseVector& vector) {
    require(vector.row < frame.rows());
    sum += static_cast<std::uint64_t>(vector.stat) + touch(vector.params_bytes);
    for (std::size_t i = 0; i < vector.size(); ++i) {
      sum += static_cast<std::uint64_t>(vector.value(i) > 0);
    }
  });
  std::size_t entries = 0;
  tocsin::ingest::for_each_dictionary_entry(frame, [&](const tocsin::core::DictionaryEntry& entry) {
    ++entries;
    sum += touch(entry.dims_bytes) + touch(entry.name) + touch(entry.attrs);
  });
  if (frame.header().kind == tocsin::core::FrameKind::dictionary) require(entries == frame.rows());
  if (const auto chunk = tocsin::ingest::tensor_chunk(frame)) {
    sum += touch(chunk->dims_bytes) + touch(chunk->data);
  }
  if (const auto body = tocsin::ingest::decode_body(frame)) {
    if (const auto* names = std::get_if<tocsin::core::Dictionary>(&*body)) {
      require(names->size() == frame.rows());
      for (const auto& entry : *names) sum += touch(entry.name) + entry.attrs.collections.size();
    }
  }
  return sum;
}

void write_again(const FrameView& frame) {
  if (frame.header().kind != tocsin::core::FrameKind::summary) return;
  std::vector<SummaryRow> rows;
  for (std::size_t i = 0; i < frame.rows(); ++i) rows.push_back(frame.summary(i));
  tocsin::ingest::FrameWriter writer;
  const auto bytes = writer.summary(frame.header(), rows).finish();
  if (!bytes) return;  // more rows than a record may hold
  const auto again = tocsin::ingest::decode_frame(*bytes);
  require(static_cast<bool>(again) && again.frame().rows() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SummaryRow row = again.frame().summary(i);
    require(std::memcmp(&row, &rows[i], sizeof row) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool seal = (data[0] & 1) != 0;
  std::vector<std::byte> record(size - 1);
  if (size > 1) std::memcpy(record.data(), data + 1, size - 1);
  if (seal && record.size() >= 24) {
    std::memset(record.data() + 20, 0, 4);
    const std::uint32_t crc = tocsin::ingest::crc32c(record);
    std::memcpy(record.data() + 20, &crc, sizeof crc);
  }
  const auto decoded = tocsin::ingest::decode_frame(record);
  if (!decoded) {
    require(!decoded.detail().empty());
    return 0;
  }
  g_sink = visit(decoded.frame());
  write_again(decoded.frame());
  return 0;
}
