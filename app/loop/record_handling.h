// Records handed to a stage one by one: at which time, and how long each may take.
#pragma once

#include <optional>

#include "app/loop/anchored_clock.h"
#include "app/loop/loop_probe.h"
#include "app/loop/partition_table.h"
#include "app/loop/stage.h"
#include "core/clock.h"

namespace tocsin::app {

class RecordHandling {
 public:
  /// All outlive this.
  RecordHandling(Stage& stage, core::Clock& clock, AnchoredClock& time, LoopProbe& probe)
      : stage_(stage), clock_(clock), time_(time), probe_(probe) {}

  /// What one poll hands out is handled at one time.
  void begin_batch() { now_.reset(); }
  /// nullopt: the stage has taken it. Whatever it throws, and taking too long, is a refusal too.
  std::optional<Refusal> hand(const core::RecordView& record, LoopPartition& partition);

 private:
  Stage& stage_;
  core::Clock& clock_;
  AnchoredClock& time_;
  LoopProbe& probe_;
  std::optional<Instant> now_;  // of the records of one poll
  core::Duration until_{};      // steady: when the record before was through
};

}  // namespace tocsin::app
