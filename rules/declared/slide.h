// The commonest declared rule, straight through: the mean over the last N steps of something of a row,
// compared with a number. What memory.* and code.* do step by step for any rule is done here in one go,
// over the same words and with the same answers; only a row that hits goes through those.
#pragma once

#include <cstdint>
#include <optional>

#include "rules/declared/memory.h"

namespace tocsin::rules::declared {

class Slide {
 public:
  /// nullopt: the formula is another one.
  static std::optional<Slide> of(const Formula& formula);

  /// Adds the newest point of a unit; what the rule says of it then: 1, 0, or NaN for not known.
  double add(std::uint64_t* memory, std::int64_t step, double value) const;

 private:
  explicit Slide(const Formula& formula);

  const Formula* formula_;
  Op op_;  // the aggregate `op_` limit_
  double limit_;
  std::int64_t span_;  // steps
};

}  // namespace tocsin::rules::declared
