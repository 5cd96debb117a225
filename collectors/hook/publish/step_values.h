// Scalars and spans of the present step.
#pragma once

#include <cstdint>

#include "collectors/hook/capture/capture.h"
#include "collectors/hook/publish/announcer.h"
#include "collectors/hook/publish/frame_batcher.h"
#include "collectors/hook/publish/name_table.h"

namespace tocsin::hook {

/// Not thread-safe.
class StepValues {
 public:
  /// Borrows everything.
  StepValues(CapturePlan& plan, NameTable& names, FrameBatcher& frames, Announcer& announcer)
      : plan_(plan), names_(names), frames_(frames), announcer_(announcer) {}

  /// False: the scalar is neither `due` nor of the ledger. An unknown name counts as an error.
  bool scalar(std::uint64_t name, double value, bool due);
  /// UTC nanoseconds. Track 0 is "phase"; args 0 means none.
  void span(std::uint64_t name, std::uint64_t track, std::int64_t start, std::int64_t duration,
            std::uint64_t args);

 private:
  CapturePlan& plan_;
  NameTable& names_;
  FrameBatcher& frames_;
  Announcer& announcer_;
  std::uint64_t phase_track_ = 0;  // 0: not used so far
};

}  // namespace tocsin::hook
