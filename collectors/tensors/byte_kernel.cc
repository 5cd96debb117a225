// Integers and booleans of one byte: exact sums in integers, 64 elements at a time with AVX-512.
//
// 255 vectors are summed in narrow lanes (counts in bytes, squares in 32 bits: 255·4·255² < 2³¹),
// then folded to 64 bits. m2 is n·Σx² − (Σx)², an integer, over n.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectors/tensors/reduce_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectors/tensors/byte_kernel.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kPart = std::size_t{1} << 20;  // n·Σx² < 2⁵⁶

struct ByteSums {
  std::int64_t sum = 0;
  std::uint64_t squares = 0;
  std::uint64_t magnitude = 0;
  std::uint64_t zero = 0;
  std::uint64_t negative = 0;
  int min = 255;
  int max = -128;

  HWY_INLINE void add(int x) {
    sum += x;
    squares += static_cast<std::uint64_t>(x * x);
    magnitude += static_cast<std::uint64_t>(x < 0 ? -x : x);
    zero += x == 0 ? 1 : 0;
    negative += x < 0 ? 1 : 0;
    min = std::min(min, x);
    max = std::max(max, x);
  }

  [[nodiscard]] Moments moments(std::size_t n) const {
    Moments out;
    const auto spread = static_cast<std::int64_t>(n * squares) - sum * sum;
    out.count = n;
    out.sum = static_cast<double>(sum);
    out.sumsq = static_cast<double>(squares);
    out.m2 = static_cast<double>(spread) / static_cast<double>(n);
    out.abs_sum = static_cast<double>(magnitude);
    out.min = min;
    out.max = max;
    out.zero = zero;
    out.negative = negative;
    return out;
  }
};

// Elsewhere the compiler does it: Highway's sum of bytes is not on all targets.
#define TOCSIN_BYTES (HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3)

#if TOCSIN_BYTES
template <class D64, class V>
HWY_INLINE std::uint64_t total(D64 d64, V v) {
  return hn::GetLane(hn::SumOfLanes(d64, v));
}

// T: std::int8_t or std::uint8_t. Vectors of `p` as far as whole ones go; how many elements that is.
template <typename T>
HWY_INLINE std::size_t byte_vectors(const T* HWY_RESTRICT p, std::size_t n, ByteSums& out) {
  constexpr bool kSigned = sizeof(T) == 1 && T(-1) < T(0);
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Repartition<std::int16_t, decltype(d)> d16;
  const hn::Repartition<std::uint16_t, decltype(d)> d16u;
  const hn::Repartition<std::int32_t, decltype(d)> d32;
  const hn::Repartition<std::uint64_t, decltype(d)> d64;
  const std::size_t lanes = hn::Lanes(d);
  if (n < lanes) return 0;
  const auto none = hn::Zero(d);
  const auto flip = hn::Set(du, std::uint8_t{0x80});
  auto lo = hn::LoadU(d, p);
  auto hi = lo;
  auto sum = hn::Zero(d64);  // of x + 128 where x is signed, else of x
  auto magnitude = hn::Zero(d64);
  auto squares = hn::Zero(d64);
  std::size_t i = 0;
#if HWY_TARGET <= HWY_AVX3
#define TOCSIN_COUNT(counter, mask) counter += hn::CountTrue(d, mask)
  std::size_t zeros = 0;
  std::size_t negatives = 0;
#else
#define TOCSIN_COUNT(counter, mask) \
  counter = hn::Sub(counter, hn::BitCast(du, hn::VecFromMask(d, mask)))
  auto all_zeros = hn::Zero(d64);
  auto all_negatives = hn::Zero(d64);
#endif
  while (i + lanes <= n) {
    const std::size_t end = std::min(n, i + 255 * lanes);
    auto q0 = hn::Zero(d32);
    auto q1 = hn::Zero(d32);
    auto unused = hn::Zero(d32);
#if HWY_TARGET > HWY_AVX3
    auto zeros = hn::Zero(du);
    auto negatives = hn::Zero(du);
#endif
    for (; i + lanes <= end; i += lanes) {
      hwy::Prefetch(p + i + 4096);  // as in blocks-inl.h
      const auto v = hn::LoadU(d, p + i);
      TOCSIN_COUNT(zeros, hn::Eq(v, none));
      lo = hn::Min(lo, v);
      hi = hn::Max(hi, v);
      auto size = hn::BitCast(du, v);
      if constexpr (kSigned) {
        TOCSIN_COUNT(negatives, hn::Lt(v, none));
        sum = hn::Add(sum, hn::SumsOf8(hn::Xor(size, flip)));
        size = hn::BitCast(du, hn::Abs(v));  // of -128 it is 128
      }
      magnitude = hn::Add(magnitude, hn::SumsOf8(size));
      const auto pairs = hn::BitCast(d16u, size);
      const auto even = hn::BitCast(d16, hn::And(pairs, hn::Set(d16u, std::uint16_t{0xFF})));
      const auto odd = hn::BitCast(d16, hn::ShiftRight<8>(pairs));
      q0 = hn::ReorderWidenMulAccumulate(d32, even, even, q0, unused);
      q1 = hn::ReorderWidenMulAccumulate(d32, odd, odd, q1, unused);
    }
    // Lanes of 32 bits to 64: both halves of each.
    const auto q = hn::BitCast(d64, hn::Add(q0, q1));
    const auto low = hn::Set(d64, std::uint64_t{0xFFFFFFFFU});
    squares = hn::Add(squares, hn::Add(hn::And(q, low), hn::ShiftRight<32>(q)));
#if HWY_TARGET > HWY_AVX3
    all_zeros = hn::Add(all_zeros, hn::SumsOf8(zeros));
    all_negatives = hn::Add(all_negatives, hn::SumsOf8(negatives));
#endif
  }
#undef TOCSIN_COUNT
#if HWY_TARGET <= HWY_AVX3
  out.zero = zeros;
  out.negative = negatives;
#else
  out.zero = total(d64, all_zeros);
  out.negative = total(d64, all_negatives);
#endif
  out.squares = total(d64, squares);
  out.magnitude = total(d64, magnitude);
  out.sum = static_cast<std::int64_t>(out.magnitude);
  if constexpr (kSigned) {
    out.sum = static_cast<std::int64_t>(total(d64, sum)) - 128 * static_cast<std::int64_t>(i);
  }
  HWY_ALIGN T ends[2][HWY_MAX_BYTES];
  hn::Store(lo, d, ends[0]);
  hn::Store(hi, d, ends[1]);
  out.min = *std::min_element(ends[0], ends[0] + lanes);
  out.max = *std::max_element(ends[1], ends[1] + lanes);
  return i;
}
#endif

template <typename T>
void all_bytes(const T* p, std::size_t count, Moments& out) {
  while (count != 0) {
    const std::size_t n = std::min(count, kPart);
    ByteSums sums;
    std::size_t i = 0;
#if TOCSIN_BYTES
    i = byte_vectors(p, n, sums);
#endif
    for (; i < n; ++i) sums.add(p[i]);
    out.merge(sums.moments(n));
    p += n;
    count -= n;
  }
}
#undef TOCSIN_BYTES

void ReduceI8(const std::int8_t* data, std::size_t count, Moments& out) {
  all_bytes(data, count, out);
}
void ReduceU8(const std::uint8_t* data, std::size_t count, Moments& out) {
  all_bytes(data, count, out);
}

std::size_t CountNonzero(const std::uint8_t* HWY_RESTRICT p, std::size_t n) {
  std::size_t found = 0;
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d;
  const auto none = hn::Zero(d);
  for (const std::size_t lanes = hn::Lanes(d); i + lanes <= n; i += lanes) {
    hwy::Prefetch(p + i + 4096);
    found += lanes - hn::CountTrue(d, hn::Eq(hn::LoadU(d, p + i), none));
  }
#endif
  for (; i < n; ++i) found += p[i] != 0 ? 1 : 0;
  return found;
}

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tocsin::collectors {

HWY_EXPORT(ReduceI8);
HWY_EXPORT(ReduceU8);
HWY_EXPORT(CountNonzero);

namespace kernel {

void reduce_i8(const std::int8_t* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceI8)(data, count, out);
}
void reduce_u8(const std::uint8_t* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceU8)(data, count, out);
}
std::size_t count_nonzero(const std::uint8_t* data, std::size_t count) noexcept {
  return HWY_DYNAMIC_DISPATCH(CountNonzero)(data, count);
}

}  // namespace kernel
}  // namespace tocsin::collectors
#endif  // HWY_ONCE
