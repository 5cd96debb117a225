// Speaks to a statistic of tensors as the hook does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/collectors.h"

namespace tocsin::testing_support {

/// The registered statistic of this word, or that gives `first_bad_index` and the like unasked.
inline std::unique_ptr<collectors::TensorStatistic> statistic_of(
    std::string_view word, std::vector<double> parameters = {},
    collectors::StatisticLimits limits = {1 << 20}) {
  for (const auto& one : collectors::builtin_statistics()) {
    const std::string_view name = one.request.empty() ? one.gives.front() : one.request;
    if (name == word) return one.make(limits, parameters);
  }
  ADD_FAILURE() << "no registered statistic is called " << word;
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
  core::Role role = core::Role::other;
  std::string_view op_type = {};
};

/// What was given.
struct Given final : collectors::StatisticSink {
  void bits(core::SparseStat stat, std::uint64_t bits, Numbers of) override {
    numbers[stat] = bits;
    parameters[stat] = {of.begin(), of.end()};
  }
  void vector(core::VectorStat stat, Numbers values, Numbers of) override {
    vectors[stat] = {values.begin(), values.end()};
    vector_parameters[stat] = {of.begin(), of.end()};
  }
  void histogram(const collectors::ExponentialHistogram& histogram) override {
    buckets = histogram;
  }
  void approximate() override { is_approximate = true; }

  [[nodiscard]] bool empty() const { return numbers.empty() && vectors.empty() && !buckets; }
  /// As a number; fails the test when it was not given.
  [[nodiscard]] double at(core::SparseStat stat) const {
    const auto found = numbers.find(stat);
    if (found != numbers.end()) return std::bit_cast<double>(found->second);
    ADD_FAILURE() << "statistic " << static_cast<int>(stat) << " was not given";
    return 0;
  }
  [[nodiscard]] std::vector<double> at(core::VectorStat stat) const {
    const auto found = vectors.find(stat);
    if (found != vectors.end()) return found->second;
    ADD_FAILURE() << "vector " << static_cast<int>(stat) << " was not given";
    return {};
  }

  std::map<core::SparseStat, std::uint64_t> numbers;
  std::map<core::SparseStat, std::vector<double>> parameters;
  std::map<core::VectorStat, std::vector<double>> vectors;
  std::map<core::VectorStat, std::vector<double>> vector_parameters;
  std::optional<collectors::ExponentialHistogram> buckets;
  bool is_approximate = false;
};

template <typename T>
Given measure(collectors::TensorStatistic& statistic, const Tensor<T>& tensor,
              std::int64_t step = 0) {
  const std::vector<std::int64_t> flat{static_cast<std::int64_t>(tensor.values.size())};
  collectors::TensorSample sample;
  sample.id = tensor.id;
  sample.dtype = tensor.dtype;
  sample.data = tensor.values.data();
  sample.count = tensor.values.size();
  sample.shape = tensor.shape.empty() ? flat : tensor.shape;
  sample.row_major = tensor.row_major;
  sample.step = sample.global_step = step;
  sample.role = tensor.role;
  sample.op_type = tensor.op_type;
  sample.row = collectors::reduce(tensor.dtype, sample.data, sample.count);
  Given out;
  statistic.measure(sample, out);
  return out;
}

}  // namespace tocsin::testing_support
