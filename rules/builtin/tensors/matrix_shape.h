// Which weights are matrices: things whose units must differ from the start.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rules/contract/rule.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

/// Gains of a normalisation over channels and points begin at 1, and have so many dimensions.
inline constexpr std::size_t kGainRank = 3;

/// Two dimensions or more are larger than 1. A scale per channel is written as [n, 1, 1], and is a vector.
inline bool is_matrix(std::span<const std::int64_t> shape) {
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t n) { return n > 1; }) >= 2;
}

/// Two tensors of one shape in one module, such as means and spreads of weights that are drawn anew at each
/// step: what is alike in one is told apart by the other.
inline bool stands_beside(const Name& one, const Name& other) {
  const auto module_of = [](std::string_view name) { return name.substr(0, name.rfind('.') + 1); };
  return one.text != other.text && one.shape == other.shape &&
         module_of(one.text) == module_of(other.text) && !module_of(one.text).empty();
}

/// Whether a weight of the step stands beside it whose values differ.
inline bool differs_beside(const Name& name, const StepSet& set, const Scope& scope) {
  return std::any_of(set.rows.begin(), set.rows.end(), [&](const StepRow& other) {
    const Name* its = other.role() == core::Role::weight ? scope.find(other.name()) : nullptr;
    return its != nullptr && other.row.min < other.row.max && stands_beside(name, *its);
  });
}

}  // namespace tocsin::rules
