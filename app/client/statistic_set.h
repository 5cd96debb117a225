// The statistics beyond the base columns that this process can give, and what they keep.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/collectors.h"

namespace tocsin::app::client {

/// Registered statistics as bits, in the order of their lines.
using StatisticMask = std::uint64_t;
/// Of those that this word of `statistics:` asks for; 0: none of ours.
StatisticMask statistics_for(std::string_view request);
/// The words that ask for them.
std::vector<std::string> requests_of(StatisticMask statistics);
/// All words that this client can give.
std::vector<std::string> given_requests();

/// Not thread-safe.
class StatisticSet {
 public:
  explicit StatisticSet(const collectors::StatisticLimits& limits);

  /// Measures those asked for, and those that come by themselves.
  void measure(const collectors::TensorSample& sample, StatisticMask asked, collectors::Give give);
  /// Whether one of those asked for must know of this tensor before it is measured.
  [[nodiscard]] bool is_new(std::uint64_t id, StatisticMask asked) const;
  /// Tensors of one capture that are new to some of them.
  void admit(const std::vector<collectors::Wish>& wishes, StatisticMask asked);
  [[nodiscard]] std::uint64_t kept_bytes() const;
  [[nodiscard]] std::vector<std::string> left_out() const;

 private:
  std::vector<std::unique_ptr<collectors::TensorStatistic>> all_;
  StatisticMask unasked_ = 0;
};

}  // namespace tocsin::app::client
