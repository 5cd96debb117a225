// By how much the furthest element moved beyond what a relative tolerance allows: max (|x − y| − rtol·|x|), y the
// value captured before. At most atol: nothing has changed by more than atol + rtol·|x|.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "collectors/tensors/elements.h"
#include "collectors/tensors/float_environment.h"
#include "collectors/tensors/statistics/kept_values.h"

namespace tocsin::collectors {
namespace {

constexpr std::size_t kAtOnce = 512;

// Infinities agree with themselves. A NaN makes it NaN, which a reader takes for "not known".
double excess(double x, double y, double rtol) {
  if (x == y) return std::isinf(x) ? -HUGE_VAL : -rtol * std::fabs(x);
  if (std::isinf(x)) return HUGE_VAL;  // not ∞ − ∞
  return std::fabs(x - y) - rtol * std::fabs(x);
}

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

class DeltaExcess final : public TensorStatistic {
 public:
  DeltaExcess(std::uint64_t memory, double rtol) : kept_(memory), rtol_{rtol} {}

  void measure(const TensorSample& sample, StatisticSink& out) override {
    if (sample.dtype == core::Dtype::c64 || sample.dtype == core::Dtype::c128) return;
    KeptValue* const before = kept_.of(sample);
    if (before == nullptr) return;
    const double most = furthest(sample, before->bytes.data());
    std::memcpy(before->bytes.data(), sample.data, before->bytes.size());
    out.number(core::SparseStat::delta_excess, most, rtol_);
    out.number(core::SparseStat::delta_from_step, static_cast<double>(before->step));
    before->step = sample.step;
  }

  [[nodiscard]] bool is_new(std::uint64_t id) const override { return kept_.is_new(id); }
  void admit(std::vector<Wish> wishes) override { kept_.admit(std::move(wishes)); }
  [[nodiscard]] std::uint64_t kept_bytes() const override { return kept_.bytes(); }
  [[nodiscard]] std::span<const std::string> left_out() const override { return kept_.left_out(); }

 private:
  [[nodiscard]] double furthest(const TensorSample& sample, const std::byte* before) const {
    const DefaultFloatEnvironment environment;
    const auto* now = static_cast<const std::byte*>(sample.data);
    const std::size_t width = core::size_of(sample.dtype);
    std::array<double, kAtOnce> x;  // NOLINT: written before it is read
    std::array<double, kAtOnce> y;  // NOLINT: as well
    double most = -HUGE_VAL;
    for (std::uint64_t left = sample.count; left != 0;) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, left));
      widen(sample.dtype, now, n, x.data());
      widen(sample.dtype, before, n, y.data());
      for (std::size_t i = 0; i < n; ++i) most = larger(excess(x[i], y[i], rtol_[0]), most);
      now += n * width;
      before += n * width;
      left -= n;
    }
    return most;
  }

  KeptValues kept_;
  std::array<double, 1> rtol_;
};

}  // namespace

StatisticDescriptor delta_excess() {
  return {.request = "delta_excess",
          .gives = {"delta_excess"},
          .make = [](const StatisticLimits& limits,
                     std::span<const double> parameters) -> std::unique_ptr<TensorStatistic> {
            if (!(parameters[0] >= 0) || std::isinf(parameters[0])) return nullptr;
            return std::make_unique<DeltaExcess>(limits.memory, parameters[0]);
          }};
}

}  // namespace tocsin::collectors
