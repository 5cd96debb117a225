#include "app/client/statistic_set.h"

#include <algorithm>

namespace tocsin::app::client {
namespace {

/// Calls visit(number, descriptor) for each bit that is set.
template <typename Visit>
void each(StatisticMask mask, Visit&& visit) {
  const auto table = collectors::builtin_statistics();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if ((mask >> i & 1U) != 0) visit(i, table[i]);
  }
}

}  // namespace

StatisticMask statistics_for(std::string_view request) {
  StatisticMask mask = 0;
  each(~StatisticMask{0}, [&](std::size_t i, const collectors::StatisticDescriptor& one) {
    if (!one.request.empty() && one.request == request) mask |= StatisticMask{1} << i;
  });
  return mask;
}

std::vector<std::string> requests_of(StatisticMask statistics) {
  std::vector<std::string> words;
  each(statistics, [&](std::size_t, const collectors::StatisticDescriptor& one) {
    if (one.request.empty()) return;
    if (std::find(words.begin(), words.end(), one.request) == words.end()) {
      words.emplace_back(one.request);
    }
  });
  return words;
}

std::vector<std::string> given_requests() { return requests_of(~StatisticMask{0}); }

StatisticSet::StatisticSet(const collectors::StatisticLimits& limits) {
  each(~StatisticMask{0}, [&](std::size_t i, const collectors::StatisticDescriptor& one) {
    all_.push_back(one.make(limits));
    if (one.request.empty()) unasked_ |= StatisticMask{1} << i;
  });
}

void StatisticSet::measure(const collectors::TensorSample& sample, StatisticMask asked,
                           collectors::Give give) {
  const StatisticMask due = asked | unasked_;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if ((due >> i & 1U) != 0) all_[i]->measure(sample, give);
  }
}

bool StatisticSet::is_new(std::uint64_t id, StatisticMask asked) const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if ((asked >> i & 1U) != 0 && all_[i]->is_new(id)) return true;
  }
  return false;
}

void StatisticSet::admit(const std::vector<collectors::Wish>& wishes, StatisticMask asked) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if ((asked >> i & 1U) != 0) all_[i]->admit(wishes);
  }
}

std::uint64_t StatisticSet::kept_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& one : all_) bytes += one->kept_bytes();
  return bytes;
}

std::vector<std::string> StatisticSet::left_out() const {
  std::vector<std::string> names;
  for (const auto& one : all_) {
    const auto more = one->left_out();
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

}  // namespace tocsin::app::client
