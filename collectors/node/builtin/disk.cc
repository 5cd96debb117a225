// Bytes to and from every disk.
//
// Gathers   system.disk.io{disk.io.direction=read|write,system.device=D}, monotonic counters in
//           bytes; whole disks only (no partitions, loop or RAM devices, whose bytes would count
//           twice)
// Every     sweep
// Cost      one read of /proc/diskstats, about 8 µs
// Source    the kernel's Documentation/admin-guide/iostats.rst; names: OpenTelemetry semantic
//           conventions, system metrics
#include <memory>
#include <string>
#include <vector>

#include "collectors/node/collector.h"
#include "collectors/node/device_series.h"
#include "collectors/node/proc_file.h"
#include "collectors/node/procfs.h"

namespace tocsin::collectors {
namespace {

std::string device_series(std::string_view device, bool outgoing) {
  return std::string("system.disk.io{disk.io.direction=") + (outgoing ? "write" : "read") +
         ",system.device=" + std::string(device) + "}";
}

class Disk final : public Collector {
 public:
  explicit Disk(const Roots& roots) : diskstats_(roots.proc + "/diskstats") {}

  core::Status collect(Sweep& sweep) override {
    const auto text = diskstats_.read();
    if (!text) return text.error();
    parse_disks(*text, disks_);
    counters_.begin();
    for (const DiskBytes& now : disks_) {
      if (is_whole_disk(now.name)) counters_.add(sweep, now.name, now.read, now.written);
    }
    counters_.end();
    return core::ok();  // a machine without disks has nothing to say
  }

 private:
  ProcFile diskstats_;
  std::vector<DiskBytes> disks_;
  DeviceCounters counters_{device_series};
};

constexpr Gathered kGathersDisk[] = {
    {"system.disk.io", "disk.io.direction=read,system.device=D", "bytes", true},
    {"system.disk.io", "disk.io.direction=write,system.device=D", "bytes", true},
};

}  // namespace

CollectorDescriptor disk() {
  return {.name = "disk",
          .help = "bytes to and from each disk",
          .gathers = kGathersDisk,
          .read = &without_keys<Disk>};
}

}  // namespace tocsin::collectors
