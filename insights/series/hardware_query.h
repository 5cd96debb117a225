// What went wrong with the GPUs of a run's nodes while they served it, by time and by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_reader.h"

namespace tocsin::insights {

enum class HardwareFault : std::uint8_t { xid, memory, throttled, lost };

/// Times are milliseconds, UTC, of the sample that told it: it happened since the sample before.
struct HardwareEvent {
  HardwareFault kind = HardwareFault::xid;
  std::string node, device;  // the GPU's id, as its series have it
  std::int64_t gpu = -1;   // its place among those of the node, as charts number them; -1: unknown
  std::string reason;      // of throttling: "power", "thermal", "hardware"
  std::int64_t first = 0;  // of a throttling: its first sample
  std::int64_t last = 0;   // … and its last one; else `first`
  std::int64_t count = 0;  // errors, or samples in which it was throttled or lost
  std::optional<std::int64_t> number;  // of the newest XID
  std::optional<std::int64_t>
      step;  // the step of training that was under way; nullopt: there are no steps
};

struct HardwareAsk {
  std::string run;
  std::optional<std::int64_t> to;  // nothing that was told behind it
  std::size_t most = 200;          // events
};

struct HardwareAnswer {
  std::vector<HardwareEvent> events;  // in order of time
  std::size_t left_out = 0;           // the oldest, beyond `most`
};

/// A counter that rises is an event, by how much it rose in one sample; a state that begins is one, until the
/// GPU has been without it for ten seconds. Where single samples are gone by their age, as exact as the buckets
/// that are kept.
core::Result<HardwareAnswer> ask_hardware(SeriesReader& reader, const HardwareAsk& ask);

}  // namespace tocsin::insights
