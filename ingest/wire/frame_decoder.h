// From bytes to frames: total, without allocation, and every length checked before a view exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/frame.h"
#include "core/function_ref.h"
#include "ingest/wire/tensor_chunk.h"

namespace tocsin::ingest {

/// Why a telemetry record is no frame (docs/wire.md); the names are the codes of the `dlq`.
enum class DecodeError {
  not_a_frame,    // no magic (and no JSON)
  unknown_major,  // a frame of another major version
  truncated,      // the record ends before the frame does
  bad_length,     // lengths inside the frame contradict each other or the record
  too_large,      // more than 65 536 rows or 1 MiB
  bad_crc,        // the checksum does not hold
  unknown_kind,   // a kind or a mode that this reader does not know
  bad_json,       // a JSON record that is not what docs/wire.md asks for
  bad_lifecycle,  // a lifecycle frame whose JSON is not
};
std::string_view to_string(DecodeError error) noexcept;

/// A frame, or why there is none. The frame borrows the record's bytes.
class Decoded {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): mirrors Result
  Decoded(const core::FrameView& frame) : frame_(frame), ok_(true) {}
  /// `detail` is text with static lifetime.
  Decoded(DecodeError error, std::string_view detail) : error_(error), detail_(detail) {}

  explicit operator bool() const noexcept { return ok_; }
  [[nodiscard]] const core::FrameView& frame() const noexcept { return frame_; }  // valid when true
  [[nodiscard]] DecodeError error() const noexcept { return error_; }  // valid when false
  [[nodiscard]] std::string_view detail() const noexcept { return detail_; }

 private:
  core::FrameView frame_{core::FrameHeader{}, nullptr};
  DecodeError error_ = DecodeError::not_a_frame;
  std::string_view detail_;
  bool ok_ = false;
};

/// Decodes one record. Checks in this order, the first failure is the answer: magic, major, header
/// length, lengths against the record, row count, size, CRC32C, kind and mode, then what the kind
/// asks of its body: wide enough rows; extensions that fit, and whose row numbers exist;
/// dictionary entries and tensor chunks that fit; one row for a lifecycle. So every accessor and
/// visitor of the view is safe on what comes back. Any minor version, wider rows and unknown
/// extension tags are accepted.
[[nodiscard]] Decoded decode_frame(std::span<const std::byte> record) noexcept;

/// Calls visit for each entry of a dictionary frame, in order; returns how many. Total: 0 for other
/// kinds. Entries borrow from the frame.
std::size_t for_each_dictionary_entry(const core::FrameView& frame,
                                      core::FunctionRef<void(const core::DictionaryEntry&)> visit);

}  // namespace tocsin::ingest
