// Speaks to a statistic of tensors as the hook does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "collectors/collectors.h"

namespace tocsin::testing_support {

/// The registered statistic that gives this one.
inline std::unique_ptr<collectors::TensorStatistic> statistic_that_gives(
    core::SparseStat stat, collectors::StatisticLimits limits = {1 << 20}) {
  for (const auto& one : collectors::builtin_statistics()) {
    if (std::find(one.gives.begin(), one.gives.end(), stat) != one.gives.end()) {
      return one.make(limits);
    }
  }
  ADD_FAILURE() << "no registered statistic gives " << static_cast<int>(stat);
  return nullptr;
}

/// Values of one tensor of one type, in row-major order.
template <typename T>
struct Tensor {
  core::Dtype dtype;
  std::vector<T> values;
  std::vector<std::int64_t> shape = {};  // empty: one dimension
  std::uint64_t id = 1;
  bool row_major = true;
};

/// What was given, as bits; read numbers with as_number().
using GivenBits = std::map<core::SparseStat, std::uint64_t>;
inline double as_number(std::uint64_t bits) { return std::bit_cast<double>(bits); }

template <typename T>
GivenBits measure(collectors::TensorStatistic& statistic, const Tensor<T>& tensor,
                  std::int64_t step = 0) {
  const std::vector<std::int64_t> flat{static_cast<std::int64_t>(tensor.values.size())};
  collectors::TensorSample sample;
  sample.id = tensor.id;
  sample.dtype = tensor.dtype;
  sample.data = tensor.values.data();
  sample.count = tensor.values.size();
  sample.shape = tensor.shape.empty() ? flat : tensor.shape;
  sample.row_major = tensor.row_major;
  sample.step = step;
  sample.row = collectors::reduce(tensor.dtype, sample.data, sample.count);
  GivenBits out;
  statistic.measure(sample, [&](core::SparseStat stat, std::uint64_t bits) { out[stat] = bits; });
  return out;
}

}  // namespace tocsin::testing_support
