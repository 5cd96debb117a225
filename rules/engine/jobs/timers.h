// What only a clock can decide: grace periods, idle workers, silence, runs to forget. Live these come
// from ticks; in replays the records' times take the clock's place.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/engine/issues/silence_watch.h"
#include "rules/engine/jobs/decisions.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Timers {
 public:
  Timers(const EngineOptions& options, SilenceWatch& silence, Decisions& decisions)
      : options_(options), silence_(silence), decisions_(decisions) {}

  /// Looks at the next kRunsPerTick runs of the partition, or a tenth if that is more: what is due is seen a
  /// second late at worst, and thousands of runs hold up no record.
  void tick_some(const Turn& turn, bool zero_lag);
  /// Looks at every run, for each time at which something was due up to now.
  void advance_record_time(const Turn& turn);
  /// Our own clock may have stepped back since the state was written: nothing in it lies ahead from now on.
  void clamp_times(const Turn& turn);

 private:
  void clamp_run(const Turn& turn, Run& run);
  void tick_families(const Turn& turn, std::int64_t time, std::vector<Entry>& due);
  void tick_all(const Turn& turn, std::int64_t time, bool zero_lag);
  void tick_run(const Turn& turn, Run& run, std::int64_t time, bool zero_lag,
                std::vector<Entry>& due);
  [[nodiscard]] std::int64_t idle_limit(const Worker& worker) const;

  const EngineOptions& options_;
  SilenceWatch& silence_;
  Decisions& decisions_;
};

}  // namespace tocsin::rules
