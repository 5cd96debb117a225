// What a system collector is: it reads a source once per sweep and adds samples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::collectors {

/// One time series: OpenTelemetry name plus `{key=value,…}` with sorted keys (docs/wire.md).
struct Series {
  Series(std::string series_name, bool is_counter)
      : name(std::move(series_name)), hash(core::name_hash(name)), counter(is_counter) {}
  std::string name;
  std::uint64_t hash;  // of the name, as it stands in a system frame
  bool counter;        // monotonic counter (bit 0 of the row's meta)
};

/// `series` is borrowed from the collector that made it.
struct Sample {
  const Series* series;
  double value;
};

/// One pass over all collectors: what they add, and the time they share.
class Sweep {
 public:
  Sweep(core::WallTime time, core::Duration monotonic) : time_(time), monotonic_(monotonic) {}

  /// Adds a sample; a value that is not finite is left out, never sent.
  void add(const Series& series, double value);
  [[nodiscard]] core::WallTime time() const noexcept { return time_; }
  /// Same instant on the monotonic clock: rates divide by differences of this.
  [[nodiscard]] core::Duration monotonic() const noexcept { return monotonic_; }
  [[nodiscard]] std::span<const Sample> samples() const noexcept { return samples_; }

  /// Starts the next sweep in the same memory.
  void restart(core::WallTime time, core::Duration monotonic);
  /// Forgets what was added after the first `count` samples: a collector that failed adds nothing.
  void keep(std::size_t count) { samples_.resize(count); }

 private:
  core::WallTime time_;
  core::Duration monotonic_;
  std::vector<Sample> samples_;
};

/// Where the kernel's files are, so that tests use recorded trees and an agent in a container the
/// host's.
struct Roots {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

/// Lives on the one collecting thread; owns its open files and the values of the sweep before.
class Collector {
 public:
  virtual ~Collector() = default;
  /// Reads once and adds samples; rates need a sweep before this one. not_found: the source does
  /// not exist on this machine; other codes: it could not be read this time. Samples added before
  /// an error are dropped.
  virtual core::Status collect(Sweep& sweep) = 0;
  /// Processes whose own use is measured; others ignore it.
  virtual void watch_process(std::int64_t pid) { (void)pid; }
  virtual void forget_process(std::int64_t pid) { (void)pid; }
};

/// A line of the table of collectors.
struct CollectorDescriptor {
  std::string_view name;  // as `collect.collectors` spells it
  std::string_view help;
  std::unique_ptr<Collector> (*make)(const Roots& roots);
};

/// Every collector that this build holds, in the order of collectors/CMakeLists.txt.
std::span<const CollectorDescriptor> builtin_collectors();

}  // namespace tocsin::collectors
