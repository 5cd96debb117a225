// Telemetry for everybody else: JSON scalars on the telemetry topic (docs/wire.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/frame.h"
#include "core/frame_body.h"
#include "core/function_ref.h"
#include "core/record.h"
#include "ingest/wire/frame_decoder.h"

namespace tocsin::ingest {

/// A refused record: the code and a sentence for the person who produced it.
struct DecodeFailure {
  DecodeError code = DecodeError::not_a_frame;
  std::string detail;
};

/// Both are valid during the call only.
using FrameHandler = core::FunctionRef<void(const core::FrameView&, const core::FrameBody&)>;

/// Turns one JSON record, a metric or an array of metrics, into frames of the engine's own form:
/// for each stretch of metrics of one worker and mode first a dictionary frame, then a scalar
/// frame; both carry frame_flag::kUnsequenced, sequence 0 and incarnation 0.
///
/// {"run":"<uid or name>","name":"loss","value":0.31,"step":12} is enough. Optional, with defaults:
/// `job` (empty), `attempt` (1), `worker` ("worker_0"), `rank` (0), `mode` ("train"), `global_step`
/// (the step), `time` (RFC 3339; else the record's timestamp), `role` (core::scalar_role of the
/// name), `direction` (min | max), `unit`, `labels` (object of texts), `world_size` (0 = unknown).
/// `value` is a number or "NaN", "Infinity", "-Infinity". A run name becomes
/// core::run_uid_for(job, run), so a producer that names no job gets the uid of "run:/<run>".
/// Job and labels stand in the attributes of the worker's entry, direction and unit in those of the
/// scalar's. Dictionary frames have a body, but no bytes.
/// Unknown keys are ignored; a wrong type refuses the whole record, nothing of it is handed on.
///
/// Keeps its buffers between records. One thread.
class JsonScalarDecoder {
 public:
  JsonScalarDecoder();
  ~JsonScalarDecoder();
  JsonScalarDecoder(JsonScalarDecoder&&) noexcept;
  JsonScalarDecoder& operator=(JsonScalarDecoder&&) noexcept;

  /// `timestamp`: the record's, UTC nanoseconds.
  std::optional<DecodeFailure> decode(std::string_view json, std::int64_t timestamp,
                                      FrameHandler handle);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One telemetry record of either form, told apart by its first byte: `{` or `[` (white space
/// before it allowed) is JSON, anything else a frame, which comes with its body decoded. A tombstone is not_a_frame. nullopt =
/// handled.
std::optional<DecodeFailure> decode_telemetry(const core::RecordView& record,
                                              JsonScalarDecoder& json, FrameHandler handle);

/// Version of this decoder, as written into dead letters.
inline constexpr std::string_view kDecoderVersion = "tocsin-frame-1.0";

/// The record for topic `dlq`: key "<source topic>/<partition>", the original bytes cut to
/// kMaxRecordBytes, and headers error-code, error-detail, source-topic, source-partition,
/// source-offset, source-key, decoder, component, original-bytes. `code` is to_string(DecodeError)
/// or another room's word for its refusal.
core::OutRecord dead_letter(const core::RecordView& record, std::string_view code,
                            std::string_view detail, std::string_view component);

}  // namespace tocsin::ingest
