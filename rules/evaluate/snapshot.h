// Samples of one node that belong together: taken within 20 ms of the first. A snapshot starts with
// the first sample that no earlier one holds, whatever the rules make of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rules/contract/archive.h"

namespace tocsin::rules {

/// What rules of system metrics look at. Shares are in percent 0…100.
enum class Metric : std::uint8_t {
  gpu,             // hw.gpu.utilization: some kernel ran, per device
  gpu_memory,      // hw.gpu.memory.utilization: share of the device's memory, per device
  cpu,             // busy share of a core: 1 − idle − iowait, or the sum of its other modes
  io_wait,         // share of a core's time that waited for I/O
  memory,          // system.memory.utilization of the node, used
  network,         // system.network.io of the node, bytes a second over all devices
  process_memory,  // process.memory.usage, resident bytes, per process
  other
};
inline constexpr std::size_t kMetricCount = 7;
std::string_view to_string(Metric metric) noexcept;

struct Reading {
  Metric metric = Metric::other;
  std::string_view device;  // GPU, core or process, as in the series' attributes; empty: the node
  double value = 0;
};

/// Readings in the order of metric, then device.
struct NodeSnapshot {
  std::uint64_t node = 0;  // hash of its name
  std::string_view name;
  std::int64_t time = 0;  // of its first sample, UTC ns
  /// Of the sample that ended it: all that is older is here. INT64_MAX when the run is over.
  std::int64_t next = 0;
  std::span<const Reading> readings;  // empty when it only says that time has passed

  /// Those of one metric.
  [[nodiscard]] std::span<const Reading> of(Metric metric) const noexcept;
};

/// Readings of one node, as samples come in. Plain data: part of the run's head.
class SnapshotBuilder {
 public:
  enum class Sample : std::uint8_t { taken, ignored, late, discarded };

  /// Whether any rule looks at series of this name.
  [[nodiscard]] static bool knows(std::string_view series) noexcept;

  /// Whether a sample of this time begins another snapshot: call take() first.
  [[nodiscard]] bool closes(std::int64_t time) const noexcept;
  /// Forgets what is open when the node's clock has stepped back by more than `most` ns.
  void check_clock(std::int64_t time, std::int64_t most);
  Sample add(std::string_view series, std::int64_t time, double value);
  [[nodiscard]] bool open() const noexcept { return started_ != kNone; }
  /// The open snapshot, which is then closed. Its texts live until the next call.
  NodeSnapshot take();

  template <typename A>
  friend void io(A& a, SnapshotBuilder& b) {
    io_all(a, b.started_, b.values_, b.cores_, b.counters_);
  }

 private:
  static constexpr std::int64_t kNone = INT64_MIN;
  struct Core {
    double idle = 0;
    double busy = 0;
    double waiting = 0;
    bool has_idle = false;
    bool has_wait = false;
    bool has_busy = false;
  };
  struct Counter {
    std::int64_t time = 0;
    double value = 0;
  };

  void add_core(std::string_view attributes, double value);
  void add_counter(std::string_view series, std::int64_t time, double value);

  std::int64_t started_ = kNone;
  std::map<std::pair<std::uint8_t, std::string>, double> values_;
  std::map<std::string, Core> cores_;
  std::map<std::string, Counter> counters_;  // newest of each monotonic series, beyond snapshots
  std::vector<std::pair<std::pair<std::uint8_t, std::string>, double>> taken_;  // behind `readings`
  std::vector<Reading> readings_;
};

}  // namespace tocsin::rules
