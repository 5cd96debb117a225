// What only a clock can decide: grace periods, idle workers, silence, runs to forget. Live these come
// from ticks; in replays the records' times take the clock's place.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/engine/issues/silence_watch.h"
#include "rules/engine/jobs/decisions.h"
#include "rules/engine/partition/context.h"

namespace tocsin::rules {

class Timers {
 public:
  Timers(Context& ctx, SilenceWatch& silence, Decisions& decisions)
      : ctx_(ctx), silence_(silence), decisions_(decisions) {}

  /// Looks at every run of the partition.
  void tick_partition(PartitionState& partition, std::int64_t time, bool zero_lag);
  /// Looks at the next kRunsPerTick of them, or a tenth if that is more: what is due is seen a
  /// second late at worst, and thousands of runs hold up no record.
  void tick_some(PartitionState& partition, std::int64_t time, bool zero_lag);
  void advance_record_time();
  void clamp_times(Run& run, std::int64_t time);

 private:
  void tick_run(Run& run, std::int64_t time, bool zero_lag, std::vector<Entry>& due);
  [[nodiscard]] std::int64_t idle_limit(const Worker& worker) const;

  Context& ctx_;
  SilenceWatch& silence_;
  Decisions& decisions_;
};

}  // namespace tocsin::rules
