// fast_block for binary32 around 0, where most weights and gradients lie: nothing is subtracted, and zeros and negatives are
// counted on patterns that are packed to fewer bits, several vectors at a time. Compiled once per instruction set, so the
// guard is Highway's and not #pragma once.
#if defined(TOCSIN_COLLECTORS_CENTRED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TOCSIN_COLLECTORS_CENTRED_INL_H_
#undef TOCSIN_COLLECTORS_CENTRED_INL_H_
#else
#define TOCSIN_COLLECTORS_CENTRED_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectors/blocks-inl.h"
#include "collectors/sources-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {

// Packing with signed saturation is one instruction there.
#define TOCSIN_PACKS (HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3)

// x + y, rounded the same, by the units that multiply: minima, maxima and sums wait for those that add (AMD's have two of each;
// Intel's do both in the same). `one` is 1, and the compiler must not know it.
template <class V>
HWY_INLINE V plus(V x, V one, V y) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::MulAdd(x, one, y);
#else
  (void)one;
  return hn::Add(x, y);
#endif
}

inline HWY_NOINLINE BlockSums<float> centred_block(const float* HWY_RESTRICT p, std::size_t n) {
#if !TOCSIN_PACKS
  return fast_block<F32Source>(p, n, 0);
#else
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Wide<decltype(d)> dd;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Repartition<std::int16_t, decltype(d)> d16;
  const std::size_t lanes = hn::Lanes(d);
  const V none = hn::Zero(d);
  static const volatile float unit = 1;
  const V one = hn::Set(d, unit);
  V lo = hn::Set(d, p[0]);
  V hi = lo;
  auto sum = hn::Zero(dd);
  auto sumsq = hn::Zero(dd);
  auto magnitude = hn::Zero(dd);
  BlockSums<float> out;
#if HWY_TARGET > HWY_AVX3
  auto zeros = hn::Zero(d16);
  auto negatives = hn::Zero(d16);
#endif

  std::size_t i = 0;
  while (i + 4 * lanes <= n) {
    const std::size_t end = std::min(n, i + 2 * lanes * kChain);
    V s = none;
    V m = none;
    V q0 = none;
    V q1 = none;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      for (std::size_t j = 0; j < 4 * lanes; j += 16) hwy::Prefetch(p + i + j + 1024);
      // Plus 0: of a zero with a sign it makes one without, and its pattern is 0.
      const V a = plus(hn::LoadU(d, p + i), one, none);
      const V b = plus(hn::LoadU(d, p + i + lanes), one, none);
      const V e = plus(hn::LoadU(d, p + i + 2 * lanes), one, none);
      const V f = plus(hn::LoadU(d, p + i + 3 * lanes), one, none);
      lo = hn::Min(lo, hn::Min(hn::Min(a, b), hn::Min(e, f)));
      hi = hn::Max(hi, hn::Max(hn::Max(a, b), hn::Max(e, f)));
      s = hn::Add(s, hn::Add(plus(a, one, b), plus(e, one, f)));
      m = hn::Add(m, hn::Add(hn::Add(hn::Abs(a), hn::Abs(b)), hn::Add(hn::Abs(e), hn::Abs(f))));
      q0 = hn::MulAdd(a, a, q0);
      q1 = hn::MulAdd(b, b, q1);
      q0 = hn::MulAdd(e, e, q0);
      q1 = hn::MulAdd(f, f, q1);
      // As integers they have the sign of the number and are 0 when it is; saturation keeps both.
      const auto ab = hn::ReorderDemote2To(d16, hn::BitCast(di, a), hn::BitCast(di, b));
      const auto ef = hn::ReorderDemote2To(d16, hn::BitCast(di, e), hn::BitCast(di, f));
#if HWY_TARGET <= HWY_AVX3
      const __m512i all = _mm512_packs_epi16(ab.raw, ef.raw);
      out.zero +=
          static_cast<std::uint64_t>(__builtin_popcountll(_mm512_testn_epi8_mask(all, all)));
      out.negative += static_cast<std::uint64_t>(__builtin_popcountll(_mm512_movepi8_mask(all)));
#else
      const auto nothing = hn::Zero(d16);
      zeros = hn::Sub(zeros, hn::VecFromMask(d16, hn::Eq(ab, nothing)));
      zeros = hn::Sub(zeros, hn::VecFromMask(d16, hn::Eq(ef, nothing)));
      negatives = hn::Sub(negatives, hn::VecFromMask(d16, hn::Lt(ab, nothing)));
      negatives = hn::Sub(negatives, hn::VecFromMask(d16, hn::Lt(ef, nothing)));
#endif
    }
    sum = fold(dd, sum, d, s);
    sumsq = fold(dd, sumsq, d, hn::Add(q0, q1));
    magnitude = fold(dd, magnitude, d, m);
  }
#if HWY_TARGET > HWY_AVX3
  HWY_ALIGN std::int16_t counts[2][2 * kMaxLanes];  // 16 bits do not hold the sum of the lanes
  hn::Store(zeros, d16, counts[0]);
  hn::Store(negatives, d16, counts[1]);
  for (std::size_t j = 0; j < 2 * lanes; ++j) {
    out.zero += static_cast<std::uint64_t>(counts[0][j]);
    out.negative += static_cast<std::uint64_t>(counts[1][j]);
  }
#endif
  out.d = hn::GetLane(hn::SumOfLanes(dd, sum));
  out.d2 = hn::GetLane(hn::SumOfLanes(dd, sumsq));
  out.abs = hn::GetLane(hn::SumOfLanes(dd, magnitude));
  out.min = least(d, lo);
  out.max = most(d, hi);
  if (i == n) return out;
  const BlockSums<float> rest = fast_block<F32Source>(p + i, n - i, 0);
  out.d += rest.d;
  out.d2 += rest.d2;
  out.abs += rest.abs;
  out.zero += rest.zero;
  out.negative += rest.negative;
  out.min = std::min(out.min, rest.min);
  out.max = std::max(out.max, rest.max);
  return out;
#endif
}
#undef TOCSIN_PACKS

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
