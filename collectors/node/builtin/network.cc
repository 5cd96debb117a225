// Bytes through every network interface but those of `skip`, by default the loopback.
//
// Gathers   system.network.io{network.interface.name=N,network.io.direction=receive|transmit},
//           monotonic counters in bytes
// Every     sweep
// Cost      one read of /proc/net/dev, about 5 µs
// Source    proc(5) /proc/net/dev; names: OpenTelemetry semantic conventions, system metrics
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/node/collector.h"
#include "collectors/node/device_series.h"
#include "collectors/node/proc_file.h"
#include "collectors/node/procfs.h"

namespace tocsin::collectors {
namespace {

std::string interface_series(std::string_view interface, bool outgoing) {
  return "system.network.io{network.interface.name=" + std::string(interface) +
         ",network.io.direction=" + (outgoing ? "transmit" : "receive") + "}";
}

struct NetworkConfig final : CollectorConfig {
  std::vector<std::string> skip{"lo"};  // its bytes never leave the machine
  [[nodiscard]] std::unique_ptr<Collector> build(const Roots& roots) const override;
};

class Network final : public Collector {
 public:
  Network(const Roots& roots, std::vector<std::string> skip)
      : dev_(roots.proc + "/net/dev"), skip_(std::move(skip)) {}

  core::Status collect(Sweep& sweep) override {
    const auto text = dev_.read();
    if (!text) return text.error();
    parse_interfaces(*text, interfaces_);
    if (interfaces_.empty()) {
      return core::Error{core::Code::data_loss, dev_.path() + " names no interface"};
    }
    counters_.begin();
    for (const InterfaceBytes& now : interfaces_) {
      if (skipped(now.name)) continue;
      counters_.add(sweep, now.name, now.received, now.transmitted);
    }
    counters_.end();
    return core::ok();
  }

 private:
  [[nodiscard]] bool skipped(std::string_view name) const {
    return std::any_of(skip_.begin(), skip_.end(), [&](const std::string& pattern) {
      return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                    : name == pattern;
    });
  }

  ProcFile dev_;
  std::vector<std::string> skip_;
  std::vector<InterfaceBytes> interfaces_;
  DeviceCounters counters_{interface_series};
};

std::unique_ptr<Collector> NetworkConfig::build(const Roots& roots) const {
  return std::make_unique<Network>(roots, skip);
}

std::shared_ptr<const CollectorConfig> read_network(config::Reader& in) {
  auto out = std::make_shared<NetworkConfig>();
  in.optional("skip", out->skip, "interfaces that are left out; `veth*`: all whose name begins so");
  return out;
}

constexpr Gathered kGathersNetwork[] = {
    {"system.network.io", "network.interface.name=I,network.io.direction=receive", "bytes", true},
    {"system.network.io", "network.interface.name=I,network.io.direction=transmit", "bytes", true},
};

}  // namespace

CollectorDescriptor network() {
  return {.name = "network",
          .help = "bytes through each interface",
          .gathers = kGathersNetwork,
          .read = &read_network};
}

}  // namespace tocsin::collectors
