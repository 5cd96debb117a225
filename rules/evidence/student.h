// Student's t distribution for whole degrees of freedom, in closed form.
#pragma once

#include <cmath>
#include <numbers>

namespace tocsin::rules {

/// P(T > t), to 1e-15 absolute. `df` >= 1.
inline double student_tail(double t, int df) {
  const double angle = std::atan(std::fabs(t) / std::sqrt(static_cast<double>(df)));
  const double cosine = std::cos(angle);
  const bool odd = df % 2 != 0;
  double term = odd ? cosine : 1;
  double series = df == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k <= df - 2; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    series += term;
  }
  const double inside =
      odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * series) : std::sin(angle) * series;
  const double tail = (1 - inside) / 2;
  return t > 0 ? tail : 1 - tail;
}

/// The t with P(T > t) = `tail`, 0 < tail < 0.5.
inline double student_quantile(double tail, int df) {
  double low = 0;
  double high = 1;
  while (student_tail(high, df) > tail && high < 1e12) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_tail(middle, df) > tail ? low : high) = middle;
  }
  return high;
}

}  // namespace tocsin::rules
