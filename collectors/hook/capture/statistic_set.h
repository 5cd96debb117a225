// The statistics beyond the base columns that this process can give, and what they keep.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/collectors.h"
#include "core/statistics.h"

namespace tocsin::hook {

/// Whether this client gives what the word of `statistics:` asks for.
bool gives_statistic(std::string_view word);
/// All words that it gives.
std::vector<std::string> given_requests();

/// Requests as bits.
using StatisticMask = std::uint64_t;

/// What has been asked for, each request once: a word with its parameters. Not thread-safe.
class StatisticRequests {
 public:
  /// Its bit, which it keeps; 0: not given by this client, no values for its parameters, or one of
  /// more than 64.
  StatisticMask bit(const core::StatisticRequest& request);
  /// In the order of their bits.
  [[nodiscard]] std::span<const core::StatisticRequest> all() const { return all_; }
  /// As they stand in a plan: `delta`, `at_least(3)`.
  [[nodiscard]] std::vector<std::string> texts(StatisticMask of) const;

 private:
  std::vector<core::StatisticRequest> all_;
};

/// Not thread-safe.
class StatisticSet {
 public:
  explicit StatisticSet(const collectors::StatisticLimits& limits);

  /// Makes ready what has been asked for since.
  void follow(const StatisticRequests& requests);
  /// Measures those asked for, and those that come by themselves.
  void measure(const collectors::TensorSample& sample, StatisticMask asked,
               collectors::StatisticSink& out);
  /// Those that read elements by their place in row-major order.
  [[nodiscard]] StatisticMask in_order() const noexcept { return in_order_; }
  /// Whether one of those asked for must know of this tensor before it is measured.
  [[nodiscard]] bool is_new(std::uint64_t id, StatisticMask asked) const;
  /// Tensors of one capture that are new to some of them.
  void admit(const std::vector<collectors::Wish>& wishes, StatisticMask asked);
  [[nodiscard]] std::uint64_t kept_bytes() const;
  [[nodiscard]] std::vector<std::string> left_out() const;

 private:
  using Statistic = std::unique_ptr<collectors::TensorStatistic>;

  collectors::StatisticLimits limits_;
  std::vector<Statistic> unasked_;
  std::vector<Statistic> asked_;  // by bit
  StatisticMask in_order_ = 0;
};

}  // namespace tocsin::hook
