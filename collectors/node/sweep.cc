#include <cmath>

#include "collectors/node/collector.h"

namespace tocsin::collectors {

void Sweep::add(const Series& series, double value) {
  if (std::isfinite(value)) samples_.push_back({&series, value});
}

void Sweep::restart(core::WallTime time, core::Duration monotonic) {
  time_ = time;
  monotonic_ = monotonic;
  samples_.clear();
}

}  // namespace tocsin::collectors
