// What labels and predictions come to on the wire: counts per class, made by the hook.
#pragma once

#include <cmath>
#include <span>

namespace tocsin::rules {

/// Whether these can be counts: whole numbers from 0 on, small enough to be exact.
inline bool are_counts(std::span<const double> values) {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  for (const double x : values) {
    if (!(x >= 0 && x <= kMost) || x != std::floor(x)) return false;
  }
  return true;
}

/// Classes that a rule keeps numbers of. More are no classes but values.
inline constexpr std::size_t kMostClasses = std::size_t{1} << 16;

}  // namespace tocsin::rules
