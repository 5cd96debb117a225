// The statistics of one block: fast_block assumes finite values and sums in lanes of the source's
// width, careful_block takes any values in binary64 with masks. Compiled once per instruction set,
// so the guard is Highway's and not #pragma once.
#if defined(TOCSIN_COLLECTORS_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TOCSIN_COLLECTORS_BLOCKS_INL_H_
#undef TOCSIN_COLLECTORS_BLOCKS_INL_H_
#else
#define TOCSIN_COLLECTORS_BLOCKS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "collectors/tensors/moments.h"
#include "collectors/tensors/sources-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kChain = 32;  // additions per lane before folding
constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

template <typename T>
struct BlockSums {
  double d = 0;    // Σ (x − shift)
  double d2 = 0;   // Σ (x − shift)²
  double abs = 0;  // Σ |x|
  T min = 0;
  T max = 0;
  std::uint64_t zero = 0;
  std::uint64_t negative = 0;
};

// On the bit pattern, so that no compiler flag can remove it.
HWY_INLINE bool finite(double value) {
  constexpr std::uint64_t kExponent = 0x7FF0000000000000U;
  return (std::bit_cast<std::uint64_t>(value) & kExponent) != kExponent;
}

// The least and the largest lane. The emulated target folds from the largest finite numbers on, and
// loses an infinity that is everywhere.
template <class D, class V>
HWY_INLINE hn::TFromD<D> least(D d, V v) {
#if HWY_TARGET == HWY_EMU128
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  return *std::min_element(lanes, lanes + hn::Lanes(d));
#else
  return hn::GetLane(hn::MinOfLanes(d, v));
#endif
}
template <class D, class V>
HWY_INLINE hn::TFromD<D> most(D d, V v) {
#if HWY_TARGET == HWY_EMU128
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  return *std::max_element(lanes, lanes + hn::Lanes(d));
#else
  return hn::GetLane(hn::MaxOfLanes(d, v));
#endif
}

// acc + v, where v may have lanes of half the width.
template <class DD, class VD, class D, class V>
HWY_INLINE VD fold(DD dd, VD acc, D d, V v) {
  if constexpr (std::is_same_v<hn::TFromD<D>, double>) {
    (void)dd;
    (void)d;
    return hn::Add(acc, v);
  } else {
#if HWY_TARGET == HWY_SCALAR
    (void)d;
    return hn::Add(acc, hn::PromoteTo(dd, v));
#else
    const hn::Half<D> dh;
    return hn::Add(acc, hn::Add(hn::PromoteTo(dd, hn::LowerHalf(dh, v)),
                                hn::PromoteTo(dd, hn::UpperHalf(dh, v))));
#endif
  }
}

// Lanes of binary64 that hold the folded sums of lanes of T.
#if HWY_TARGET == HWY_SCALAR
template <class D>
using Wide = hn::Rebind<double, D>;
#else
template <class D>
using Wide = hn::Repartition<double, D>;
#endif

template <class Source>
HWY_NOINLINE BlockSums<typename Source::Lane> fast_block(const typename Source::Raw* HWY_RESTRICT p,
                                                         std::size_t n,
                                                         typename Source::Lane shift) {
  using T = typename Source::Lane;
  const hn::ScalableTag<T> d;
  using D = decltype(d);
  using V = hn::Vec<D>;
  const Wide<D> dd;
  const std::size_t lanes = hn::Lanes(d);
  const V k = hn::Set(d, shift);
  const V none = hn::Zero(d);
  V lo = hn::Set(d, Source::get(p[0]));
  V hi = lo;
  auto sum = hn::Zero(dd);
  auto sumsq = hn::Zero(dd);
  auto magnitude = hn::Zero(dd);
  BlockSums<T> out;
// Mask registers are counted by the scalar unit; where a mask is a vector, subtracting it is free.
#if HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE
#define TOCSIN_COUNT(counter, mask) counter += hn::CountTrue(d, mask)
  std::size_t zeros = 0;
  std::size_t negatives = 0;
#else
#define TOCSIN_COUNT(counter, mask) \
  counter = hn::Sub(counter, hn::BitCast(di, hn::VecFromMask(d, mask)))
  const hn::RebindToSigned<D> di;
  auto zeros = hn::Zero(di);
  auto negatives = hn::Zero(di);
#endif

  std::size_t i = 0;
  while (i + 2 * lanes <= n) {
    const std::size_t end = std::min(n, i + 2 * lanes * kChain);
    V s = none;
    V m = none;
    V q0 = none;
    V q1 = none;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      // 4 KiB ahead: the hardware's prefetcher stops at page ends, and from DRAM that costs a
      // third. Beyond the array it is harmless, a prefetch never faults.
      hwy::Prefetch(p + i + 4096 / sizeof(typename Source::Raw));
      hwy::Prefetch(p + i + lanes + 4096 / sizeof(typename Source::Raw));
      V a;
      V b;
      Source::load2(d, p + i, a, b);
      TOCSIN_COUNT(zeros, hn::Eq(a, none));
      TOCSIN_COUNT(zeros, hn::Eq(b, none));
      TOCSIN_COUNT(negatives, hn::Lt(a, none));
      TOCSIN_COUNT(negatives, hn::Lt(b, none));
      lo = hn::Min(lo, hn::Min(a, b));
      hi = hn::Max(hi, hn::Max(a, b));
      m = hn::Add(m, hn::Add(hn::Abs(a), hn::Abs(b)));
      const V da = hn::Sub(a, k);
      const V db = hn::Sub(b, k);
      s = hn::Add(s, hn::Add(da, db));
      q0 = hn::MulAdd(da, da, q0);
      q1 = hn::MulAdd(db, db, q1);
    }
    sum = fold(dd, sum, d, s);
    sumsq = fold(dd, sumsq, d, hn::Add(q0, q1));
    magnitude = fold(dd, magnitude, d, m);
  }

  // The rest, padded with copies of the last element, whose sums are masked out.
  HWY_ALIGN T rest[2 * kMaxLanes];
  const std::size_t left = n - i;
  for (std::size_t j = 0; j < left; ++j) rest[j] = Source::get(p[i + j]);
  for (std::size_t j = left; j < 2 * lanes && left != 0; ++j) rest[j] = rest[left - 1];
  for (std::size_t j = 0; j < left; j += lanes) {
    const auto here = hn::FirstN(d, std::min(lanes, left - j));
    const V a = hn::LoadU(d, rest + j);
    TOCSIN_COUNT(zeros, hn::And(here, hn::Eq(a, none)));
    TOCSIN_COUNT(negatives, hn::And(here, hn::Lt(a, none)));
    lo = hn::Min(lo, a);
    hi = hn::Max(hi, a);
    const V da = hn::IfThenElseZero(here, hn::Sub(a, k));
    sum = fold(dd, sum, d, da);
    sumsq = fold(dd, sumsq, d, hn::Mul(da, da));
    magnitude = fold(dd, magnitude, d, hn::IfThenElseZero(here, hn::Abs(a)));
  }
#undef TOCSIN_COUNT
#if HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE
  out.zero = zeros;
  out.negative = negatives;
#else
  out.zero = static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(di, zeros)));
  out.negative = static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(di, negatives)));
#endif
  out.d = hn::GetLane(hn::SumOfLanes(dd, sum));
  out.d2 = hn::GetLane(hn::SumOfLanes(dd, sumsq));
  out.abs = hn::GetLane(hn::SumOfLanes(dd, magnitude));
  // Plus 0: the least of 0 and -0 is 0.
  out.min = least(d, lo) + T{0};
  out.max = most(d, hi) + T{0};
  return out;
}

// The block in binary64, in any order, padded for careful_block.
template <class Source>
HWY_NOINLINE void widen_block(const typename Source::Raw* HWY_RESTRICT p, std::size_t n,
                              double* HWY_RESTRICT to) {
  using T = typename Source::Lane;
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN T pair[2 * kMaxLanes];
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    hn::Vec<decltype(d)> a;
    hn::Vec<decltype(d)> b;
    Source::load2(d, p + i, a, b);
    hn::Store(a, d, pair);
    hn::Store(b, d, pair + lanes);
    for (std::size_t j = 0; j < 2 * lanes; ++j) to[i + j] = static_cast<double>(pair[j]);
  }
  for (; i < n; ++i) to[i] = static_cast<double>(Source::get(p[i]));
  std::fill_n(to + n, HWY_MAX_BYTES / sizeof(double), 0.0);
}

// Any values, in binary64, `n` ≤ kBlock: non-finite ones propagate and are counted.
inline HWY_NOINLINE Moments careful_block(const double* HWY_RESTRICT x, std::size_t n) {
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d);
  const V none = hn::Zero(d);
  const V top = hn::Set(d, std::numeric_limits<double>::infinity());
  const V bottom = hn::Neg(top);
  V lo = top;
  V hi = bottom;
  V sum = none;
  V sumsq = none;
  V magnitude = none;
  Moments out;
  out.count = n;
  for (std::size_t i = 0; i < n; i += lanes) {
    const auto here = hn::FirstN(d, std::min(lanes, n - i));
    const V a = hn::IfThenElseZero(here, hn::LoadU(d, x + i));  // the buffer is padded
    const auto number = hn::And(here, hn::Eq(a, a));
    out.nan += hn::CountTrue(d, hn::AndNot(number, here));
    out.posinf += hn::CountTrue(d, hn::And(here, hn::Eq(a, top)));
    out.neginf += hn::CountTrue(d, hn::And(here, hn::Eq(a, bottom)));
    out.zero += hn::CountTrue(d, hn::And(here, hn::Eq(a, none)));
    out.negative += hn::CountTrue(d, hn::And(here, hn::Lt(a, none)));
    lo = hn::Min(lo, hn::IfThenElse(number, a, top));
    hi = hn::Max(hi, hn::IfThenElse(number, a, bottom));
    sum = hn::Add(sum, a);
    sumsq = hn::MulAdd(a, a, sumsq);
    magnitude = hn::Add(magnitude, hn::Abs(a));
  }
  out.sum = hn::GetLane(hn::SumOfLanes(d, sum));
  out.sumsq = hn::GetLane(hn::SumOfLanes(d, sumsq));
  out.abs_sum = hn::GetLane(hn::SumOfLanes(d, magnitude));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  out.min = out.nan != 0 ? kNan : least(d, lo);
  out.max = out.nan != 0 ? kNan : most(d, hi);
  if (!out.finite()) {
    out.m2 = kNan;
    return out;
  }
  const V mean = hn::Set(d, out.sum / static_cast<double>(n));
  V squares = none;
  for (std::size_t i = 0; i < n; i += lanes) {
    const auto here = hn::FirstN(d, std::min(lanes, n - i));
    const V a = hn::IfThenElseZero(here, hn::Sub(hn::LoadU(d, x + i), mean));
    squares = hn::MulAdd(a, a, squares);
  }
  out.m2 = hn::GetLane(hn::SumOfLanes(d, squares));
  return out;
}

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
