// One pass over contiguous elements: the canonical statistics at the speed of memory.
//
// Blocks of at most 4096 elements. Each is first read on a path that assumes finite values: lanes
// of the source's width (binary32 for everything up to 16 bits wide, else binary64) collect Σd, Σd²
// with d = x − shift, Σ|x|, min, max and the counts of zeros and negatives; chains of at most 33
// additions are folded to binary64. So eight accumulators are live, which fits the 16 registers of
// AVX2: with twelve the compiler spills, and the loop is 2.4 times slower.
//
// `shift` is near the mean of the block before, on a grid of half its standard deviation: then d is
// exact for small integers, and Σd² − (Σd)²/n loses nothing even where mean ≫ std. A block whose
// shift proves bad (more than one standard deviation off, or larger than its mean magnitude) is
// read again with its own mean; a block that is not finite, or whose squares left the range of
// binary32, is done again in binary64 with masks.
#include "collectors/reduce_kernel.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectors/reduce_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After foreach_target.h, as Highway asks.
#include "collectors/sources-inl.h"

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
  out.min = least(d, lo);
  out.max = most(d, hi);
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
HWY_NOINLINE Moments careful_block(const double* HWY_RESTRICT x, std::size_t n) {
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

// `mean` on the grid of half the power of two below sqrt(variance): short enough that differences
// from it are exact where the elements are short, and never a quarter of a deviation off.
HWY_INLINE double near_mean(double mean, double variance) {
  const auto exponent =
      static_cast<int>((std::bit_cast<std::uint64_t>(variance) >> 52) & 0x7FF) - 1023;
  if (!(variance > 0) || exponent < -900 || exponent > 900) return mean;
  const int step = (exponent >> 1) - 1;
  // Adding and taking away 1.5·2⁵²·step rounds to a multiple of the step.
  const double magic =
      1.5 * std::bit_cast<double>(static_cast<std::uint64_t>(step + 52 + 1023) << 52);
  return std::fabs(mean) * 4 < magic ? (mean + magic) - magic : mean;
}

// A first guess at the mean and deviation: about 16 elements spread over the block, an odd number
// apart, since matrices have columns that differ and rows of a power of two.
template <class Source>
HWY_NOINLINE typename Source::Lane sampled_shift(const typename Source::Raw* p, std::size_t n) {
  const std::size_t step = (n / 16) | 1;
  double sum = 0;
  double sumsq = 0;
  double taken = 0;
  for (std::size_t i = 0; i < n; i += step) {
    const auto x = static_cast<double>(Source::get(p[i]));
    sum += x;
    sumsq += x * x;
    taken += 1;
  }
  const double mean = sum / taken;
  if (!finite(mean) || !finite(sumsq)) return 0;
  return static_cast<typename Source::Lane>(near_mean(mean, sumsq / taken - mean * mean));
}

template <class Source>
struct Walk {
  using Raw = typename Source::Raw;
  using T = typename Source::Lane;
  T shift = 0;
  bool sample = true;   // the next block's shift comes from a sample of itself
  bool broken = false;  // the last block was not finite: the next one hardly is

  enum class Verdict { good, bad_shift, careful };

  static Verdict judge(const BlockSums<T>& s, std::size_t n, T shift, double m2) {
    if (!finite(s.abs) || !finite(s.d2)) return Verdict::careful;
    const bool constant = s.min == s.max;
    // Squares below 2⁻¹²⁶ lose bits; 4096 of them at most 2⁻¹³⁷ together.
    if (sizeof(T) == 4 && s.d2 < 1e-33 && !constant) return Verdict::careful;
    const double offset = std::fabs(static_cast<double>(shift)) * static_cast<double>(n);
    return s.d2 > 2 * m2 || offset > 1.125 * s.abs ? Verdict::bad_shift : Verdict::good;
  }

  void block(const Raw* p, std::size_t n, Moments& out) {
    const auto count = static_cast<double>(n);
    if (sample && !broken) shift = sampled_shift<Source>(p, n);
    for (int attempt = 0; attempt < 2 && !broken; ++attempt) {
      const BlockSums<T> s = fast_block<Source>(p, n, shift);
      const auto k = static_cast<double>(shift);
      const double offset = s.d / count;
      const double m2 = std::max(0.0, s.d2 - s.d * offset);
      const Verdict verdict = judge(s, n, shift, m2);
      if (verdict == Verdict::careful) break;
      const double mean = k + offset;
      if (verdict == Verdict::bad_shift) {
        sample = true;  // what the next block will look like is anybody's guess
        shift = s.min == s.max ? s.min : static_cast<T>(near_mean(mean, m2 / count));
        continue;
      }
      sample = attempt != 0;
      shift = static_cast<T>(near_mean(mean, m2 / count));
      Moments part;
      part.count = n;
      part.sum = s.d + count * k;
      part.sumsq = s.d2 + k * (2 * s.d + count * k);
      part.m2 = m2;
      part.abs_sum = s.abs;
      part.min = static_cast<double>(s.min);
      part.max = static_cast<double>(s.max);
      part.zero = s.zero;
      part.negative = s.negative;
      out.merge(part);
      return;
    }
    sample = true;
    HWY_ALIGN double widened[kBlock + HWY_MAX_BYTES / sizeof(double)];
    widen_block<Source>(p, n, widened);
    const Moments part = careful_block(widened, n);
    broken = !part.finite();
    out.merge(part);
  }

  void all(const Raw* p, std::size_t count, Moments& out) {
    for (std::size_t i = 0; i < count; i += kBlock) block(p + i, std::min(kBlock, count - i), out);
  }
};

#define TOCSIN_REDUCE(name, Source, Raw)                        \
  void name(const Raw* data, std::size_t count, Moments& out) { \
    Walk<Source>().all(data, count, out);                       \
  }
TOCSIN_REDUCE(ReduceF32, F32Source, float)
TOCSIN_REDUCE(ReduceF64, F64Source, double)
TOCSIN_REDUCE(ReduceF16, F16Source, std::uint16_t)
TOCSIN_REDUCE(ReduceBf16, Bf16Source, std::uint16_t)
TOCSIN_REDUCE(ReduceI16, ShortSource<std::int16_t>, std::int16_t)
TOCSIN_REDUCE(ReduceU16, ShortSource<std::uint16_t>, std::uint16_t)
#undef TOCSIN_REDUCE

const char* ThisTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tocsin::collectors {

HWY_EXPORT(ReduceF32);
HWY_EXPORT(ReduceF64);
HWY_EXPORT(ReduceF16);
HWY_EXPORT(ReduceBf16);
HWY_EXPORT(ReduceI16);
HWY_EXPORT(ReduceU16);
HWY_EXPORT(ThisTarget);

namespace kernel {

void reduce_f32(const float* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceF32)(data, count, out);
}
void reduce_f64(const double* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceF64)(data, count, out);
}
void reduce_f16(const std::uint16_t* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceF16)(data, count, out);
}
void reduce_bf16(const std::uint16_t* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceBf16)(data, count, out);
}
void reduce_i16(const std::int16_t* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceI16)(data, count, out);
}
void reduce_u16(const std::uint16_t* data, std::size_t count, Moments& out) noexcept {
  HWY_DYNAMIC_DISPATCH(ReduceU16)(data, count, out);
}

}  // namespace kernel

const char* reduce_target() noexcept { return HWY_DYNAMIC_DISPATCH(ThisTarget)(); }

std::vector<std::int64_t> reduce_targets() { return hwy::SupportedAndGeneratedTargets(); }

std::string reduce_target_name(std::int64_t target) { return hwy::TargetName(target); }

void force_reduce_target(std::int64_t target) noexcept {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace tocsin::collectors
#endif  // HWY_ONCE
