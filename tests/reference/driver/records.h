// From the records of a case, as tests/reference writes them in JSON, to frames of the wire and from
// there into an engine: through the product's own writer and decoder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/value.h"
#include "ingest/ingest.h"
#include "rules/rules.h"
#include "tests/reference/driver/host.h"

namespace tocsin::reference {

/// Hands the records of one case to an engine, in order. What a record lacks has the value that the
/// header's field has; a wrong type, an unknown name or a frame that the decoder refuses throws
/// std::runtime_error with the reason.
class Feeder {
 public:
  explicit Feeder(Host& host) : host_(host) {}

  /// `kind`: start with "summary", "scalars", "step_end", "system", "span", "lifecycle",
  /// "dictionary" (frames), "json" (a record of another producer), "tick" (of the clock) or
  /// "restart" (of the process, with its state).
  void feed(const core::Value& record);
  /// When the newest record arrived.
  [[nodiscard]] core::WallTime now() const { return core::wall_time(timestamp_); }

 private:
  core::FrameHeader header(const core::Value& record);
  void write(const core::FrameHeader& header, const core::Value& record);
  void extend(const core::Value& record);
  void hand_over(const core::FrameView& frame, const core::FrameBody& body);

  Host& host_;
  ingest::FrameWriter writer_;
  ingest::JsonScalarDecoder json_;
  std::int64_t offset_ = -1;
  std::int64_t timestamp_ = 0;
};

}  // namespace tocsin::reference
