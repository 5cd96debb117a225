#include "ingest/journal_format.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ingest/crc32c.h"

namespace tocsin::ingest {
namespace {

constexpr std::uint32_t kNullValue = 0xFFFFFFFFU;
constexpr std::size_t kSegmentCrcAt = 24;

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof value);
}

std::string_view text(std::span<const std::byte> bytes, std::size_t at, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()) + at, size};
}

constexpr std::size_t padded(std::size_t size) noexcept { return (size + 7) & ~std::size_t{7}; }

/// Calls fn(name, value) until it returns false. False when the lengths do not hold.
template <typename F>
bool each_header(std::span<const std::byte> bytes, std::uint16_t count, F&& fn) noexcept {
  std::size_t at = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    if (bytes.size() - at < 6) return false;
    const std::size_t name = load<std::uint16_t>(bytes, at);
    const std::size_t value = load<std::uint32_t>(bytes, at + 2);
    at += 6;
    if (bytes.size() - at < name || bytes.size() - at - name < value) return false;
    if (!fn(text(bytes, at, name), text(bytes, at + name, value))) return true;
    at += name + value;
  }
  return true;
}

/// Size of the headers' region, or nullopt when it is longer than `bytes`.
std::optional<std::size_t> headers_size(std::span<const std::byte> bytes,
                                        std::uint16_t count) noexcept {
  std::size_t size = 0;
  const bool whole = each_header(bytes, count, [&](std::string_view name, std::string_view value) {
    size += 6 + name.size() + value.size();
    return true;
  });
  return whole ? std::optional(size) : std::nullopt;
}

}  // namespace

std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(const SegmentHeader& header) {
  std::array<std::byte, kSegmentHeaderBytes> bytes{};
  std::memcpy(bytes.data(), "TCSJ", 4);
  store<std::uint16_t>(bytes.data() + 4, 1);
  store(bytes.data() + 8, header.created);
  store(bytes.data() + 16, header.first_sequence);
  store(bytes.data() + kSegmentCrcAt, crc32c(bytes));
  return bytes;
}

core::Result<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes) {
  const auto damaged = [](std::string what) {
    return core::Error{core::Code::data_loss, "segment header: " + std::move(what)};
  };
  if (bytes.size() < kSegmentHeaderBytes) return damaged("shorter than 64 bytes");
  if (std::memcmp(bytes.data(), "TCSJ", 4) != 0) return damaged("not a journal segment");
  if (load<std::uint16_t>(bytes, 4) != 1) {
    return damaged("format " + std::to_string(load<std::uint16_t>(bytes, 4)) +
                   " is not known here (1 is)");
  }
  std::array<std::byte, kSegmentHeaderBytes> copy{};
  std::copy_n(bytes.begin(), kSegmentHeaderBytes, copy.begin());
  store<std::uint32_t>(copy.data() + kSegmentCrcAt, 0);
  if (crc32c(copy) != load<std::uint32_t>(bytes, kSegmentCrcAt)) return damaged("bad CRC");
  return SegmentHeader{load<std::int64_t>(bytes, 8), load<std::uint64_t>(bytes, 16)};
}

std::optional<BatchHeader> peek_batch(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kBatchHeaderBytes) return std::nullopt;
  BatchHeader header{load<std::uint32_t>(bytes, 0),  load<std::uint32_t>(bytes, 4),
                     load<std::uint64_t>(bytes, 8),  load<std::uint32_t>(bytes, 16),
                     load<std::uint32_t>(bytes, 20), load<std::int64_t>(bytes, 24)};
  const bool plausible = header.total_bytes() >= kBatchHeaderBytes &&
                         header.total_bytes() <= kMaxBatchBytes && header.length % 8 == 0 &&
                         header.count <= header.length / kRecordHeaderBytes;
  return plausible ? std::optional(header) : std::nullopt;
}

BatchCheck check_batch(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kBatchHeaderBytes) return {BatchState::incomplete, {}};
  const std::optional<BatchHeader> header = peek_batch(bytes);
  if (!header) return {BatchState::damaged, {}};
  if (bytes.size() < header->total_bytes()) return {BatchState::incomplete, *header};
  const auto body = bytes.subspan(8, header->length);
  if (crc32c(body) != header->crc) return {BatchState::damaged, *header};
  auto records = bytes.subspan(kBatchHeaderBytes, header->total_bytes() - kBatchHeaderBytes);
  for (std::uint32_t i = 0; i < header->count; ++i) {
    const auto record = parse_record(records);
    if (!record) return {BatchState::damaged, *header};
    records = records.subspan(record->total_bytes);
  }
  return {records.empty() ? BatchState::complete : BatchState::damaged, *header};
}

std::optional<std::string_view> JournalRecord::header(std::string_view name) const noexcept {
  std::optional<std::string_view> found;
  each_header(headers, header_count, [&](std::string_view other, std::string_view content) {
    if (other == name) found = content;
    return !found.has_value();
  });
  return found;
}

std::optional<JournalRecord> parse_record(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const std::size_t length = load<std::uint32_t>(bytes, 0);
  if (length < kRecordHeaderBytes || length % 8 != 0 || length > bytes.size()) return std::nullopt;
  const std::size_t topic = load<std::uint16_t>(bytes, 4);
  const std::size_t key = load<std::uint32_t>(bytes, 8);
  const auto value_field = load<std::uint32_t>(bytes, 12);
  const std::size_t value = value_field == kNullValue ? 0 : value_field;
  JournalRecord record;
  record.header_count = load<std::uint16_t>(bytes, 6);
  record.timestamp = load<std::int64_t>(bytes, 16);
  record.total_bytes = length;
  auto rest = bytes.subspan(kRecordHeaderBytes, length - kRecordHeaderBytes);
  if (rest.size() < topic) return std::nullopt;
  record.topic = text(rest, 0, topic);
  rest = rest.subspan(topic);
  const auto headers = headers_size(rest, record.header_count);
  if (!headers) return std::nullopt;
  record.headers = rest.first(*headers);
  rest = rest.subspan(*headers);
  if (rest.size() < key || rest.size() - key < value) return std::nullopt;
  if (rest.size() - key - value > 7) return std::nullopt;  // padding only
  record.key = text(rest, 0, key);
  if (value_field != kNullValue) record.value = text(rest, key, value);
  return record;
}

std::vector<std::pair<std::string, std::string>> headers_of(const JournalRecord& record) {
  std::vector<std::pair<std::string, std::string>> all;
  each_header(record.headers, record.header_count,
              [&](std::string_view name, std::string_view value) {
                all.emplace_back(name, value);
                return true;
              });
  return all;
}

void BatchBuilder::begin(std::uint64_t first_sequence, std::uint32_t flags,
                         std::int64_t append_time) {
  buffer_.assign(kBatchHeaderBytes, std::byte{0});
  count_ = 0;
  store(buffer_.data() + 8, first_sequence);
  store(buffer_.data() + 20, flags);
  store(buffer_.data() + 24, append_time);
}

core::Status BatchBuilder::add(const core::OutRecord& record, std::int64_t now) {
  constexpr std::size_t kMax16 = std::numeric_limits<std::uint16_t>::max();
  constexpr std::size_t kMaxField = kMaxBatchBytes / 4;
  const std::size_t value = record.value ? record.value->size() : 0;
  std::size_t size = kRecordHeaderBytes + record.topic.size() + record.key.size() + value;
  for (const auto& [name, content] : record.headers) {
    if (name.size() > kMax16) return core::invalid_argument("header name longer than 65535 bytes");
    size += 6 + name.size() + content.size();
  }
  if (record.topic.empty() || record.topic.size() > kMax16 || record.headers.size() > kMax16) {
    return core::invalid_argument("topic name or number of headers does not fit the journal");
  }
  if (size > kMaxField || buffer_.size() + size > kMaxBatchBytes) {
    return core::invalid_argument("a batch of " + std::to_string(buffer_.size() + size) +
                                  " bytes is larger than the journal takes");
  }
  const std::size_t at = buffer_.size();
  const std::size_t length = padded(size);
  buffer_.resize(at + length);  // the padding is zeros
  std::byte* out = buffer_.data() + at;
  store(out, static_cast<std::uint32_t>(length));
  store(out + 4, static_cast<std::uint16_t>(record.topic.size()));
  store(out + 6, static_cast<std::uint16_t>(record.headers.size()));
  store(out + 8, static_cast<std::uint32_t>(record.key.size()));
  store(out + 12, record.value ? static_cast<std::uint32_t>(value) : kNullValue);
  store(out + 16, record.timestamp != 0 ? record.timestamp : now);
  out += kRecordHeaderBytes;
  const auto put = [&out](std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  };
  put(record.topic);
  for (const auto& [name, content] : record.headers) {
    store(out, static_cast<std::uint16_t>(name.size()));
    store(out + 2, static_cast<std::uint32_t>(content.size()));
    out += 6;
    put(name);
    put(content);
  }
  put(record.key);
  if (record.value) put(*record.value);
  ++count_;
  return core::ok();
}

void BatchBuilder::add_flags(std::uint32_t flags) {
  std::uint32_t all = 0;
  std::memcpy(&all, buffer_.data() + 20, sizeof all);
  store(buffer_.data() + 20, all | flags);
}

std::span<const std::byte> BatchBuilder::finish() {
  store(buffer_.data(), static_cast<std::uint32_t>(buffer_.size() - 8));
  store(buffer_.data() + 16, count_);
  store(buffer_.data() + 4, crc32c(std::span(buffer_).subspan(8)));
  return buffer_;
}

}  // namespace tocsin::ingest
