// Door of collectors: statistics of tensors (collectors/tensors/reduce.h) and the system collectors of a
// node, on a schedule that the caller's clock drives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/node/collector.h"
#include "collectors/node/presence.h"
#include "collectors/node/process_watch.h"
#include "collectors/tensors/reduce.h"
#include "collectors/tensors/statistics/statistic.h"
#include "config/config.h"
#include "core/clock.h"
#include "core/function_ref.h"
#include "core/log.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::collectors {

/// What the section of one collector says: `collect.<name>`.
struct CollectorSettings {
  core::Duration every{};  // 0: every sweep
  std::shared_ptr<const CollectorConfig> own;
};

/// Section `collect`.
struct Config {
  core::Duration interval = std::chrono::milliseconds(500);
  std::vector<std::string> collectors{"cpu", "memory", "network", "disk", "process", "gpu"};
  std::string node;  // empty: the caller's host name
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  std::map<std::string, CollectorSettings> settings;  // of those that have a section; by name
};
void read(config::Reader& in, Config& cfg,
          std::span<const CollectorDescriptor> table = builtin_collectors());

/// The Markdown table of what each collector gathers, under a heading with its name.
std::string series_tables();

/// Runs the configured collectors together, once per interval, at absolute deadlines of the
/// monotonic clock: a late call makes one sweep, never a burst. One with a slower pace (`every`) is
/// left out of the sweeps between. Lives on one thread; the caller
/// owns the timer. A collector that fails is counted and tried again at the next sweep; the others
/// go on.
class NodeCollector {
 public:
  /// Borrowed; must outlive the collector. `clock` only measures how long each collector takes.
  struct Surroundings {
    core::Telemetry* telemetry = nullptr;
    core::Log* log = nullptr;
    const core::Clock* clock = nullptr;
  };

  /// invalid_argument: a collector of that name is not in `table`.
  static core::Result<std::unique_ptr<NodeCollector>> open(
      const Config& config, Surroundings surroundings,
      std::span<const CollectorDescriptor> table = builtin_collectors());
  ~NodeCollector();

  /// Samples by `config` from the next sweep on. A collector whose own settings are the same goes on: its rates need no
  /// sweep more, and its counters count on. New ones watch no process yet. The next sweep comes within the new interval
  /// of the one before. invalid_argument: as open(); nothing has changed then.
  core::Status change(const Config& config,
                      std::span<const CollectorDescriptor> table = builtin_collectors());

  using Sink = core::FunctionRef<void(const Sweep&)>;

  /// Sweeps if the deadline has come (the first call always sweeps) and gives a sweep that has
  /// samples to `sink`; the sweep and its series are valid only inside the call. Returns when to
  /// call again, on the monotonic clock.
  core::Duration tick(core::WallTime now, core::Duration monotonic, Sink sink);

  /// Measures this process from the next sweep on, until it ends or is forgotten. Idempotent.
  void watch_process(std::int64_t pid);
  void forget_process(std::int64_t pid);

  /// Counts since opening.
  struct Counters {
    std::uint64_t sweeps = 0;
    std::uint64_t skipped = 0;  // deadlines that passed without a sweep
    std::uint64_t samples = 0;
    std::uint64_t errors = 0;  // collectors that failed, over all sweeps
  };
  [[nodiscard]] Counters counters() const noexcept;

 private:
  struct State;
  explicit NodeCollector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tocsin::collectors
