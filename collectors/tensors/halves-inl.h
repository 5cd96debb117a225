// fast_block for binary16 and bfloat16. Zeros, negatives, the least and the largest are found on the bit patterns, of which a
// vector holds twice as many as of widened lanes: a block has twice the elements of one of binary32 for the same bytes, and
// must not take twice as long. Compiled once per instruction set, so the guard is Highway's and not #pragma once.
#if defined(TOCSIN_COLLECTORS_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TOCSIN_COLLECTORS_HALVES_INL_H_
#undef TOCSIN_COLLECTORS_HALVES_INL_H_
#else
#define TOCSIN_COLLECTORS_HALVES_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectors/tensors/blocks-inl.h"
#include "collectors/tensors/sources-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {

// What the patterns of a block say: the largest and the least as unsigned numbers, the largest as
// signed ones.
struct Patterns {
  static constexpr std::uint16_t kSign = 0x8000;

  std::uint16_t top = 0;
  std::uint16_t bottom = 0xFFFF;
  std::int16_t top_signed = INT16_MIN;

  void add(std::uint16_t bits) {
    top = std::max(top, bits);
    bottom = std::min(bottom, bits);
    top_signed = std::max(top_signed, static_cast<std::int16_t>(bits));
  }
  // A sign makes a pattern large, and the larger the magnitude the larger it is: with a negative
  // number among them the largest pattern is the least number, without one the least pattern is.
  [[nodiscard]] std::uint16_t least() const { return (top & kSign) != 0 ? top : bottom; }
  [[nodiscard]] std::uint16_t largest() const {
    return top_signed >= 0 ? static_cast<std::uint16_t>(top_signed) : bottom;
  }
};

// kCentred: `shift` is 0.
template <class Source, bool kCentred>
HWY_NOINLINE BlockSums<float> half_block(const std::uint16_t* HWY_RESTRICT p, std::size_t n,
                                         float shift) {
#if HWY_TARGET == HWY_SCALAR
  return fast_block<Source>(p, n, shift);
#else
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const Wide<decltype(d)> dd;
  const hn::Repartition<std::uint16_t, decltype(d)> d16;
  const hn::RebindToSigned<decltype(d16)> ds;
  const std::size_t lanes = hn::Lanes(d);
  const V k = hn::Set(d, shift);
  const V none = hn::Zero(d);
  const auto magnitude_bits = hn::Set(d16, static_cast<std::uint16_t>(~Patterns::kSign));
  const auto minus_zero = hn::Set(d16, Patterns::kSign);
  auto top = hn::Set(d16, p[0]);
  auto bottom = top;
  auto top_signed = hn::BitCast(ds, top);
  auto sum = hn::Zero(dd);
  auto sumsq = hn::Zero(dd);
  auto magnitude = hn::Zero(dd);
// As in fast_block; a counter has at most kBlock / 8 in a lane.
#if HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE
#define TOCSIN_COUNT(counter, mask) counter += hn::CountTrue(d16, mask)
  std::size_t zeros = 0;
  std::size_t negatives = 0;
#else
#define TOCSIN_COUNT(counter, mask) \
  counter = hn::Sub(counter, hn::BitCast(ds, hn::VecFromMask(d16, mask)))
  auto zeros = hn::Zero(ds);
  auto negatives = hn::Zero(ds);
#endif

  std::size_t i = 0;
  while (i + 2 * lanes <= n) {
    const std::size_t end = std::min(n, i + 2 * lanes * kChain);
    V s = none;
    V m = none;
    V q0 = none;
    V q1 = none;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      hwy::Prefetch(p + i + 4096 / sizeof(std::uint16_t));  // as in fast_block
      const auto bits = hn::LoadU(d16, p + i);
      TOCSIN_COUNT(zeros, hn::Eq(hn::And(bits, magnitude_bits), hn::Zero(d16)));
      TOCSIN_COUNT(negatives, hn::Gt(bits, minus_zero));
      top = hn::Max(top, bits);
      bottom = hn::Min(bottom, bits);
      top_signed = hn::Max(top_signed, hn::BitCast(ds, bits));
      V a;
      V b;
      Source::load2(d, p + i, a, b);
      m = hn::Add(m, hn::Add(hn::Abs(a), hn::Abs(b)));
      const V da = kCentred ? a : hn::Sub(a, k);
      const V db = kCentred ? b : hn::Sub(b, k);
      s = hn::Add(s, hn::Add(da, db));
      q0 = hn::MulAdd(da, da, q0);
      q1 = hn::MulAdd(db, db, q1);
    }
    sum = fold(dd, sum, d, s);
    sumsq = fold(dd, sumsq, d, hn::Add(q0, q1));
    magnitude = fold(dd, magnitude, d, m);
  }
#undef TOCSIN_COUNT
  BlockSums<float> out;
#if HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE
  out.zero = zeros;
  out.negative = negatives;
#else
  // 16 bits do not hold the sum of the lanes.
  HWY_ALIGN std::int16_t counts[2][2 * kMaxLanes];
  hn::Store(zeros, ds, counts[0]);
  hn::Store(negatives, ds, counts[1]);
  for (std::size_t j = 0; j < 2 * lanes; ++j) {
    out.zero += static_cast<std::uint64_t>(counts[0][j]);
    out.negative += static_cast<std::uint64_t>(counts[1][j]);
  }
#endif
  out.d = hn::GetLane(hn::SumOfLanes(dd, sum));
  out.d2 = hn::GetLane(hn::SumOfLanes(dd, sumsq));
  out.abs = hn::GetLane(hn::SumOfLanes(dd, magnitude));
  HWY_ALIGN std::uint16_t tops[2 * kMaxLanes];
  HWY_ALIGN std::uint16_t bottoms[2 * kMaxLanes];
  HWY_ALIGN std::int16_t signed_tops[2 * kMaxLanes];
  hn::Store(top, d16, tops);
  hn::Store(bottom, d16, bottoms);
  hn::Store(top_signed, ds, signed_tops);
  Patterns found;
  for (std::size_t j = 0; j < 2 * lanes; ++j) {
    found.top = std::max(found.top, tops[j]);
    found.bottom = std::min(found.bottom, bottoms[j]);
    found.top_signed = std::max(found.top_signed, signed_tops[j]);
  }
  for (; i < n; ++i) {
    const double x = Source::get(p[i]);
    const double apart = x - static_cast<double>(shift);
    out.zero += (p[i] & 0x7FFF) == 0 ? 1 : 0;
    out.negative += p[i] > Patterns::kSign ? 1 : 0;
    out.d += apart;
    out.d2 += apart * apart;
    out.abs += x < 0 ? -x : x;
    found.add(p[i]);
  }
  // Plus 0: the least of 0 and -0 is 0.
  out.min = Source::get(found.least()) + 0.0F;
  out.max = Source::get(found.largest()) + 0.0F;
  return out;
#endif
}

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
