// What the machine's memory holds.
//
// This is the collector to copy: it reads one file and adds gauges. In a copy, change what stands
// behind each line "Change:".
//
// Change: this head.
// Gathers   system.memory.usage{system.memory.state=S} in bytes, S one of used free buffers cached,
//           which add up to the total; system.memory.utilization{…}, the same as shares of it;
//           system.memory.limit, the total; system.linux.memory.available
// Every     sweep
// Cost      one read of /proc/meminfo, about 5 µs
// Source    proc(5) /proc/meminfo; names: OpenTelemetry semantic conventions, system metrics.
//           "used" is total − free − buffers − cached, with reclaimable slab counted as cached, as
//           free(1) does
#include <algorithm>
#include <memory>
#include <string>

#include "collectors/node/collector.h"
#include "collectors/node/proc_file.h"
#include "collectors/node/procfs.h"

namespace tocsin::collectors {
namespace {

// Change: the series. A series is made once, in the constructor: its name is hashed there. `true`
// marks a monotonic counter.
struct MemoryState {
  explicit MemoryState(const std::string& name)
      : usage("system.memory.usage{system.memory.state=" + name + "}", false),
        utilization("system.memory.utilization{system.memory.state=" + name + "}", false) {}

  void add(Sweep& sweep, std::uint64_t bytes, std::uint64_t total) const {
    sweep.add(usage, static_cast<double>(bytes));
    sweep.add(utilization, static_cast<double>(bytes) / static_cast<double>(total));
  }

  Series usage;
  Series utilization;
};

// Change: the name of the class.
class Memory final : public Collector {
 public:
  // Change: the source, below `roots`, so that tests can stand in for it. ProcFile stays open.
  explicit Memory(const Roots& roots) : meminfo_(roots.proc + "/meminfo") {}

  // Change: read, parse, add. A parser that only this collector needs belongs into this file. Return
  // the error of a read as it is (not_found: this machine has no such source), and data_loss if the
  // text is not what you expect. What was added before an error is dropped.
  core::Status collect(Sweep& sweep) override {
    const auto text = meminfo_.read();
    if (!text) return text.error();
    const Meminfo now = parse_meminfo(*text);
    if (!now.total || !now.free || *now.total == 0) {
      return core::Error{core::Code::data_loss, meminfo_.path() + " lacks MemTotal or MemFree"};
    }
    const std::uint64_t total = *now.total;
    const std::uint64_t buffers = now.buffers.value_or(0);
    const std::uint64_t cached = now.cached.value_or(0) + now.slab_reclaimable.value_or(0);
    const std::uint64_t unused = std::min(total, *now.free + buffers + cached);
    used_.add(sweep, total - unused, total);
    free_.add(sweep, *now.free, total);
    buffers_.add(sweep, buffers, total);
    cached_.add(sweep, cached, total);
    sweep.add(limit_, static_cast<double>(total));
    if (now.available) sweep.add(available_, static_cast<double>(*now.available));
    return core::ok();
  }

 private:
  ProcFile meminfo_;
  MemoryState used_{"used"};
  MemoryState free_{"free"};
  MemoryState buffers_{"buffers"};
  MemoryState cached_{"cached"};
  Series limit_{"system.memory.limit", false};
  Series available_{"system.linux.memory.available", false};
};

// Change: each series that collect() adds: name, attributes, unit, and `true` for a counter. A test
// refuses a series that is not here.
constexpr Gathered kGathersMemory[] = {
    {"system.memory.usage", "system.memory.state=S", "bytes"},
    {"system.memory.utilization", "system.memory.state=S", "ratio 0…1 of the total"},
    {"system.memory.limit", "", "bytes, the total"},
    {"system.linux.memory.available", "", "bytes that could be had without swapping"},
};

}  // namespace

// Change: name and help. `every` sets a slower pace for a source that costs more than microseconds.
// A collector with keys of its own reads them in `read`, as network.cc does.
CollectorDescriptor memory() {
  return {.name = "memory",
          .help = "use of the machine's memory by state",
          .gathers = kGathersMemory,
          .read = &without_keys<Memory>};
}

}  // namespace tocsin::collectors
