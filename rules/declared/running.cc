#include "rules/declared/running.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "rules/contract/no_number.h"
#include "rules/contract/selection.h"

namespace tocsin::rules::declared {

void Running::add(double x, const Where& where, bool boolean) noexcept {
  if (!std::isfinite(x)) return;
  if (boolean) {
    n_ += x;
    return;
  }
  n_ += 1;
  switch (kind_) {
    case Kind::sum:
      a_ += x;
      break;
    case Kind::zscore:
      add_newest(x);
      break;
    case Kind::mean:
    case Kind::std: {
      const double off = x - mean_;
      mean_ += off / n_;
      m2_ += off * (x - mean_);
      break;
    }
    case Kind::min:
      a_ = n_ == 1 ? x : std::fmin(a_, x);
      break;
    case Kind::max:
      a_ = n_ == 1 ? x : std::fmax(a_, x);
      break;
    case Kind::first:
      if (n_ == 1) a_ = x;
      break;
    case Kind::delta:
    case Kind::rate:
      add_end(x, where.time);
      break;
    case Kind::slope:
      add_slope(x, where.place);
      break;
    case Kind::ewma:
      a_ = n_ == 1 ? x : number_ * x + (1 - number_) * a_;
      break;
    case Kind::steps_since_min:
    case Kind::steps_since_max:
      add_extreme(x, where.step);
      break;
    default:
      a_ = x;
  }
}

// What was the newest belongs to those before it now.
void Running::add_newest(double x) noexcept {
  if (n_ > 1) {
    const double off = a_ - mean_;
    mean_ += off / (n_ - 1);
    m2_ += off * (a_ - mean_);
  }
  a_ = x;
}

void Running::add_end(double x, std::int64_t time) noexcept {
  if (n_ == 1) {
    a_ = x;
    begin_ = time;
  }
  b_ = x;
  end_ = time;
}

void Running::add_extreme(double x, std::int64_t step) noexcept {
  if (n_ != 1 && !(kind_ == Kind::steps_since_min ? x < a_ : x > a_)) return;
  a_ = x;
  begin_ = step;
}

// Least squares, one point at a time; the axis is counted from its first point.
void Running::add_slope(double x, std::int64_t place) noexcept {
  if (n_ == 1) begin_ = place;
  const auto along = static_cast<double>(distance(place, begin_));
  const double off = along - mean_;
  mean_ += off / n_;
  m2_ += off * (along - mean_);
  a_ += (x - a_) / n_;   // mean of values
  b_ += off * (x - a_);  // sum of products
}

double Running::result(std::int64_t step) const noexcept {
  const double none = kNoNumber;
  if (kind_ == Kind::count) return n_;
  if (n_ == 0) return none;
  switch (kind_) {
    case Kind::mean:
      return mean_;
    case Kind::std:
      return n_ < 2 ? none : std::sqrt(m2_ / n_);
    case Kind::delta:
      return n_ < 2 ? none : b_ - a_;
    case Kind::rate: {
      const auto took = static_cast<double>(distance(end_, begin_));
      return took > 0 ? (b_ - a_) / (took / 1e9) : none;
    }
    case Kind::slope:
      return m2_ > 0 ? b_ / m2_ * number_ : none;
    case Kind::zscore: {
      const double deviation = n_ < 3 ? 0 : std::sqrt(m2_ / (n_ - 1));
      return deviation > 0 ? (a_ - mean_) / deviation : none;
    }
    case Kind::steps_since_min:
    case Kind::steps_since_max:
      return static_cast<double>(distance(step, begin_));
    default:
      return a_;
  }
}

void Running::load(const std::uint64_t* words) noexcept {
  double* const numbers[] = {&n_, &mean_, &m2_, &a_, &b_};
  for (double* number : numbers) *number = std::bit_cast<double>(*words++);
  begin_ = static_cast<std::int64_t>(*words++);
  end_ = static_cast<std::int64_t>(*words);
}

void Running::store(std::uint64_t* words) const noexcept {
  for (const double number : {n_, mean_, m2_, a_, b_})
    *words++ = std::bit_cast<std::uint64_t>(number);
  *words++ = static_cast<std::uint64_t>(begin_);
  *words = static_cast<std::uint64_t>(end_);
}

namespace {

// Sum of the distances of n values from `first`, in four chains that do not wait for each other.
double distances(const std::uint64_t* values, std::uint64_t n, double first) noexcept {
  std::array<double, 4> off{};
  std::uint64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) off[k] += std::bit_cast<double>(values[i + k]) - first;
  }
  for (; i < n; ++i) off[0] += std::bit_cast<double>(values[i]) - first;
  return (off[0] + off[1]) + (off[2] + off[3]);
}

}  // namespace

double ring_mean(const std::uint64_t* ring, std::uint64_t capacity, std::uint64_t at,
                 std::uint64_t points) noexcept {
  if (points == 0) return std::nan("");
  // Most often all are finite, and so is their sum.
  const double oldest = std::bit_cast<double>(ring[at]);
  const std::uint64_t straight = std::min(points, capacity - at);
  const double sum =
      distances(ring + at, straight, oldest) + distances(ring, points - straight, oldest);
  if (std::isfinite(sum)) return oldest + sum / static_cast<double>(points);
  double n = 0;
  double first = 0;
  double off = 0;
  for (std::uint64_t i = 0; i < points; ++i) {
    const double x = std::bit_cast<double>(ring[at]);
    if (++at == capacity) at = 0;
    if (!std::isfinite(x)) continue;
    if (n == 0) first = x;
    n += 1;
    off += x - first;
  }
  return n == 0 ? std::nan("") : first + off / n;
}

double exact_quantile(const std::uint64_t* ring, std::uint64_t capacity, std::uint64_t at,
                      std::uint64_t points, double q) {
  std::array<double, 2 * kMostPoints + 1> values;  // NOLINT: written before it is read
  std::size_t n = 0;
  for (std::uint64_t i = 0; i < points; ++i) {
    const double x = std::bit_cast<double>(ring[at]);
    if (++at == capacity) at = 0;
    if (std::isfinite(x)) values[n++] = x;
  }
  if (n == 0) return std::nan("");
  const double place = q * static_cast<double>(n - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(below);
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(n);
  std::nth_element(values.begin(), middle, end);
  if (below + 1 >= n) return *middle;
  const double above = *std::min_element(middle + 1, end);
  return *middle + (place - static_cast<double>(below)) * (above - *middle);
}

}  // namespace tocsin::rules::declared
