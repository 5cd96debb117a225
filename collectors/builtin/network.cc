// Bytes through every network interface but the loopback.
//
// Gathers   system.network.io{network.interface.name=N,network.io.direction=receive|transmit},
//           monotonic counters in bytes
// Every     sweep
// Cost      one read of /proc/net/dev, about 5 µs
// Source    proc(5) /proc/net/dev; names: OpenTelemetry semantic conventions, system metrics
#include <memory>
#include <string>
#include <vector>

#include "collectors/collector.h"
#include "collectors/device_series.h"
#include "collectors/proc_file.h"
#include "collectors/procfs.h"

namespace tocsin::collectors {
namespace {

std::string series_name(std::string_view interface, bool outgoing) {
  return "system.network.io{network.interface.name=" + std::string(interface) +
         ",network.io.direction=" + (outgoing ? "transmit" : "receive") + "}";
}

class Network final : public Collector {
 public:
  explicit Network(const Roots& roots) : dev_(roots.proc + "/net/dev") {}

  core::Status collect(Sweep& sweep) override {
    const auto text = dev_.read();
    if (!text) return text.error();
    parse_interfaces(*text, interfaces_);
    if (interfaces_.empty()) {
      return core::Error{core::Code::data_loss, dev_.path() + " names no interface"};
    }
    counters_.begin();
    for (const InterfaceBytes& now : interfaces_) {
      if (now.name == "lo") continue;  // bytes that never leave the machine
      counters_.add(sweep, now.name, now.received, now.transmitted);
    }
    counters_.end();
    return core::ok();
  }

 private:
  ProcFile dev_;
  std::vector<InterfaceBytes> interfaces_;
  DeviceCounters counters_{series_name};
};

std::unique_ptr<Collector> make(const Roots& roots) { return std::make_unique<Network>(roots); }

}  // namespace

CollectorDescriptor network() { return {"network", "bytes through each interface", make}; }

}  // namespace tocsin::collectors
