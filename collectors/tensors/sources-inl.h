// How each element type gets into lanes. Compiled once per instruction set, so the guard is
// Highway's and not #pragma once.
#if defined(TOCSIN_COLLECTORS_SOURCES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TOCSIN_COLLECTORS_SOURCES_INL_H_
#undef TOCSIN_COLLECTORS_SOURCES_INL_H_
#else
#define TOCSIN_COLLECTORS_SOURCES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "collectors/tensors/number_formats.h"

HWY_BEFORE_NAMESPACE();
namespace tocsin::collectors::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A source names the stored type Raw and the lane type Lane, widens one element (get) and loads two
// vectors (load2) of consecutive elements, in any order among themselves: statistics do not care.
// kHalf: Raw is a sign and a magnitude in 16 bits.
template <typename T>
struct PlainSource {
  using Raw = T;
  using Lane = T;
  static constexpr bool kHalf = false;
  static HWY_INLINE T get(T value) { return value; }
  template <class D, class V>
  static HWY_INLINE void load2(D d, const T* p, V& a, V& b) {
    a = hn::LoadU(d, p);
    b = hn::LoadU(d, p + hn::Lanes(d));
  }
};
using F32Source = PlainSource<float>;
using F64Source = PlainSource<double>;

struct Bf16Source {
  using Raw = std::uint16_t;
  using Lane = float;
  static constexpr bool kHalf = true;
  static HWY_INLINE float get(Raw bits) { return from_bf16(bits); }
  template <class D, class V>
  static HWY_INLINE void load2(D d, const Raw* p, V& a, V& b) {
#if HWY_TARGET == HWY_SCALAR
    a = hn::Set(d, get(p[0]));
    b = hn::Set(d, get(p[1]));
#else
    // One load, two operations: odd elements are already in place, even ones move up.
    const hn::Repartition<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto both = hn::BitCast(d32, hn::LoadU(d16, p));
    a = hn::BitCast(d, hn::ShiftLeft<16>(both));
    b = hn::BitCast(d, hn::And(both, hn::Set(d32, 0xFFFF0000U)));
#endif
  }
};

struct F16Source {
  using Raw = std::uint16_t;
  using Lane = float;
  static constexpr bool kHalf = true;
  static HWY_INLINE float get(Raw bits) { return from_f16(bits); }
  // Highway's emulation (1.0.3, before AVX2) reads infinities and NaN as numbers, so it is done
  // here: shifted into place the pattern is 2⁻¹¹² times the number, denormals included.
  template <class D>
  static HWY_INLINE hn::Vec<D> emulated(D d, const Raw* p) {
    const hn::Rebind<Raw, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, p));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d32, 0x8000U)));
    const auto rest = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d32, 0x7FFFU)));
    const auto number = hn::Mul(hn::BitCast(d, rest), hn::Set(d, 0x1p112F));
    const auto special = hn::BitCast(d, hn::Or(rest, hn::Set(d32, 0x7F800000U)));
    const auto ordinary = hn::Lt(hn::BitCast(d, rest), hn::Set(d, 0x1p-96F));
    return hn::Or(hn::IfThenElse(ordinary, number, special), hn::BitCast(d, sign));
  }
  template <class D, class V>
  static HWY_INLINE void load2(D d, const Raw* p, V& a, V& b) {
#if HWY_TARGET == HWY_SCALAR
    a = hn::Set(d, get(p[0]));
    b = hn::Set(d, get(p[1]));
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2
    a = emulated(d, p);
    b = emulated(d, p + hn::Lanes(d));
#else
    const hn::Rebind<std::uint16_t, D> du;
    const hn::Rebind<hwy::float16_t, D> d16;
    a = hn::PromoteTo(d, hn::BitCast(d16, hn::LoadU(du, p)));
    b = hn::PromoteTo(d, hn::BitCast(d16, hn::LoadU(du, p + hn::Lanes(d))));
#endif
  }
};

// 16-bit integers are exact in binary32.
template <typename T>
struct ShortSource {
  using Raw = T;
  using Lane = float;
  static constexpr bool kHalf = false;
  static HWY_INLINE float get(Raw value) { return static_cast<float>(value); }
  template <class D, class V>
  static HWY_INLINE void load2(D d, const Raw* p, V& a, V& b) {
    const hn::Rebind<T, D> d16;
    const hn::RebindToSigned<D> d32;
    a = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d16, p)));
    b = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d16, p + hn::Lanes(d))));
  }
};

}  // namespace tocsin::collectors::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
