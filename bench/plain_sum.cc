// The yardstick of reduce_bench: a sum of binary32, unrolled eight times, with the same instruction
// set as the kernel. It does nothing but read.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/plain_sum.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace tocsin::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

float PlainSum(const float* p, std::size_t n) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d);
  auto s1 = s0;
  auto s2 = s0;
  auto s3 = s0;
  auto s4 = s0;
  auto s5 = s0;
  auto s6 = s0;
  auto s7 = s0;
  for (std::size_t i = 0; i + 8 * lanes <= n; i += 8 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, p + i));
    s1 = hn::Add(s1, hn::LoadU(d, p + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, p + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, p + i + 3 * lanes));
    s4 = hn::Add(s4, hn::LoadU(d, p + i + 4 * lanes));
    s5 = hn::Add(s5, hn::LoadU(d, p + i + 5 * lanes));
    s6 = hn::Add(s6, hn::LoadU(d, p + i + 6 * lanes));
    s7 = hn::Add(s7, hn::LoadU(d, p + i + 7 * lanes));
  }
  const auto low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const auto high = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
}

}  // namespace tocsin::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tocsin::bench {
HWY_EXPORT(PlainSum);
float plain_sum(const float* data, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(PlainSum)(data, count);
}
}  // namespace tocsin::bench
#endif
