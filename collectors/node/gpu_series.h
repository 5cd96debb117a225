// What is told of one GPU, whoever made it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collectors/node/collector.h"

namespace tocsin::collectors {

/// A pace within the sweeps.
struct Pace {
  core::Duration every;
  std::optional<core::Duration> last = {};
  bool due(core::Duration now) {
    if (every <= core::Duration{}) return false;
    if (last && now - *last < every) return false;
    last = now;
    return true;
  }
};

/// The series of one GPU, AMD's or NVIDIA's.
struct GpuSeries {
  explicit GpuSeries(const std::string& id) : self("hw.id=" + id) {}

  std::string self;
  Series busy{"hw.gpu.utilization{" + self + "}", false};
  Series used{"hw.gpu.memory.usage{" + self + "}", false};
  Series total{"hw.gpu.memory.limit{" + self + "}", false};
  Series full{"hw.gpu.memory.utilization{" + self + "}", false};
  Series power{"hw.power{" + self + ",hw.type=gpu}", false};
  Series power_limit{"tocsin.gpu.power.limit{" + self + "}", false};
  Series temperature{"hw.temperature{" + self + ",hw.type=gpu}", false};
  Series by_power{"tocsin.gpu.throttled{" + self + ",reason=power}", false};
  Series by_heat{"tocsin.gpu.throttled{" + self + ",reason=thermal}", false};
  Series by_hardware{"tocsin.gpu.throttled{" + self + ",reason=hardware}", false};
  Series corrected{"hw.errors{error.type=corrected," + self + ",hw.type=gpu}", true};
  Series uncorrected{"hw.errors{error.type=uncorrected," + self + ",hw.type=gpu}", true};
  Series xids{"hw.errors{error.type=xid," + self + ",hw.type=gpu}", true};
  Series xid{"tocsin.gpu.xid{" + self + "}", false};
  Series failed{"hw.status{" + self + ",hw.state=failed,hw.type=gpu}", false};
  Series unreadable{"tocsin.gpu.unreadable{" + self + "}", true};
  std::map<std::int64_t, std::unique_ptr<Series>> processes;  // by pid

  void add_memory(Sweep& sweep, double bytes, double of) {
    sweep.add(used, bytes);
    sweep.add(total, of);
    if (of > 0) sweep.add(full, bytes / of);
  }
};

}  // namespace tocsin::collectors
