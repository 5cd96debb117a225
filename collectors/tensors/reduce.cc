#include "collectors/tensors/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "collectors/tensors/accumulate.h"
#include "collectors/tensors/float_environment.h"

namespace tocsin::collectors {
namespace {

// What a type without statistics gets: its number of elements, and sums that say "not a number".
core::SummaryRow no_statistics(core::Dtype dtype, std::uint64_t count) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  core::SummaryRow row;
  row.meta = core::meta::make(dtype, core::Role::other);
  row.count = count;
  row.sum = row.sumsq = row.m2 = row.abs_sum = row.min = row.max = kNan;
  return row;
}

struct Dimension {
  std::uint64_t extent;
  std::uint64_t stride;  // elements, > 0
};

// A view with dimensions in order of stride, joined where they are contiguous, flipped where they
// run backwards and without those of stride 0: statistics do not depend on the order of elements.
struct View {
  std::array<Dimension, kMaxDims> dims{};
  std::size_t rank = 0;
  std::int64_t first = 0;     // offset of the lowest element
  std::uint64_t count = 1;    // distinct elements
  std::uint64_t repeats = 1;  // how often each occurs
  bool valid = true;
};

View simplified(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  View view;
  if (shape.size() != strides.size() || shape.size() > kMaxDims) {
    view.valid = false;
    return view;
  }
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] < 0) view.valid = false;
    if (shape[k] == 0) view.count = 0;
  }
  if (!view.valid || view.count == 0) return view;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const auto extent = static_cast<std::uint64_t>(shape[k]);
    if (extent == 1) continue;
    if (strides[k] == 0) {
      view.repeats *= extent;
      continue;
    }
    if (strides[k] < 0) view.first += strides[k] * (shape[k] - 1);
    view.dims[view.rank++] = {extent, static_cast<std::uint64_t>(std::abs(strides[k]))};
    view.count *= extent;
  }
  std::sort(view.dims.begin(), view.dims.begin() + static_cast<std::ptrdiff_t>(view.rank),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::size_t kept = 0;
  for (std::size_t k = 0; k < view.rank; ++k) {
    if (kept != 0 &&
        view.dims[k].stride == view.dims[kept - 1].extent * view.dims[kept - 1].stride) {
      view.dims[kept - 1].extent *= view.dims[k].extent;
    } else {
      view.dims[kept++] = view.dims[k];
    }
  }
  view.rank = kept;
  return view;
}

// Gathers elements into blocks and accumulates those, so that short runs cost no more than long.
class Gatherer {
 public:
  Gatherer(core::Dtype dtype, Moments& out)
      : dtype_(dtype), size_(core::size_of(dtype)), out_(out) {}

  void run(const std::byte* from, std::uint64_t extent, std::uint64_t stride) {
    if (stride == 1 && extent * size_ >= kBytes / 4) {
      accumulate(dtype_, from, extent, out_);
      return;
    }
    while (extent != 0) {
      const std::uint64_t n = std::min<std::uint64_t>(extent, (kBytes - used_) / size_);
      if (stride == 1) {
        std::memcpy(buffer_.data() + used_, from, n * size_);
      } else {
        copy(buffer_.data() + used_, from, n, stride * size_);
      }
      used_ += n * size_;
      from += n * stride * size_;
      extent -= n;
      if (used_ + size_ > kBytes) flush();
    }
  }

  void flush() {
    accumulate(dtype_, buffer_.data(), used_ / size_, out_);
    used_ = 0;
  }

 private:
  static constexpr std::size_t kBytes = 16384;

  void copy(std::byte* to, const std::byte* from, std::uint64_t n, std::uint64_t step) const {
    switch (size_) {
      case 1:
        return copy_each<1>(to, from, n, step);
      case 2:
        return copy_each<2>(to, from, n, step);
      case 4:
        return copy_each<4>(to, from, n, step);
      case 8:
        return copy_each<8>(to, from, n, step);
      default:
        return copy_each<16>(to, from, n, step);
    }
  }
  template <std::size_t kSize>
  static void copy_each(std::byte* to, const std::byte* from, std::uint64_t n, std::uint64_t step) {
    for (std::uint64_t i = 0; i < n; ++i) std::memcpy(to + i * kSize, from + i * step, kSize);
  }

  core::Dtype dtype_;
  std::size_t size_;
  Moments& out_;
  std::size_t used_ = 0;
  alignas(64) std::array<std::byte, kBytes> buffer_;
};

}  // namespace

core::SummaryRow reduce(core::Dtype dtype, const void* data, std::uint64_t count) noexcept {
  if (!reducible(dtype)) return no_statistics(dtype, count);
  const DefaultFloatEnvironment environment;
  Moments moments;
  accumulate(dtype, data, count, moments);
  return finish(dtype, moments);
}

core::SummaryRow reduce_strided(core::Dtype dtype, const void* data,
                                std::span<const std::int64_t> shape,
                                std::span<const std::int64_t> strides) noexcept {
  const View view = simplified(shape, strides);
  if (!view.valid) {
    core::SummaryRow row;
    row.meta = core::meta::make(dtype, core::Role::other, core::meta::kEmptyHere);
    return row;
  }
  if (!reducible(dtype)) return no_statistics(dtype, view.count * view.repeats);
  if (view.count == 0) return reduce(dtype, data, 0);
  const auto size = static_cast<std::int64_t>(core::size_of(dtype));
  const auto* base = static_cast<const std::byte*>(data) + view.first * size;
  const DefaultFloatEnvironment environment;
  Moments moments;
  if (view.rank == 0) {
    accumulate(dtype, base, 1, moments);
  } else {
    Gatherer gatherer(dtype, moments);
    const Dimension inner = view.dims[0];
    std::array<std::uint64_t, kMaxDims> index{};
    for (bool more = true; more;) {
      const std::byte* from = base;
      for (std::size_t k = 1; k < view.rank; ++k) {
        from += static_cast<std::ptrdiff_t>(index[k] * view.dims[k].stride) * size;
      }
      gatherer.run(from, inner.extent, inner.stride);
      more = false;
      for (std::size_t k = 1; k < view.rank && !more; ++k) {
        more = ++index[k] < view.dims[k].extent;
        if (!more) index[k] = 0;
      }
    }
    gatherer.flush();
  }
  moments.repeat(view.repeats);
  return finish(dtype, moments);
}

}  // namespace tocsin::collectors
