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
#include "collectors/tensors/reduce_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectors/tensors/reduce_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After foreach_target.h, as Highway asks.
#include "collectors/tensors/blocks-inl.h"
#include "collectors/tensors/centred-inl.h"
#include "collectors/tensors/halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {

// `mean` on the grid of half the power of two below sqrt(variance): short enough that differences
// from it are exact where the elements are short, and never a quarter of a deviation off. 0 where that is
// no farther: it need not be subtracted.
HWY_INLINE double near_mean(double mean, double variance) {
  if (mean * mean * 16 <= variance) return 0;
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
  const double variance = sumsq / taken - mean * mean;
  // A mean of so few is a quarter of a deviation off as a rule.
  if (mean * mean * 4 <= variance) return 0;
  return static_cast<typename Source::Lane>(near_mean(mean, variance));
}

template <class Source>
HWY_INLINE BlockSums<typename Source::Lane> sums_of(const typename Source::Raw* p, std::size_t n,
                                                    typename Source::Lane shift) {
  if constexpr (Source::kHalf) {
    return shift == 0 ? half_block<Source, true>(p, n, 0) : half_block<Source, false>(p, n, shift);
  } else {
    if constexpr (std::is_same_v<Source, F32Source>) {
      if (shift == 0) return centred_block(p, n);
    }
    return fast_block<Source>(p, n, shift);
  }
}

template <class Source>
struct Walk {
  using Raw = typename Source::Raw;
  using T = typename Source::Lane;
  T shift = 0;
  bool sample = true;   // the next block's shift comes from a sample of itself
  bool broken = false;  // the last block was not finite: the next one hardly is

  enum class Fit { good, bad_shift, careful };

  // A block that was not clear is likely to be followed by others: each failure has twice as many of them read at once as
  // blocks that are not.
  std::uint32_t unclear = 0;
  std::uint32_t longer = 0;

  BlockSums<T> sums(const Raw* p, std::size_t n) {
#if TOCSIN_CLEAR_BLOCKS
    if constexpr (std::is_same_v<Source, F32Source>) {
      if (shift == 0 && unclear != 0) {
        --unclear;
      } else if (shift == 0) {
        BlockSums<T> s;
        const bool clear = clear_block(p, n, s);
        unclear = longer = clear ? 0 : std::min(2 * longer + 1, 63U);
        if (clear) return s;
      }
    }
#endif
    return sums_of<Source>(p, n, shift);
  }

  static Fit judge(const BlockSums<T>& s, std::size_t n, T shift, double m2) {
    if (!finite(s.abs) || !finite(s.d2)) return Fit::careful;
    const bool constant = s.min == s.max;
    // Squares below 2⁻¹²⁶ lose bits; 4096 of them at most 2⁻¹³⁷ together.
    if (sizeof(T) == 4 && s.d2 < 1e-33 && !constant) return Fit::careful;
    const double offset = std::fabs(static_cast<double>(shift)) * static_cast<double>(n);
    return s.d2 > 2 * m2 || offset > 1.125 * s.abs ? Fit::bad_shift : Fit::good;
  }

  void block(const Raw* p, std::size_t n, Moments& out) {
    const auto count = static_cast<double>(n);
    if (sample && !broken) shift = sampled_shift<Source>(p, n);
    for (int attempt = 0; attempt < 2 && !broken; ++attempt) {
      const BlockSums<T> s = sums(p, n);
      const auto k = static_cast<double>(shift);
      const double offset = s.d / count;
      const double m2 = std::max(0.0, s.d2 - s.d * offset);
      const Fit fit = judge(s, n, shift, m2);
      if (fit == Fit::careful) break;
      const double mean = k + offset;
      if (fit == Fit::bad_shift) {
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
