#include "collectors/hook/capture/statistic_set.h"

#include <algorithm>

namespace tocsin::hook {
namespace {

using collectors::StatisticDescriptor;

constexpr std::size_t kMostRequests = 64;  // bits of a mask

/// Null: not given.
const StatisticDescriptor* descriptor_of(std::string_view word) {
  for (const StatisticDescriptor& one : collectors::builtin_statistics()) {
    if (!one.request.empty() && one.request == word) return &one;
  }
  return nullptr;
}

template <typename Visit>
void each_bit(StatisticMask mask, std::size_t count, Visit&& visit) {
  for (std::size_t i = 0; i < count; ++i) {
    if ((mask >> i & 1U) != 0) visit(i);
  }
}

}  // namespace

bool gives_statistic(std::string_view word) { return descriptor_of(word) != nullptr; }

std::vector<std::string> given_requests() {
  std::vector<std::string> words;
  for (const StatisticDescriptor& one : collectors::builtin_statistics()) {
    if (!one.request.empty()) words.emplace_back(one.request);
  }
  return words;
}

StatisticMask StatisticRequests::bit(const core::StatisticRequest& request) {
  const auto at = std::find(all_.begin(), all_.end(), request);
  if (at != all_.end()) return StatisticMask{1} << (at - all_.begin());
  const StatisticDescriptor* known = descriptor_of(request.word);
  if (known == nullptr || all_.size() == kMostRequests) return 0;
  if (known->make({}, request.parameters) == nullptr) return 0;
  all_.push_back(request);
  return StatisticMask{1} << (all_.size() - 1);
}

std::vector<std::string> StatisticRequests::texts(StatisticMask of) const {
  std::vector<std::string> out;
  each_bit(of, all_.size(), [&](std::size_t i) { out.push_back(core::to_text(all_[i])); });
  return out;
}

StatisticSet::StatisticSet(const collectors::StatisticLimits& limits) : limits_(limits) {
  for (const StatisticDescriptor& one : collectors::builtin_statistics()) {
    if (one.request.empty()) unasked_.push_back(one.make(limits_, {}));
  }
}

void StatisticSet::follow(const StatisticRequests& requests) {
  for (std::size_t i = asked_.size(); i < requests.all().size(); ++i) {
    const core::StatisticRequest& request = requests.all()[i];
    const StatisticDescriptor* known = descriptor_of(request.word);
    asked_.push_back(known->make(limits_, request.parameters));
    if (known->in_order) in_order_ |= StatisticMask{1} << i;
  }
}

void StatisticSet::measure(const collectors::TensorSample& sample, StatisticMask asked,
                           collectors::StatisticSink& out) {
  for (const Statistic& one : unasked_) one->measure(sample, out);
  each_bit(asked, asked_.size(), [&](std::size_t i) { asked_[i]->measure(sample, out); });
}

bool StatisticSet::is_new(std::uint64_t id, StatisticMask asked) const {
  bool found = false;
  each_bit(asked, asked_.size(), [&](std::size_t i) { found = found || asked_[i]->is_new(id); });
  return found;
}

void StatisticSet::admit(const std::vector<collectors::Wish>& wishes, StatisticMask asked) {
  each_bit(asked, asked_.size(), [&](std::size_t i) { asked_[i]->admit(wishes); });
}

std::uint64_t StatisticSet::kept_bytes() const {
  std::uint64_t bytes = 0;
  for (const Statistic& one : asked_) bytes += one->kept_bytes();
  return bytes;
}

std::vector<std::string> StatisticSet::left_out() const {
  std::vector<std::string> names;
  for (const Statistic& one : asked_) {
    const auto more = one->left_out();
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

}  // namespace tocsin::hook
