// The journal's bytes (wire-and-api §8): segment header, batch, record. Pure functions on bytes;
// every parser accepts any input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/result.h"

namespace tocsin::ingest {

inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kBatchHeaderBytes = 32;
inline constexpr std::size_t kRecordHeaderBytes = 24;
/// A longer batch is damage, not data.
inline constexpr std::size_t kMaxBatchBytes = std::size_t{512} << 20;

inline constexpr std::uint32_t kSnapshotBegins = 1;
inline constexpr std::uint32_t kSnapshotEnds = 2;

/// Topic of a reader's positions; never handed to readers.
inline constexpr std::string_view kPositionsTopic = "_positions";
/// Header of a snapshot's records: i64, when the original was appended. Snapshots are newer than
/// what they repeat, and only this tells which of two writers' records of a key is the newest.
inline constexpr std::string_view kAppendedHeader = "_appended";

struct SegmentHeader {
  std::int64_t created = 0;  // UTC ns
  std::uint64_t first_sequence = 0;
};
std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(const SegmentHeader& header);
/// data_loss for anything but a whole, undamaged header of format 1.
core::Result<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes);

struct BatchHeader {
  std::uint32_t length = 0;  // bytes after the crc field
  std::uint32_t crc = 0;
  std::uint64_t first_sequence = 0;
  std::uint32_t count = 0;
  std::uint32_t flags = 0;
  std::int64_t append_time = 0;  // UTC ns
  [[nodiscard]] std::size_t total_bytes() const noexcept { return std::size_t{length} + 8; }
};

enum class BatchState {
  complete,
  incomplete,  // more bytes may make it complete
  damaged,     // no further byte can
};
struct BatchCheck {
  BatchState state = BatchState::incomplete;
  BatchHeader header;  // set when at least the header's bytes are there and plausible
};
/// What stands at the start of `bytes`; `complete` means length, CRC and every record's lengths
/// hold.
BatchCheck check_batch(std::span<const std::byte> bytes) noexcept;
/// The header alone, without CRC: for stepping over batches of other topics.
std::optional<BatchHeader> peek_batch(std::span<const std::byte> bytes) noexcept;

/// One record inside a batch; borrows from its bytes.
struct JournalRecord {
  std::string_view topic;
  std::string_view key;
  std::optional<std::string_view> value;
  std::int64_t timestamp = 0;
  std::uint16_t header_count = 0;
  std::span<const std::byte> headers;  // undecoded
  std::size_t total_bytes = 0;

  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
};
/// The record at the start of `bytes`, or nullopt when its lengths do not hold.
std::optional<JournalRecord> parse_record(std::span<const std::byte> bytes) noexcept;
/// Its headers, in order.
std::vector<std::pair<std::string, std::string>> headers_of(const JournalRecord& record);

/// Builds batches in one reused buffer.
class BatchBuilder {
 public:
  void begin(std::uint64_t first_sequence, std::uint32_t flags, std::int64_t append_time);
  /// invalid_argument when topic, a header's name or their number do not fit the format. `now`
  /// stands in for a timestamp of 0.
  core::Status add(const core::OutRecord& record, std::int64_t now);
  void add_flags(std::uint32_t flags);
  /// Byte offset at which the next record will stand in the batch, and how many there are.
  [[nodiscard]] std::size_t size() const noexcept { return buffer_.size(); }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// Writes length, count and CRC. The bytes live until the next begin().
  std::span<const std::byte> finish();

 private:
  std::vector<std::byte> buffer_;
  std::uint32_t count_ = 0;
};

}  // namespace tocsin::ingest
