// A room's counters as metrics, all of them: the room says what there is, so that what is counted
// is also exported.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::app {

/// `Stats` has, in its namespace, for_each_counter(stats, each) for what only grows and
/// for_each_gauge(stats[, now], each) for what goes up and down; each(name, help, value) is called
/// in a fixed order with complete metric names. start_over() when the object that counts was made
/// anew.
template <typename Stats>
class CounterTable {
 public:
  explicit CounterTable(core::Telemetry& telemetry) {
    for_each_counter(Stats{}, [&](std::string_view name, std::string_view help, auto) {
      counters_.push_back({&telemetry.counter(name, help), 0});
    });
    gauges(Stats{}, {}, [&](std::string_view name, std::string_view help, auto) {
      gauges_.push_back(&telemetry.gauge(name, help));
    });
  }

  /// `now`: for ages.
  void update(const Stats& stats, core::WallTime now) {
    std::size_t i = 0;
    for_each_counter(stats, [&](std::string_view, std::string_view, auto value) {
      Row& row = counters_[i++];
      if (value > row.seen) row.counter->add(static_cast<double>(value - row.seen));
      row.seen = value;
    });
    i = 0;
    gauges(stats, now, [&](std::string_view, std::string_view, auto value) {
      gauges_[i++]->set(static_cast<double>(value));
    });
  }
  void start_over() {
    for (Row& row : counters_) row.seen = 0;
  }

 private:
  template <typename Each>
  static void gauges(const Stats& stats, core::WallTime now, Each&& each) {
    if constexpr (requires { for_each_gauge(stats, now, each); }) {
      for_each_gauge(stats, now, each);
    } else {
      for_each_gauge(stats, each);
    }
  }
  struct Row {
    core::Counter* counter = nullptr;
    std::uint64_t seen = 0;
  };
  std::vector<Row> counters_;
  std::vector<core::Gauge*> gauges_;
};

}  // namespace tocsin::app
