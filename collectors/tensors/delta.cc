// How far a tensor moved since its last saved value.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/float_environment.h"
#include "collectors/tensors/reduce.h"
#include "collectors/tensors/reduce_kernel.h"

namespace tocsin::collectors {
namespace {

constexpr std::size_t kConverted = 512;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The largest modulus of a difference of complex numbers given as pairs.
double max_modulus(const double* now, const double* prev, std::size_t pairs, double largest) {
  for (std::size_t i = 0; i < pairs; ++i) {
    const double re = now[2 * i] - prev[2 * i];
    const double im = now[2 * i + 1] - prev[2 * i + 1];
    const double size = std::isnan(re) || std::isnan(im) ? kNan : std::hypot(re, im);
    if (!(size <= largest) && largest == largest) largest = size;
  }
  return largest;
}

void delta_converted(core::Dtype dtype, const std::byte* now, const std::byte* prev,
                     std::uint64_t count, kernel::DeltaSums& sums) {
  const bool complex = dtype == core::Dtype::c64 || dtype == core::Dtype::c128;
  const std::size_t size = core::size_of(dtype) / (complex ? 2 : 1);
  std::array<double, kConverted> a;
  std::array<double, kConverted> b;
  double modulus = 0;
  for (std::uint64_t left = complex ? 2 * count : count; left != 0;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kConverted, left));
    widen(dtype, now, n, a.data());
    widen(dtype, prev, n, b.data());
    kernel::delta_f64(a.data(), b.data(), n, sums);
    if (complex) modulus = max_modulus(a.data(), b.data(), n / 2, modulus);
    now += n * size;
    prev += n * size;
    left -= n;
  }
  if (complex) sums.delta_max = modulus;
}

bool aligned(const void* a, const void* b, std::size_t size) {
  return (reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) % size == 0;
}

}  // namespace

DeltaNorms delta(core::Dtype dtype, const void* now, const void* prev,
                 std::uint64_t count) noexcept {
  using core::Dtype;
  const std::size_t size = core::size_of(dtype);
  if (size == 0) return {kNan, kNan, kNan};
  const DefaultFloatEnvironment environment;
  kernel::DeltaSums sums;
  const bool direct = aligned(now, prev, std::min<std::size_t>(size, 8));
  if (direct && dtype == Dtype::f32) {
    kernel::delta_f32(static_cast<const float*>(now), static_cast<const float*>(prev), count, sums);
  } else if (direct && dtype == Dtype::f64) {
    kernel::delta_f64(static_cast<const double*>(now), static_cast<const double*>(prev), count,
                      sums);
  } else if (direct && dtype == Dtype::f16) {
    kernel::delta_f16(static_cast<const std::uint16_t*>(now),
                      static_cast<const std::uint16_t*>(prev), count, sums);
  } else if (direct && dtype == Dtype::bf16) {
    kernel::delta_bf16(static_cast<const std::uint16_t*>(now),
                       static_cast<const std::uint16_t*>(prev), count, sums);
  } else {
    delta_converted(dtype, static_cast<const std::byte*>(now), static_cast<const std::byte*>(prev),
                    count, sums);
  }
  return {std::sqrt(sums.delta_sq), std::sqrt(sums.prev_sq), sums.delta_max};
}

}  // namespace tocsin::collectors
