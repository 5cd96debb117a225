#include "rules/declared/block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "rules/contract/exact_double.h"
#include "rules/contract/together.h"

namespace tocsin::rules::declared {
namespace {

constexpr std::size_t kDepth = 8;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
using Column = core::ColumnView<std::uint64_t>;

struct Rows {
  const Point& point;
  std::size_t from;
  std::size_t count;

  [[nodiscard]] Column whole(std::size_t column) const {
    return point.batch->column<std::uint64_t>(column, from);
  }
  [[nodiscard]] core::ColumnView<double> real(std::size_t column) const {
    return point.batch->column<double>(column, from);
  }
};

// ── Fields ─────────────────────────────────────────────────────────────────────────────────────

TOCSIN_TOGETHER void read_whole(const Column& numbers, double* to, std::size_t count) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < count; ++i) all |= numbers[i];
  if (all < kExactDouble) {
    for (std::size_t i = 0; i < count; ++i) to[i] = exact_double(numbers[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<double>(numbers[i]);
  }
}

void read_real(const core::ColumnView<double>& numbers, double* to, std::size_t count) {
  std::memcpy(to, numbers.data(), count * sizeof *to);
}

// The column by the number of elements; `to` holds it already.
TOCSIN_TOGETHER void divide_by_count(const Column& counts, double* to, std::size_t count) {
  std::array<double, kBlockRows> n;  // NOLINT: written before it is read
  read_whole(counts, n.data(), count);
  for (std::size_t i = 0; i < count; ++i) to[i] /= n[i];
}

// Extremes of no elements are not known.
TOCSIN_TOGETHER void blank_empty(const Column& counts, double* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = counts[i] == 0 ? kNone : to[i];
}

TOCSIN_TOGETHER void largest_of(const core::ColumnView<double>& lows,
                                const core::ColumnView<double>& highs, double* to,
                                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double low = std::fabs(lows[i]);
    const double high = std::fabs(highs[i]);
    const double larger = low > high ? low : high;
    to[i] = std::isunordered(low, high) ? kNone : larger;
  }
}

// What is computed from the columns of a row. False: the field is none of these.
bool read_derived(const Rows& rows, Field field, double* to) {
  using namespace core;  // NOLINT: summary_column
  const std::size_t count = rows.count;
  const auto real = [&](std::size_t column) { read_real(rows.real(column), to, count); };
  const Column counts = rows.whole(summary_column::count);
  switch (field) {
    case Field::mean:
      real(summary_column::sum);
      divide_by_count(counts, to, count);
      break;
    case Field::l2:
      real(summary_column::sumsq);
      for (std::size_t i = 0; i < count; ++i) to[i] = std::sqrt(to[i]);
      break;
    case Field::variance:
    case Field::std:
      real(summary_column::m2);
      divide_by_count(counts, to, count);
      if (field == Field::variance) break;
      for (std::size_t i = 0; i < count; ++i) to[i] = std::sqrt(to[i]);
      break;
    case Field::abs_mean:
      real(summary_column::abs_sum);
      divide_by_count(counts, to, count);
      break;
    case Field::min:
      real(summary_column::min);
      blank_empty(counts, to, count);
      break;
    case Field::max:
      real(summary_column::max);
      blank_empty(counts, to, count);
      break;
    case Field::abs_max:
      largest_of(rows.real(summary_column::min), rows.real(summary_column::max), to, count);
      blank_empty(counts, to, count);
      break;
    default:
      return false;
  }
  return true;
}

bool read_field(const Rows& rows, Field field, double* to) {
  using namespace core;  // NOLINT: summary_column
  const std::size_t count = rows.count;
  const auto whole = [&](std::size_t column) { read_whole(rows.whole(column), to, count); };
  const auto real = [&](std::size_t column) { read_real(rows.real(column), to, count); };
  switch (field) {
    case Field::value:
    case Field::duration:
    case Field::sum:
      real(summary_column::sum);
      break;
    case Field::count:
      whole(summary_column::count);
      break;
    case Field::sumsq:
      real(summary_column::sumsq);
      break;
    case Field::m2:
      real(summary_column::m2);
      break;
    case Field::abs_sum:
    case Field::l1:
      real(summary_column::abs_sum);
      break;
    case Field::nan:
      whole(summary_column::nan);
      break;
    case Field::posinf:
      whole(summary_column::posinf);
      break;
    case Field::neginf:
      whole(summary_column::neginf);
      break;
    case Field::zero:
      whole(summary_column::zero);
      break;
    case Field::negative:
      whole(summary_column::negative);
      break;
    default:
      return read_derived(rows, field, to);
  }
  return true;
}

void read(const Rows& rows, std::uint16_t field, double* to) {
  if (field < kSent && read_field(rows, static_cast<Field>(field), to)) return;
  Point point = rows.point;
  const bool shared = field == static_cast<std::uint16_t>(Field::step) ||
                      field == static_cast<std::uint16_t>(Field::epoch) ||
                      field == static_cast<std::uint16_t>(Field::world_size);
  if (shared) {
    std::fill_n(to, rows.count, field_of(point, field));
    return;
  }
  for (std::size_t i = 0; i < rows.count; ++i) {
    const Row row(point.batch->columns, point.batch->rows, rows.from + i);
    point.row = &row;
    to[i] = field_of(point, field);
  }
}

// ── Operations: into `a` ───────────────────────────────────────────────────────────────────────

// What is not known on either side is not known.
template <typename Holds>
[[gnu::always_inline]] inline void compare(double* a, const double* b, std::size_t count,
                                           Holds holds) {
  for (std::size_t i = 0; i < count; ++i) {
    const double known = holds(a[i], b[i]) ? 1.0 : 0.0;
    a[i] = std::isunordered(a[i], b[i]) ? kNone : known;
  }
}

TOCSIN_TOGETHER void compare(Op op, double* a, const double* b, std::size_t count) {
  switch (op) {
    case Op::less:
      return compare(a, b, count, std::less<>());
    case Op::less_equal:
      return compare(a, b, count, std::less_equal<>());
    case Op::greater:
      return compare(a, b, count, std::greater<>());
    case Op::greater_equal:
      return compare(a, b, count, std::greater_equal<>());
    case Op::equal:
      return compare(a, b, count, std::equal_to<>());
    default:
      return compare(a, b, count, std::not_equal_to<>());
  }
}

// The smaller, or the greater; the sign of a zero is nobody's matter.
TOCSIN_TOGETHER void extreme(bool least, double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool first = (a[i] < b[i]) == least;
    const double known = first ? a[i] : b[i];
    a[i] = std::isunordered(a[i], b[i]) ? kNone : known;
  }
}

// One side may decide alone: 0 of `both`, 1 of `either`.
TOCSIN_TOGETHER void join(double decides, double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double open = std::isunordered(a[i], b[i]) ? kNone : 1.0 - decides;
    const double right = b[i] == decides ? decides : open;
    a[i] = a[i] == decides ? decides : right;
  }
}

TOCSIN_TOGETHER void divide(double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double quotient = a[i] / b[i];
    a[i] = b[i] == 0 ? kNone : quotient;
  }
}

TOCSIN_TOGETHER void binary(Op op, double* a, const double* b, std::size_t count) {
  switch (op) {
    case Op::add:
      for (std::size_t i = 0; i < count; ++i) a[i] += b[i];
      break;
    case Op::subtract:
      for (std::size_t i = 0; i < count; ++i) a[i] -= b[i];
      break;
    case Op::multiply:
      for (std::size_t i = 0; i < count; ++i) a[i] *= b[i];
      break;
    case Op::divide:
      return divide(a, b, count);
    case Op::both:
    case Op::either:
      return join(op == Op::both ? 0 : 1, a, b, count);
    case Op::least:
    case Op::greatest:
      return extreme(op == Op::least, a, b, count);
    default:
      return compare(op, a, b, count);
  }
}

TOCSIN_TOGETHER void unary(Op op, double* a, std::size_t count) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  switch (op) {
    case Op::negate:
      for (std::size_t i = 0; i < count; ++i) a[i] = -a[i];
      break;
    case Op::invert:
      for (std::size_t i = 0; i < count; ++i) a[i] = 1.0 - a[i];
      break;
    case Op::absolute:
      for (std::size_t i = 0; i < count; ++i) a[i] = std::fabs(a[i]);
      break;
    case Op::log10:
      for (std::size_t i = 0; i < count; ++i) a[i] = a[i] > 0 ? std::log10(a[i]) : kNone;
      break;
    case Op::sqrt:
      for (std::size_t i = 0; i < count; ++i) a[i] = a[i] >= 0 ? std::sqrt(a[i]) : kNone;
      break;
    default:  // finite
      for (std::size_t i = 0; i < count; ++i) a[i] = std::fabs(a[i]) <= kLargest ? 1.0 : 0.0;
  }
}

TOCSIN_TOGETHER void choose(double* which, const double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double chosen = which[i] != 0 ? a[i] : b[i];
    which[i] = std::isnan(which[i]) ? kNone : chosen;
  }
}

}  // namespace

bool fits_block(std::span<const Instruction> code, std::size_t aggregates) {
  return !code.empty() && depth_of(code) <= kDepth &&
         std::none_of(code.begin(), code.end(), [&](const Instruction& one) {
           if (one.op == Op::aggregate) return one.index >= aggregates;
           return one.op > Op::aggregate && one.op <= Op::fold;
         });
}

void run_block(std::span<const Instruction> code, const Point& point, std::size_t from,
               std::span<double> values, std::span<const BlockColumn> aggregates) {
  std::array<BlockColumn, kDepth> stack;  // NOLINT: written before it is read
  const Rows rows{point, from, values.size()};
  std::size_t top = 0;
  for (const Instruction& one : code) {
    switch (one.op) {
      case Op::constant:
        std::fill_n(stack[top++].begin(), rows.count, one.number);
        break;
      case Op::field:
        read(rows, one.index, stack[top++].data());
        break;
      case Op::aggregate:
        std::copy_n(aggregates[one.index].begin(), rows.count, stack[top++].begin());
        break;
      case Op::negate:
      case Op::invert:
      case Op::absolute:
      case Op::log10:
      case Op::sqrt:
      case Op::finite:
        unary(one.op, stack[top - 1].data(), rows.count);
        break;
      case Op::choose:
        top -= 2;
        choose(stack[top - 1].data(), stack[top].data(), stack[top + 1].data(), rows.count);
        break;
      default:
        --top;
        binary(one.op, stack[top - 1].data(), stack[top].data(), rows.count);
    }
  }
  std::copy_n(stack[0].begin(), rows.count, values.begin());
}

}  // namespace tocsin::rules::declared
