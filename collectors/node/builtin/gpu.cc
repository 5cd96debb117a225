// What the GPUs of this node do: NVIDIA's by their management library, loaded while the program runs,
// AMD's by sysfs.
//
// Gathers   per hw.id (the UUID): hw.gpu.utilization, hw.gpu.memory.usage, .limit and .utilization;
//           hw.power, tocsin.gpu.power.limit, hw.temperature, tocsin.gpu.throttled{reason}, hw.errors
//           {error.type=corrected|uncorrected|xid}, tocsin.gpu.xid, hw.status{hw.state=failed},
//           tocsin.gpu.unreadable; per watched process tocsin.gpu.process.memory. Of a MIG instance
//           its memory and its processes: the driver says no more of one
// Every     sweep; power, temperature, throttling and errors every `details`, memory of processes
//           every `processes`; the list of devices once a minute
// Cost      15 µs per GPU and sweep, 100 µs per `details`; the list of processes up to 5 ms, under a
//           lock of the driver
// Source    NVML API reference (NVIDIA); the kernel's Documentation/gpu/amdgpu/driver-misc.rst and
//           thermal.rst; names: OpenTelemetry semantic conventions, hardware metrics
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectors/node/collector.h"
#include "collectors/node/drm_cards.h"
#include "collectors/node/gpu_series.h"
#include "collectors/node/nvidia_gpus.h"

namespace tocsin::collectors {
namespace {

struct GpuConfig final : CollectorConfig {
  std::string library = "libnvidia-ml.so.1";
  core::Duration details = std::chrono::seconds(1);
  core::Duration processes = std::chrono::seconds(10);
  [[nodiscard]] std::unique_ptr<Collector> build(const Roots& roots) const override;
};

/// Cards of the driver amdgpu.
class AmdGpus {
 public:
  AmdGpus(std::string sys, core::Duration details) : sys_(std::move(sys)), details_{details} {}

  /// False: there are none.
  bool collect(Sweep& sweep) {
    if (!looked_ || sweep.monotonic() - *looked_ >= kGpusLookAgain) look(sweep.monotonic());
    const bool details = details_.due(sweep.monotonic());
    for (auto& [id, one] : cards_) {
      DrmCard& card = one->card;
      if (const auto busy = card.busy_percent()) {
        sweep.add(one->series.busy, std::min(*busy, 100.0) / 100);
      }
      const auto used = card.memory_used();
      const auto total = card.memory_total();
      if (used && total) one->series.add_memory(sweep, *used, *total);
      if (!details) continue;
      if (const auto watts = card.watts()) sweep.add(one->series.power, *watts);
      if (const auto celsius = card.celsius()) sweep.add(one->series.temperature, *celsius);
    }
    return !cards_.empty();
  }

 private:
  struct Card {
    explicit Card(DrmCard found) : card(std::move(found)), series(card.id()) {}
    DrmCard card;
    GpuSeries series;
  };

  void look(core::Duration now) {
    looked_ = now;
    std::map<std::string, std::unique_ptr<Card>> found;
    for (DrmCard& card : drm_cards(sys_)) {
      const std::string id = card.id();
      const auto known = cards_.find(id);
      found[id] = known != cards_.end() ? std::move(known->second)
                                        : std::make_unique<Card>(std::move(card));
    }
    cards_ = std::move(found);
  }

  std::string sys_;
  Pace details_;
  std::optional<core::Duration> looked_;
  std::map<std::string, std::unique_ptr<Card>> cards_;
};

class Gpu final : public Collector {
 public:
  Gpu(const GpuConfig& config, const Roots& roots)

      : nvidia_(config.library, config.details, config.processes),
        amd_(roots.sys, config.details) {}

  void watch_process(std::int64_t pid) override { watched_.insert(pid); }
  void forget_process(std::int64_t pid) override { watched_.erase(pid); }

  core::Status collect(Sweep& sweep) override {
    const bool amd = amd_.collect(sweep);
    const core::Status nvidia = nvidia_.collect(sweep, watched_);
    return amd ? core::ok() : nvidia;  // with AMD's GPUs alone there is no library of NVIDIA's
  }

 private:
  NvidiaGpus nvidia_;
  AmdGpus amd_;
  std::set<std::int64_t> watched_;
};

std::unique_ptr<Collector> GpuConfig::build(const Roots& roots) const {
  return std::make_unique<Gpu>(*this, roots);
}

std::shared_ptr<const CollectorConfig> read_gpu(config::Reader& in) {
  auto out = std::make_shared<GpuConfig>();
  in.optional("library", out->library, config::not_empty(),
              "NVIDIA's management library; a name without a slash is looked for by the loader");
  in.optional("details", out->details, config::at_least(core::Duration{}),
              "power, temperature, throttling and errors: no more often than this; 0s: never");
  in.optional("processes", out->processes, config::at_least(core::Duration{}),
              "memory of the watched processes: no more often than this, since the list takes a "
              "lock of the driver; 0s: never");
  return out;
}

constexpr Gathered kGathersGpu[] = {
    {"hw.gpu.utilization", "hw.id=U", "ratio 0…1 of time in which a kernel ran"},
    {"hw.gpu.memory.usage", "hw.id=U", "bytes"},
    {"hw.gpu.memory.limit", "hw.id=U", "bytes"},
    {"hw.gpu.memory.utilization", "hw.id=U", "ratio 0…1"},
    {"hw.power", "hw.id=U,hw.type=gpu", "watts"},
    {"tocsin.gpu.power.limit", "hw.id=U", "watts, as enforced"},
    {"hw.temperature", "hw.id=U,hw.type=gpu", "degrees Celsius"},
    {"tocsin.gpu.throttled", "hw.id=U,reason=power|thermal|hardware", "1 while it is"},
    {"hw.errors", "error.type=corrected|uncorrected,hw.id=U,hw.type=gpu",
     "memory errors over the life of the board", true},
    {"hw.errors", "error.type=xid,hw.id=U,hw.type=gpu", "XIDs since the agent began", true},
    {"tocsin.gpu.xid", "hw.id=U", "number of the newest XID, at the sweep that heard it"},
    {"hw.status", "hw.id=U,hw.state=failed,hw.type=gpu", "1 while the driver has lost it, else 0"},
    {"tocsin.gpu.unreadable", "hw.id=U", "readings that failed", true},
    {"tocsin.gpu.process.memory", "hw.id=U,process.pid=P", "bytes"},
};

}  // namespace

CollectorDescriptor gpu() {
  return {.name = "gpu",
          .help = "use, memory, power and errors of each GPU",
          .gathers = kGathersGpu,
          .read = &read_gpu};
}

}  // namespace tocsin::collectors
