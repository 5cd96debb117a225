// A number that is not there: a constant, which std::nan() is not for every compiler.
#pragma once

#include <limits>

namespace tocsin::rules {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

}  // namespace tocsin::rules
