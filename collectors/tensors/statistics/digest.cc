// Whether two tensors are the same: a 64-bit hash of type, shape and values, in row-major order.
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;

/// The patterns of a floating-point type: all but the sign, infinity, and the NaN that stands for
/// all of them.
template <typename Bits>
struct Format {
  Bits magnitude;
  Bits infinity;
  Bits nan;
};

class Hash {
 public:
  Hash() : state_(XXH64_createState()) { XXH64_reset(state_, 0); }
  ~Hash() { XXH64_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void add(const void* data, std::size_t bytes) { XXH64_update(state_, data, bytes); }
  [[nodiscard]] std::uint64_t value() const { return XXH64_digest(state_); }

  /// −0 as +0, every NaN as one: values that compare alike hash alike.
  template <typename Bits>
  void add_floats(const std::byte* from, std::uint64_t count, Format<Bits> format) {
    std::array<Bits, 4096 / sizeof(Bits)> block;
    while (count != 0) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(count, block.size()));
      std::memcpy(block.data(), from, n * sizeof(Bits));
      for (std::size_t i = 0; i < n; ++i) {
        const auto magnitude = static_cast<Bits>(block[i] & format.magnitude);
        const Bits kept = magnitude == 0 ? Bits{0} : block[i];
        block[i] = magnitude > format.infinity ? format.nan : kept;
      }
      add(block.data(), n * sizeof(Bits));
      from += n * sizeof(Bits);
      count -= n;
    }
  }

  void add_booleans(const std::byte* from, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint8_t one = from[i] == std::byte{0} ? 0 : 1;
      add(&one, 1);
    }
  }

 private:
  XXH64_state_t* state_;
};

void add_values(Hash& hash, Dtype dtype, const std::byte* from, std::uint64_t count) {
  switch (dtype) {
    case Dtype::f32:
      return hash.add_floats<std::uint32_t>(from, count, {0x7fffffff, 0x7f800000, 0x7fc00000});
    case Dtype::c64:
      return hash.add_floats<std::uint32_t>(from, 2 * count, {0x7fffffff, 0x7f800000, 0x7fc00000});
    case Dtype::f64:
    case Dtype::c128:
      return hash.add_floats<std::uint64_t>(
          from, dtype == Dtype::f64 ? count : 2 * count,
          {0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000});
    case Dtype::f16:
      return hash.add_floats<std::uint16_t>(from, count, {0x7fff, 0x7c00, 0x7e00});
    case Dtype::bf16:
      return hash.add_floats<std::uint16_t>(from, count, {0x7fff, 0x7f80, 0x7fc0});
    case Dtype::f8_e4m3:  // no infinity: the last pattern alone is NaN
      return hash.add_floats<std::uint8_t>(from, count, {0x7f, 0x7e, 0x7f});
    case Dtype::f8_e5m2:
      return hash.add_floats<std::uint8_t>(from, count, {0x7f, 0x7c, 0x7e});
    case Dtype::boolean:
      return hash.add_booleans(from, count);
    default:
      return hash.add(from, count * core::size_of(dtype));
  }
}

class Digest final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (!sample.row_major || core::size_of(sample.dtype) == 0) return;
    Hash hash;
    const std::array<std::uint8_t, 2> head{static_cast<std::uint8_t>(sample.dtype),
                                           static_cast<std::uint8_t>(sample.shape.size())};
    hash.add(head.data(), head.size());
    hash.add(sample.shape.data(), sample.shape.size_bytes());
    add_values(hash, sample.dtype, static_cast<const std::byte*>(sample.data), sample.count);
    out.bits(core::SparseStat::digest, hash.value(), {});
  }
};

}  // namespace

StatisticDescriptor digest() {
  return {.request = "digest",
          .gives = {"digest"},
          .in_order = true,
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<Digest>(); }};
}

}  // namespace tocsin::collectors
