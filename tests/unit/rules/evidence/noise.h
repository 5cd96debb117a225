// Numbers for simulated trainings: a generator of our own, the same on every machine.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace tocsin::testing_support {

class Noise {
 public:
  /// Streams of different seeds begin at places far from each other.
  explicit Noise(std::uint64_t seed) : state_(seed) { state_ = bits() ^ (seed << 32U); }
  std::uint64_t bits() {  // splitmix64
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  double uniform() { return static_cast<double>(bits() >> 11U) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// Student's t with 3 degrees of freedom: no fourth moment.
  double heavy() {
    const double a = normal();
    const double b = normal();
    const double c = normal();
    return normal() / std::sqrt((a * a + b * b + c * c) / 3);
  }
  double wins(double share, int pairs) {
    double out = 0;
    for (int i = 0; i < pairs; ++i) out += uniform() < share ? 1 : 0;
    return out;
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[bits() % i]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace tocsin::testing_support
