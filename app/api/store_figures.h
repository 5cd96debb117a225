// What one store of looking back measures of itself: tocsin_insights_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::app {

/// Thread-safe only as far as Telemetry is: one thread reads and writes a store.
class StoreFigures {
 public:
  /// `store`: `events` or `curves`; `path`: its file. `telemetry` outlives it.
  StoreFigures(core::Telemetry& telemetry, std::string_view store, std::string path);

  /// A record of the topic was read; `timestamp`: its own, nanoseconds.
  void read(std::string_view topic, std::int64_t timestamp);
  /// Ends a turn of reading. `at_end`: nothing waits, so no topic is behind.
  void turn(core::WallTime now, bool at_end);
  /// The position was no longer in the topic: records are missing.
  void gap();
  /// A transaction is durable: how long it took, and how many rows of series it had.
  void committed(core::Duration took, std::size_t rows);
  /// Values that were left out since the last call.
  void refused(std::uint64_t values);
  /// Whether it is written at present; without a call nothing is said: it may be off.
  void stand(bool writes);

 private:
  void size_up();

  core::Telemetry& telemetry_;
  std::string store_;
  std::string path_;
  std::map<std::string, std::int64_t, std::less<>> oldest_;  // of this turn, by topic
  std::map<std::string, core::Gauge*, std::less<>> lags_;
  core::Counter& gaps_;
  core::Counter& rows_;
  core::Counter& refused_;
  core::Histogram& commit_;
};

}  // namespace tocsin::app
