#include "collectors/tensors/accumulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "collectors/tensors/number_formats.h"
#include "collectors/tensors/reduce_kernel.h"

namespace tocsin::collectors {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Elements converted at a time: their binary64 copies stay in the first-level cache.
constexpr std::size_t kConverted = 1024;

// Floating-point numbers of one byte: a count per pattern, then exact statistics of at most 256 distinct values. Four
// tables, so that equal neighbours do not wait for each other's increment.
template <typename Value>
void accumulate_bytes(const std::uint8_t* data, std::size_t count, Value value, Moments& out) {
  constexpr std::size_t kPart = std::size_t{1} << 30;  // no 32-bit counter overflows
  while (count != 0) {
    const std::size_t n = std::min(count, kPart);
    std::array<std::array<std::uint32_t, 256>, 4> seen{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, data + i, 8);
      for (std::size_t k = 0; k < 8; ++k) ++seen[k % 4][(eight >> (8 * k)) & 0xFF];
    }
    for (; i < n; ++i) ++seen[0][data[i]];
    Moments part;
    part.count = n;
    std::array<double, 256> times{};
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint64_t c = std::uint64_t{seen[0][b]} + seen[1][b] + seen[2][b] + seen[3][b];
      if (c == 0) continue;
      const double x = value(static_cast<std::uint8_t>(b));
      times[b] = static_cast<double>(c);
      part.sum += times[b] * x;
      part.sumsq += times[b] * x * x;
      part.abs_sum += times[b] * std::fabs(x);
      if (std::isnan(x)) part.nan += c;
      if (std::isinf(x)) (x > 0 ? part.posinf : part.neginf) += c;
      if (x == 0) part.zero += c;
      if (x < 0) part.negative += c;
      part.min = std::min(part.min, x);  // a NaN never replaces a number here
      part.max = std::max(part.max, x);
    }
    const double mean = part.sum / static_cast<double>(n);
    for (std::size_t b = 0; b < 256 && part.finite(); ++b) {
      if (times[b] == 0) continue;
      const double apart = value(static_cast<std::uint8_t>(b)) - mean;
      part.m2 += times[b] * apart * apart;
    }
    if (!part.finite()) part.m2 = kNan;
    if (part.nan != 0) part.min = part.max = kNan;
    out.merge(part);
    data += n;
    count -= n;
  }
}

// Any byte but 0 is 1: how many there are says all.
void accumulate_booleans(const std::uint8_t* data, std::size_t count, Moments& out) {
  const std::size_t ones = kernel::count_nonzero(data, count);
  Moments part;
  part.count = count;
  part.zero = count - ones;
  part.sum = part.sumsq = part.abs_sum = static_cast<double>(ones);
  part.m2 = part.sum * (static_cast<double>(part.zero) / static_cast<double>(count));
  part.min = part.zero != 0 ? 0 : 1;
  part.max = ones != 0 ? 1 : 0;
  out.merge(part);
}

// Integers of 32 and 64 bits, in binary64.
template <typename T>
void accumulate_integers(const T* data, std::size_t count, Moments& out) {
  alignas(64) std::array<double, kConverted> widened;
  for (std::size_t i = 0; i < count; i += kConverted) {
    const std::size_t n = std::min(kConverted, count - i);
    std::uint64_t high = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const T x = data[i + j];
      widened[j] = static_cast<double>(x);
      if constexpr (sizeof(T) == 8) high |= static_cast<std::uint64_t>(x < T{0} ? ~x : x);
    }
    if ((high >> 53) != 0) out.flags |= core::meta::kApproximate;
    kernel::reduce_f64(widened.data(), n, out);
  }
}

// Complex numbers as their moduli; finish() takes back what is not defined for them.
template <typename T>
void accumulate_complex(const T* data, std::size_t count, Moments& out) {
  alignas(64) std::array<double, kConverted> moduli;
  for (std::size_t i = 0; i < count; i += kConverted) {
    const std::size_t n = std::min(kConverted, count - i);
    for (std::size_t j = 0; j < n; ++j) {
      const auto re = static_cast<double>(data[2 * (i + j)]);
      const auto im = static_cast<double>(data[2 * (i + j) + 1]);
      if constexpr (sizeof(T) == 4) {
        moduli[j] = std::sqrt(re * re + im * im);  // cannot leave the range; NaN wins over Inf
      } else {
        moduli[j] = std::isnan(re) || std::isnan(im) ? kNan : std::hypot(re, im);
      }
    }
    kernel::reduce_f64(moduli.data(), n, out);
  }
}

template <typename T>
const T* as(const void* data) {
  return static_cast<const T*>(data);
}

// Finite data whose binary64 sums overflowed on the way: again in the widest type there is, so that
// only a result that is itself out of range is infinite. Rare, so slow is good enough.
void redo_wide(const double* data, std::size_t count, Moments& out) {
  long double sum = 0;
  long double sumsq = 0;
  long double abs_sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const long double x = data[i];
    sum += x;
    sumsq += x * x;
    abs_sum += std::fabs(x);
  }
  const long double mean = sum / static_cast<long double>(count);
  long double m2 = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const long double apart = data[i] - mean;
    m2 += apart * apart;
  }
  out.sum = static_cast<double>(sum);
  out.sumsq = static_cast<double>(sumsq);
  out.abs_sum = static_cast<double>(abs_sum);
  out.m2 = static_cast<double>(m2);
}

void accumulate_f64(const double* data, std::size_t count, Moments& out) {
  Moments part;
  kernel::reduce_f64(data, count, part);
  if (part.finite() && !std::isfinite(part.sumsq + part.m2)) redo_wide(data, count, part);
  out.merge(part);
}

void accumulate_aligned(core::Dtype dtype, const void* data, std::size_t count, Moments& out) {
  using core::Dtype;
  const auto* bytes = as<std::uint8_t>(data);
  switch (dtype) {
    case Dtype::f32:
      return kernel::reduce_f32(as<float>(data), count, out);
    case Dtype::f64:
      return accumulate_f64(as<double>(data), count, out);
    case Dtype::f16:
      return kernel::reduce_f16(as<std::uint16_t>(data), count, out);
    case Dtype::bf16:
      return kernel::reduce_bf16(as<std::uint16_t>(data), count, out);
    case Dtype::f8_e4m3:
      return accumulate_bytes(
          bytes, count, [](std::uint8_t b) { return double{from_f8_e4m3(b)}; }, out);
    case Dtype::f8_e5m2:
      return accumulate_bytes(
          bytes, count, [](std::uint8_t b) { return double{from_f8_e5m2(b)}; }, out);
    case Dtype::i8:
      return kernel::reduce_i8(as<std::int8_t>(data), count, out);
    case Dtype::u8:
      return kernel::reduce_u8(bytes, count, out);
    case Dtype::boolean:
      return accumulate_booleans(bytes, count, out);
    case Dtype::i16:
      return kernel::reduce_i16(as<std::int16_t>(data), count, out);
    case Dtype::u16:
      return kernel::reduce_u16(as<std::uint16_t>(data), count, out);
    case Dtype::i32:
      return accumulate_integers(as<std::int32_t>(data), count, out);
    case Dtype::u32:
      return accumulate_integers(as<std::uint32_t>(data), count, out);
    case Dtype::i64:
      return accumulate_integers(as<std::int64_t>(data), count, out);
    case Dtype::u64:
      return accumulate_integers(as<std::uint64_t>(data), count, out);
    case Dtype::c64:
      return accumulate_complex(as<float>(data), count, out);
    case Dtype::c128:
      return accumulate_complex(as<double>(data), count, out);
    case Dtype::unknown:
    case Dtype::text:
      return;
  }
}

}  // namespace

bool reducible(core::Dtype dtype) noexcept { return core::size_of(dtype) != 0; }

void accumulate(core::Dtype dtype, const void* data, std::size_t count, Moments& out) noexcept {
  const std::size_t size = core::size_of(dtype);
  if (count == 0 || size == 0) return;
  const std::size_t alignment = std::min<std::size_t>(size, 8);
  if (reinterpret_cast<std::uintptr_t>(data) % alignment == 0) {
    accumulate_aligned(dtype, data, count, out);
    return;
  }
  // Views into packed buffers: through an aligned copy, a block at a time.
  alignas(64) std::array<std::byte, 16384> copy;
  const auto* from = as<std::byte>(data);
  for (std::size_t step = copy.size() / size; count != 0;) {
    const std::size_t n = std::min(step, count);
    std::memcpy(copy.data(), from, n * size);
    accumulate_aligned(dtype, copy.data(), n, out);
    from += n * size;
    count -= n;
  }
}

core::SummaryRow finish(core::Dtype dtype, const Moments& moments) noexcept {
  core::SummaryRow row = moments.row(dtype);
  if (row.count != 0 && (dtype == core::Dtype::c64 || dtype == core::Dtype::c128)) {
    row.sum = row.m2 = kNan;
  }
  return row;
}

}  // namespace tocsin::collectors
