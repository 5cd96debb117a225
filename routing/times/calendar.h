// When a time interval holds, by the local calendar of each of its windows. Pure: the same interval,
// instant and time zone database give the same answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/times/time_interval.h"

namespace tocsin::routing {

/// A mistake in a window: which entry ("times[0].end", "weekdays[1]"), and what was expected.
struct WindowFault {
  std::string path;
  std::string message;
};
/// Every mistake of a window; empty: it can be compiled.
std::vector<WindowFault> faults_of(const TimeWindow& window);

/// Compiled windows. Cheap to copy; asking is thread-safe.
class Calendar {
 public:
  /// invalid_argument: the first mistake, with the place of its window and entry.
  static core::Result<Calendar> compile(const std::vector<TimeWindow>& windows);

  [[nodiscard]] bool holds(core::WallTime at) const;
  /// The answer is the same from `at` until before this instant; WallTime::max(): for ever.
  [[nodiscard]] core::WallTime steady_until(core::WallTime at) const;
  /// The first instant after `at`, not after `limit`, from which the answer is another one.
  [[nodiscard]] std::optional<core::WallTime> next_change(core::WallTime at,
                                                          core::WallTime limit) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace tocsin::routing
