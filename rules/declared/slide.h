// The commonest declared rule, straight through: one aggregate over the last N steps of one statistic,
// compared with a number. What memory.* and code.* do step by step for any rule is done here in one go,
// over the same words and with the same answers; only a row that hits goes through those.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "rules/declared/memory.h"

namespace tocsin::rules::declared {

class Slide {
 public:
  /// nullopt: the formula is another one.
  static std::optional<Slide> of(const Formula& formula);

  /// The statistic of as many rows as there is room for, from row `from` on.
  void read(const RowBatch& batch, std::size_t from, std::span<double> values) const;
  /// Adds the newest point of a unit; what the rule says of it then: 1, 0, or NaN for not known.
  double add(std::uint64_t* memory, std::int64_t step, std::int64_t time, double value) const;

 private:
  explicit Slide(const Formula& formula);

  const Formula* formula_;
  Op op_;  // the aggregate `op_` limit_
  double limit_;
  std::uint16_t field_;
  std::uint64_t capacity_;
  std::int64_t span_;  // steps
};

}  // namespace tocsin::rules::declared
