// Where the first NaN or infinity of a tensor stands: sent by itself, where there is one.
#include <cstring>

#include "collectors/tensors/statistics/statistic.h"

namespace tocsin::collectors {
namespace {

using core::Dtype;

template <typename Bits>
std::int64_t first_with_exponent(const void* data, std::uint64_t count, Bits mask) {
  const auto* bytes = static_cast<const std::byte*>(data);
  for (std::uint64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
    if ((bits & mask) == mask) return static_cast<std::int64_t>(i);
  }
  return -1;
}

std::int64_t find(Dtype dtype, const void* data, std::uint64_t count) {
  switch (dtype) {
    case Dtype::f32:
      return first_with_exponent<std::uint32_t>(data, count, 0x7f800000U);
    case Dtype::f64:
      return first_with_exponent<std::uint64_t>(data, count, 0x7ff0000000000000ULL);
    case Dtype::f16:
      return first_with_exponent<std::uint16_t>(data, count, std::uint16_t{0x7c00});
    case Dtype::bf16:
      return first_with_exponent<std::uint16_t>(data, count, std::uint16_t{0x7f80});
    default:
      return -1;
  }
}

class FirstBadIndex final : public TensorStatistic {
 public:
  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (sample.row.non_finite() == 0 || !sample.row_major) return;
    const std::int64_t index = find(sample.dtype, sample.data, sample.count);
    if (index >= 0) out.number(core::SparseStat::first_bad_index, static_cast<double>(index));
  }
};

}  // namespace

StatisticDescriptor first_bad_index() {
  return {.request = {},
          .gives = {"first_bad_index"},
          .in_order = true,
          .make = [](const StatisticLimits&, std::span<const double>)
              -> std::unique_ptr<TensorStatistic> { return std::make_unique<FirstBadIndex>(); }};
}

}  // namespace tocsin::collectors
