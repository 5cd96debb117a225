// JSON scalars from any text: never crashes, and what it hands on is made of valid frames.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ingest/ingest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tocsin::ingest::JsonScalarDecoder decoder;
  tocsin::core::RecordView record;
  record.topic = "telemetry";
  record.value = {reinterpret_cast<const std::byte*>(data), size};
  std::size_t frames = 0;
  const auto take = [&](const tocsin::core::FrameView& frame, const tocsin::core::FrameBody& body) {
    ++frames;
    const bool ours = (frame.header().flags & tocsin::core::frame_flag::kUnsequenced) != 0;
    if (const auto* names = std::get_if<tocsin::core::Dictionary>(&body)) {
      if (names->size() != frame.rows()) std::abort();
      for (const auto& entry : *names) {
        if (ours && (entry.name.empty() || entry.hash != tocsin::core::name_hash(entry.name)))
          std::abort();
      }
    }
    if (frame.header().kind == tocsin::core::FrameKind::scalar) {
      for (std::size_t i = 0; i < frame.rows(); ++i) static_cast<void>(frame.scalar(i));
    }
  };
  const auto failure = tocsin::ingest::decode_telemetry(record, decoder, take);
  if (failure && (frames != 0 || failure->detail.empty())) std::abort();
  if (failure)
    tocsin::ingest::dead_letter(record, to_string(failure->code), failure->detail, "fuzz");
  return 0;
}
