// A compiled expression: instructions over a stack of numbers. A bool is 0 or 1; NaN stands for
// "not known", in a number as in a bool, and a verdict that is not known is `insufficient_data`.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "rules/contract/row.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules::declared {

/// What one point of a selection can be asked for; kSent + id: a statistic sent on request.
enum class Field : std::uint16_t {
  value,
  duration,
  step,
  epoch,
  world_size,
  count,
  sum,
  sumsq,
  m2,
  abs_sum,
  min,
  max,
  nan,
  posinf,
  neginf,
  zero,
  negative,
  mean,
  abs_mean,
  l1,
  l2,
  variance,
  std,
  abs_max,
  positive,
  abs_variance,
  abs_std,
};
inline constexpr std::uint16_t kSent = 256;

/// A row, a scalar, a step or a sample, as expressions see it. Valid during one call.
struct Point {
  const Row* row = nullptr;  // of tensors and scalars
  const RowBatch* batch = nullptr;
  const StepRow* kept = nullptr;  // the row, where it had to wait for its step
  const double* arguments =
      nullptr;       // of the selection's aggregates, where they are computed already
  double value = 0;  // of samples; seconds of a step
  std::int64_t step = 0;
  std::int64_t time = 0;  // UTC ns
  double world_size = 0;
  double epoch = std::numeric_limits<double>::quiet_NaN();  // NaN: not counted
};
/// NaN: not there.
double field_of(const Point& point, std::uint16_t field);

enum class Op : std::uint8_t {
  constant,
  field,
  aggregate,  // of Program::aggregates
  hearing,    // of Program::hearings
  other,      // of Program::others
  fold,       // of Program::folds
  negate,
  invert,
  absolute,
  log10,
  sqrt,
  finite,
  add,
  subtract,
  multiply,
  divide,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  both,
  either,
  least,
  greatest,
  choose,  // condition, then, else
};

struct Instruction {
  Op op = Op::constant;
  std::uint16_t index = 0;
  double number = 0;
};
using Code = std::vector<Instruction>;
inline constexpr std::size_t kStack = 128;
/// Numbers that are on the stack at once, at most; code beyond kStack must not be run.
std::size_t depth_of(std::span<const Instruction> code);

struct Formula;

/// What a formula may look at while it is computed.
struct Sight {
  const Formula* formula = nullptr;
  const Point* point = nullptr;
  const std::uint64_t* const* memories = nullptr;  // one per source
  const double* folds = nullptr;
  const double* hearings = nullptr;
  const double* others = nullptr;
};

double run(std::span<const Instruction> code, const Sight& sight);

}  // namespace tocsin::rules::declared
