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
#include <bit>
#include <cstddef>
#include <cstdint>

#include "collectors/tensors/blocks-inl.h"
#include "collectors/tensors/sources-inl.h"

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

HWY_INLINE void join(BlockSums<float>& out, const BlockSums<float>& rest) {
  out.d += rest.d;
  out.d2 += rest.d2;
  out.abs += rest.abs;
  out.zero += rest.zero;
  out.negative += rest.negative;
  out.min = std::min(out.min, rest.min);
  out.max = std::max(out.max, rest.max);
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
  join(out, fast_block<F32Source>(p + i, n - i, 0));
  return out;
#endif
}
#undef TOCSIN_PACKS

#undef TOCSIN_CLEAR_BLOCKS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define TOCSIN_CLEAR_BLOCKS 1

// centred_block() in two thirds of the operations, for a block that has no zero and a negative number, as most have that lie
// around 0. That there is no zero is seen by a bit of the exponent that all elements have in common (all of 2⁻⁶³ … 2, or all
// larger): without a zero a sign is a negative number. False: one of the two is not so, and `out` is not to be used.
//
// Σ|x| is Σx less twice the sum of the negative ones, whose sign bits are the mask. The least is the largest pattern, as an
// unsigned integer: units that neither add nor multiply find it.
inline HWY_NOINLINE bool clear_block(const float* HWY_RESTRICT p, std::size_t n,
                                     BlockSums<float>& out) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Wide<decltype(d)> dd;
  constexpr std::size_t kLanes = 16;
  const V none = hn::Zero(d);
  __m512i common = _mm512_set1_epi32(-1);
  __m512i top = _mm512_setzero_si512();
  V hi = hn::Set(d, p[0]);
  auto sum = hn::Zero(dd);
  auto sumsq = hn::Zero(dd);
  auto below = hn::Zero(dd);
  out = {};
  const auto count = [&](__mmask16 signs) {
    out.negative += static_cast<unsigned>(__builtin_popcount(signs));
  };
  std::size_t i = 0;
  while (i + 4 * kLanes <= n) {
    const std::size_t end = std::min(n, i + 2 * kLanes * kChain);
    V s = none;
    V m0 = none;
    V m1 = none;
    V q0 = none;
    V q1 = none;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      for (std::size_t j = 0; j < 4 * kLanes; j += 16) hwy::Prefetch(p + i + j + 1024);
      const V a = hn::LoadU(d, p + i);
      const V b = hn::LoadU(d, p + i + kLanes);
      const V e = hn::LoadU(d, p + i + 2 * kLanes);
      const V f = hn::LoadU(d, p + i + 3 * kLanes);
      const __m512i ia = _mm512_castps_si512(a.raw);
      const __m512i ib = _mm512_castps_si512(b.raw);
      const __m512i ie = _mm512_castps_si512(e.raw);
      const __m512i jf = _mm512_castps_si512(f.raw);
      hi = hn::Max(hi, hn::Max(hn::Max(a, b), hn::Max(e, f)));
      s = hn::Add(s, hn::Add(hn::Add(a, b), hn::Add(e, f)));
      q0 = hn::MulAdd(a, a, q0);
      q1 = hn::MulAdd(b, b, q1);
      q0 = hn::MulAdd(e, e, q0);
      q1 = hn::MulAdd(f, f, q1);
      const __mmask16 ka = _mm512_movepi32_mask(ia);
      const __mmask16 kb = _mm512_movepi32_mask(ib);
      const __mmask16 ke = _mm512_movepi32_mask(ie);
      const __mmask16 kf = _mm512_movepi32_mask(jf);
      m0 = V{_mm512_mask_add_ps(m0.raw, ka, m0.raw, a.raw)};
      m1 = V{_mm512_mask_add_ps(m1.raw, kb, m1.raw, b.raw)};
      m0 = V{_mm512_mask_add_ps(m0.raw, ke, m0.raw, e.raw)};
      m1 = V{_mm512_mask_add_ps(m1.raw, kf, m1.raw, f.raw)};
      count(ka);
      count(kb);
      count(ke);
      count(kf);
      top = _mm512_max_epu32(top,
                             _mm512_max_epu32(_mm512_max_epu32(ia, ib), _mm512_max_epu32(ie, jf)));
      common = _mm512_ternarylogic_epi32(common, ia, ib, 0x80);  // and, of three
      common = _mm512_ternarylogic_epi32(common, ie, jf, 0x80);
    }
    sum = fold(dd, sum, d, s);
    sumsq = fold(dd, sumsq, d, hn::Add(q0, q1));
    below = fold(dd, below, d, hn::Add(m0, m1));
  }
  const std::uint32_t least = _mm512_reduce_max_epu32(top);
  const __m512i shared = _mm512_set1_epi32(0x60000000);
  if (_mm512_test_epi32_mask(common, shared) != 0xFFFF || (least & 0x80000000U) == 0) {
    return false;
  }
  out.d = hn::GetLane(hn::SumOfLanes(dd, sum));
  out.d2 = hn::GetLane(hn::SumOfLanes(dd, sumsq));
  out.abs = out.d - 2 * hn::GetLane(hn::SumOfLanes(dd, below));
  out.min = std::bit_cast<float>(least);
  out.max = most(d, hi);
  if (i < n) join(out, fast_block<F32Source>(p + i, n - i, 0));
  return true;
}
#else
#define TOCSIN_CLEAR_BLOCKS 0
#endif

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
