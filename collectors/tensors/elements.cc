#include "collectors/tensors/elements.h"

#include <cstring>

#include "collectors/tensors/number_formats.h"

namespace tocsin::collectors {
namespace {

// Elements of type T at any address, as binary64.
template <typename T, typename Value>
void convert(const std::byte* from, std::size_t n, Value value, double* to) {
  for (std::size_t i = 0; i < n; ++i) {
    T element;
    std::memcpy(&element, from + i * sizeof(T), sizeof(T));
    to[i] = value(element);
  }
}

}  // namespace

void widen(core::Dtype dtype, const std::byte* from, std::size_t n, double* to) {
  using core::Dtype;
  const auto plain = [](auto x) { return static_cast<double>(x); };
  switch (dtype) {
    case Dtype::f32:
    case Dtype::c64:
      return convert<float>(from, n, plain, to);
    case Dtype::f64:
    case Dtype::c128:
      return convert<double>(from, n, plain, to);
    case Dtype::f16:
      return convert<std::uint16_t>(from, n, from_f16, to);
    case Dtype::bf16:
      return convert<std::uint16_t>(from, n, from_bf16, to);
    case Dtype::f8_e4m3:
      return convert<std::uint8_t>(from, n, from_f8_e4m3, to);
    case Dtype::f8_e5m2:
      return convert<std::uint8_t>(from, n, from_f8_e5m2, to);
    case Dtype::i8:
      return convert<std::int8_t>(from, n, plain, to);
    case Dtype::i16:
      return convert<std::int16_t>(from, n, plain, to);
    case Dtype::i32:
      return convert<std::int32_t>(from, n, plain, to);
    case Dtype::i64:
      return convert<std::int64_t>(from, n, plain, to);
    case Dtype::u8:
      return convert<std::uint8_t>(from, n, plain, to);
    case Dtype::u16:
      return convert<std::uint16_t>(from, n, plain, to);
    case Dtype::u32:
      return convert<std::uint32_t>(from, n, plain, to);
    case Dtype::u64:
      return convert<std::uint64_t>(from, n, plain, to);
    case Dtype::boolean:
      return convert<std::uint8_t>(
          from, n, [](std::uint8_t x) { return static_cast<double>(x != 0); }, to);
    case Dtype::unknown:
    case Dtype::text:
      return;
  }
}

}  // namespace tocsin::collectors
