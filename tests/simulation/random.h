// All chance of the simulated world: one seed, the same numbers on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace tocsin::simulation {

/// SplitMix64. Each concern forks its own, so that one more question here changes nothing there.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  Random fork() { return Random(next()); }

  /// first … last, both included.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(last - first + 1));
  }
  core::Duration between(core::Duration first, core::Duration last) {
    return core::Duration(between(first.count(), last.count()));
  }
  /// True in `share` of all cases.
  bool chance(double share) { return real() < share; }
  double real() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  std::size_t index(std::size_t size) { return next() % size; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[index(items.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace tocsin::simulation
