#include "rules/declared/code.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "rules/declared/memory.h"

namespace tocsin::rules::declared {
namespace {

double sent(const Point& point, std::uint16_t id) {
  const auto which = static_cast<core::SparseStat>(id);
  if (point.batch != nullptr) {
    return point.batch->statistic(which, point.row->index()).value_or(std::nan(""));
  }
  if (point.kept != nullptr) {
    const SentStatistic* found = nullptr;
    for (const SentStatistic& one : point.kept->extras) {
      if (one.what.id == id && !one.what.vector && !one.values.empty()) found = &one;
    }
    if (found != nullptr) return found->values.front();
  }
  return std::nan("");
}

// What is computed from the columns of a row.
double derived_of_row(const Row& row, Field field) {
  const double n = row.n();
  switch (field) {
    case Field::mean:
      return row.mean();
    case Field::abs_mean:
      return row.abs_mean();
    case Field::l2:
      return row.l2();
    case Field::variance:
      return row.m2() / n;
    case Field::std:
      return std::sqrt(row.m2() / n);
    case Field::abs_max:
      return row.count() == 0 ? std::nan("") : row.abs_max();
    case Field::positive:
      return n - static_cast<double>(row.nan() + row.zero() + row.negative());
    case Field::abs_variance:
    case Field::abs_std: {
      const double spread = std::fmax(row.sumsq() / n - row.abs_mean() * row.abs_mean(), 0);
      if (std::isnan(row.sumsq()) || row.count() == 0) return std::nan("");
      return field == Field::abs_std ? std::sqrt(spread) : spread;
    }
    default:
      return std::nan("");
  }
}

double of_row(const Row& row, Field field) {
  switch (field) {
    case Field::value:
    case Field::duration:  // a step waits as a row of one number
    case Field::sum:
      return row.sum();
    case Field::count:
      return row.n();
    case Field::sumsq:
      return row.sumsq();
    case Field::m2:
      return row.m2();
    case Field::abs_sum:
    case Field::l1:
      return row.abs_sum();
    case Field::min:
      return row.count() == 0 ? std::nan("") : row.min();
    case Field::max:
      return row.count() == 0 ? std::nan("") : row.max();
    case Field::nan:
      return static_cast<double>(row.nan());
    case Field::posinf:
      return static_cast<double>(row.posinf());
    case Field::neginf:
      return static_cast<double>(row.neginf());
    case Field::zero:
      return static_cast<double>(row.zero());
    case Field::negative:
      return static_cast<double>(row.negative());
    default:
      return derived_of_row(row, field);
  }
}

double truth(bool value) { return value ? 1.0 : 0.0; }

double compared(Op op, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  switch (op) {
    case Op::less:
      return truth(a < b);
    case Op::less_equal:
      return truth(a <= b);
    case Op::greater:
      return truth(a > b);
    case Op::greater_equal:
      return truth(a >= b);
    case Op::equal:
      return truth(a == b);
    default:
      return truth(a != b);
  }
}

// What is not known stays so only where the other side does not decide.
double joined(Op op, double a, double b) {
  const double decides = op == Op::both ? 0.0 : 1.0;
  if (a == decides || b == decides) return decides;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return 1.0 - decides;
}

double binary(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return b == 0 ? std::nan("") : a / b;
    case Op::both:
    case Op::either:
      return joined(op, a, b);
    case Op::least:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::fmin(a, b);
    case Op::greatest:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::fmax(a, b);
    default:
      return compared(op, a, b);
  }
}

double unary(Op op, double x) {
  switch (op) {
    case Op::negate:
      return -x;
    case Op::invert:
      return 1.0 - x;  // of what is not known: not known
    case Op::absolute:
      return std::fabs(x);
    case Op::log10:
      return x > 0 ? std::log10(x) : std::nan("");
    case Op::sqrt:
      return x >= 0 ? std::sqrt(x) : std::nan("");
    default:
      return truth(std::isfinite(x));
  }
}

}  // namespace

double field_of(const Point& point, std::uint16_t field) {
  if (field >= kSent) return sent(point, static_cast<std::uint16_t>(field - kSent));
  const auto which = static_cast<Field>(field);
  if (which == Field::step) return static_cast<double>(point.step);
  if (which == Field::epoch) return point.epoch;
  if (which == Field::world_size) return point.world_size > 0 ? point.world_size : std::nan("");
  if (point.row == nullptr) return point.value;
  return of_row(*point.row, which);
}

std::size_t depth_of(std::span<const Instruction> code) {
  std::size_t top = 0;
  std::size_t most = 0;
  for (const Instruction& one : code) {
    const bool pushes = one.op <= Op::fold;
    const bool replaces = one.op > Op::fold && one.op <= Op::finite;
    if (pushes) {
      most = std::max(most, ++top);
    } else if (!replaces) {
      top -= one.op == Op::choose ? 2 : 1;
    }
  }
  return most;
}

double run(std::span<const Instruction> code, const Sight& sight) {
  std::array<double, kStack> stack;  // NOLINT: written before it is read
  std::size_t top = 0;
  for (const Instruction& one : code) {
    switch (one.op) {
      case Op::constant:
        stack[top++] = one.number;
        break;
      case Op::field:
        stack[top++] = field_of(*sight.point, one.index);
        break;
      case Op::aggregate:
        stack[top++] = aggregate(sight, one.index);
        break;
      case Op::hearing:
        stack[top++] = sight.hearings[one.index];
        break;
      case Op::other:
        stack[top++] = sight.others[one.index];
        break;
      case Op::fold:
        stack[top++] = sight.folds[one.index];
        break;
      case Op::negate:
      case Op::invert:
      case Op::absolute:
      case Op::log10:
      case Op::sqrt:
      case Op::finite:
        stack[top - 1] = unary(one.op, stack[top - 1]);
        break;
      case Op::choose:
        top -= 2;
        stack[top - 1] = std::isnan(stack[top - 1]) ? std::nan("")
                         : stack[top - 1] != 0      ? stack[top]
                                                    : stack[top + 1];
        break;
      default:
        --top;
        stack[top - 1] = binary(one.op, stack[top - 1], stack[top]);
    }
  }
  return stack[0];
}

}  // namespace tocsin::rules::declared
