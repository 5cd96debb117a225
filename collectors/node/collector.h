// What a system collector is: it reads a source once per sweep and adds samples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
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

/// The checked configuration of one collector; immutable, may outlive the Reader it came from.
class CollectorConfig {
 public:
  virtual ~CollectorConfig() = default;
  [[nodiscard]] virtual std::unique_ptr<Collector> build(const Roots& roots) const = 0;
};

/// A family of series that a collector adds: what stands before the brace, and what in it.
struct Gathered {
  std::string_view metric;      // "system.disk.io"
  std::string_view attributes;  // "disk.io.direction=read|write,system.device=D"; empty: none
  std::string_view unit;        // in words: "bytes", "ratio 0…1"
  bool counter = false;         // monotonic
};

/// A line of the table of collectors.
struct CollectorDescriptor {
  std::string_view name;  // as `collect.collectors` spells it, and the section below `collect`
  std::string_view help;
  std::span<const Gathered> gathers;
  /// Its pace where the user sets none: at least so long from one reading to the next. 0: every
  /// sweep, which is right for what costs microseconds.
  core::Duration every{};
  /// Reads the collector's own keys; problems go to the Reader. Never null.
  std::shared_ptr<const CollectorConfig> (*read)(config::Reader& in);
};

/// `read` of a collector without keys of its own, whose constructor takes the roots.
template <typename T>
std::shared_ptr<const CollectorConfig> without_keys(config::Reader& /*in*/) {
  struct Config final : CollectorConfig {
    [[nodiscard]] std::unique_ptr<Collector> build(const Roots& roots) const override {
      return std::make_unique<T>(roots);
    }
  };
  return std::make_shared<Config>();
}

/// Every collector that this build holds, in the order of collectors/CMakeLists.txt.
std::span<const CollectorDescriptor> builtin_collectors();

}  // namespace tocsin::collectors
