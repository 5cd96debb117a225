// What the machine's memory holds.
//
// Gathers   system.memory.usage{system.memory.state=S} in bytes, S one of used free buffers cached,
//           which add up to the total; system.memory.utilization{…}, the same as shares of it;
//           system.memory.limit, the total; system.linux.memory.available
// Every     sweep
// Cost      one read of /proc/meminfo, about 5 µs
// Source    proc(5) /proc/meminfo; names: OpenTelemetry semantic conventions, system metrics.
//           "used" is total − free − buffers − cached, with reclaimable slab counted as cached, as
//           free(1) does
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "collectors/node/collector.h"
#include "collectors/node/proc_file.h"
#include "collectors/node/procfs.h"

namespace tocsin::collectors {
namespace {

struct State {
  explicit State(const std::string& name)
      : usage("system.memory.usage{system.memory.state=" + name + "}", false),
        utilization("system.memory.utilization{system.memory.state=" + name + "}", false) {}
  Series usage;
  Series utilization;
};

class Memory final : public Collector {
 public:
  explicit Memory(const Roots& roots) : meminfo_(roots.proc + "/meminfo") {}

  core::Status collect(Sweep& sweep) override {
    const auto text = meminfo_.read();
    if (!text) return text.error();
    const Meminfo now = parse_meminfo(*text);
    if (!now.total || !now.free || *now.total == 0) {
      return core::Error{core::Code::data_loss, meminfo_.path() + " lacks MemTotal or MemFree"};
    }
    const std::uint64_t buffers = now.buffers.value_or(0);
    const std::uint64_t cached = now.cached.value_or(0) + now.slab_reclaimable.value_or(0);
    const std::uint64_t unused = std::min(*now.total, *now.free + buffers + cached);
    const std::array<std::uint64_t, 4> bytes{*now.total - unused, *now.free, buffers, cached};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      sweep.add(states_[i].usage, static_cast<double>(bytes[i]));
      sweep.add(states_[i].utilization,
                static_cast<double>(bytes[i]) / static_cast<double>(*now.total));
    }
    sweep.add(limit_, static_cast<double>(*now.total));
    if (now.available) sweep.add(available_, static_cast<double>(*now.available));
    return core::ok();
  }

 private:
  ProcFile meminfo_;
  std::array<State, 4> states_{State("used"), State("free"), State("buffers"), State("cached")};
  Series limit_{"system.memory.limit", false};
  Series available_{"system.linux.memory.available", false};
};

constexpr Gathered kGathersMemory[] = {
    {"system.memory.usage", "system.memory.state=S", "bytes"},
    {"system.memory.utilization", "system.memory.state=S", "ratio 0…1 of the total"},
    {"system.memory.limit", "", "bytes, the total"},
    {"system.linux.memory.available", "", "bytes that could be had without swapping"},
};

}  // namespace

CollectorDescriptor memory() {
  return {.name = "memory",
          .help = "use of the machine's memory by state",
          .gathers = kGathersMemory,
          .read = &without_keys<Memory>};
}

}  // namespace tocsin::collectors
