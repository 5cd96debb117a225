// One pass over two arrays: Σ (now − prev)², Σ prev² and max |now − prev|, blocked as in
// reduce_kernel.cc. A block with a non-finite or vanishing sum is done again in binary64.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "collectors/tensors/reduce_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collectors/tensors/delta_kernel.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After foreach_target.h, as Highway asks.
#include "collectors/tensors/sources-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {

using kernel::DeltaSums;

constexpr std::size_t kDeltaChain = 32;

// Elements [0, n) one by one in binary64; NaN wins in the maximum.
template <class Source>
HWY_NOINLINE void delta_each(const typename Source::Raw* now, const typename Source::Raw* prev,
                             std::size_t n, DeltaSums& out) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto b = static_cast<double>(Source::get(prev[i]));
    const double apart = static_cast<double>(Source::get(now[i])) - b;
    const double size = std::fabs(apart);
    out.delta_sq += apart * apart;
    out.prev_sq += b * b;
    if (size > out.delta_max || apart != apart) out.delta_max = size;  // nothing is > NaN: it stays
  }
}

HWY_INLINE bool in_range(double sum, bool zero_is_fine) {
  return sum < std::numeric_limits<double>::infinity() && (sum > 1e-33 || zero_is_fine);
}

// 2·lanes·kDeltaChain elements per round; false if the round must be done again in binary64.
template <class Source, class D>
HWY_INLINE bool delta_round(D d, const typename Source::Raw* HWY_RESTRICT now,
                            const typename Source::Raw* HWY_RESTRICT prev, DeltaSums& out) {
  using V = hn::Vec<D>;
  using T = hn::TFromD<D>;
  const std::size_t lanes = hn::Lanes(d);
  V apart0 = hn::Zero(d);
  V apart1 = hn::Zero(d);
  V before0 = hn::Zero(d);
  V before1 = hn::Zero(d);
  V most = hn::Zero(d);
  for (std::size_t i = 0; i < 2 * lanes * kDeltaChain; i += 2 * lanes) {
    V a0;
    V a1;
    V b0;
    V b1;
    // As in blocks-inl.h. What was stored is cold: it was last used at the capture before.
    constexpr std::size_t kAhead = 4096 / sizeof(typename Source::Raw);
    hwy::Prefetch(prev + i + kAhead);
    hwy::Prefetch(prev + i + lanes + kAhead);
    Source::load2(d, now + i, a0, a1);
    Source::load2(d, prev + i, b0, b1);
    const V d0 = hn::Sub(a0, b0);
    const V d1 = hn::Sub(a1, b1);
    apart0 = hn::MulAdd(d0, d0, apart0);
    apart1 = hn::MulAdd(d1, d1, apart1);
    before0 = hn::MulAdd(b0, b0, before0);
    before1 = hn::MulAdd(b1, b1, before1);
    most = hn::Max(most, hn::Max(hn::Abs(d0), hn::Abs(d1)));
  }
  const auto sq = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(apart0, apart1))));
  const auto before =
      static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(before0, before1))));
  const auto max = static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, most)));
  if (sizeof(T) == 4 && (!in_range(sq, max == 0) || !in_range(before, false))) return false;
  if (sq != sq || before != before) return false;
  out.delta_sq += sq;
  out.prev_sq += before;
  if (max > out.delta_max) out.delta_max = max;
  return true;
}

template <class Source>
HWY_INLINE void delta_all(const typename Source::Raw* now, const typename Source::Raw* prev,
                          std::size_t count, DeltaSums& out) {
  const hn::ScalableTag<typename Source::Lane> d;
  const std::size_t round = 2 * hn::Lanes(d) * kDeltaChain;
  std::size_t i = 0;
  for (; i + round <= count; i += round) {
    if (!delta_round<Source>(d, now + i, prev + i, out)) {
      delta_each<Source>(now + i, prev + i, round, out);
    }
  }
  delta_each<Source>(now + i, prev + i, count - i, out);
}

void DeltaF32(const float* a, const float* b, std::size_t n, DeltaSums& out) {
  delta_all<F32Source>(a, b, n, out);
}
void DeltaF64(const double* a, const double* b, std::size_t n, DeltaSums& out) {
  delta_all<F64Source>(a, b, n, out);
}
void DeltaF16(const std::uint16_t* a, const std::uint16_t* b, std::size_t n, DeltaSums& out) {
  delta_all<F16Source>(a, b, n, out);
}
void DeltaBf16(const std::uint16_t* a, const std::uint16_t* b, std::size_t n, DeltaSums& out) {
  delta_all<Bf16Source>(a, b, n, out);
}

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tocsin::collectors {

HWY_EXPORT(DeltaF32);
HWY_EXPORT(DeltaF64);
HWY_EXPORT(DeltaF16);
HWY_EXPORT(DeltaBf16);

namespace kernel {

void delta_f32(const float* a, const float* b, std::size_t n, DeltaSums& out) noexcept {
  HWY_DYNAMIC_DISPATCH(DeltaF32)(a, b, n, out);
}
void delta_f64(const double* a, const double* b, std::size_t n, DeltaSums& out) noexcept {
  HWY_DYNAMIC_DISPATCH(DeltaF64)(a, b, n, out);
}
void delta_f16(const std::uint16_t* a, const std::uint16_t* b, std::size_t n,
               DeltaSums& out) noexcept {
  HWY_DYNAMIC_DISPATCH(DeltaF16)(a, b, n, out);
}
void delta_bf16(const std::uint16_t* a, const std::uint16_t* b, std::size_t n,
                DeltaSums& out) noexcept {
  HWY_DYNAMIC_DISPATCH(DeltaBf16)(a, b, n, out);
}

}  // namespace kernel
}  // namespace tocsin::collectors
#endif  // HWY_ONCE
