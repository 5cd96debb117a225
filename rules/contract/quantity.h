// Sizes and durations in sentences, in the unit that fits.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "rules/contract/rule.h"

namespace tocsin::rules {

namespace quantity {

struct Unit {
  double from;  // the smallest amount that is shown in it
  double size;
  std::string_view name;
};

inline constexpr Unit kSizes[] = {{0x1p40, 0x1p40, " TiB"},
                                  {0x1p30, 0x1p30, " GiB"},
                                  {0x1p20, 0x1p20, " MiB"},
                                  {0x1p10, 0x1p10, " KiB"},
                                  {0, 1, " B"}};
// A limit of 90 s is no 1.5 min.
inline constexpr Unit kDurations[] = {
    {7200, 3600, " h"}, {120, 60, " min"}, {1, 1, " s"}, {1e-3, 1e-3, " ms"}, {0, 1e-6, " us"}};

inline std::string in_unit(double amount, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (std::fabs(amount) >= unit.from) return figure(amount / unit.size) + std::string(unit.name);
  }
  return figure(amount);  // NaN
}

}  // namespace quantity

/// "512 B", "3.5 KiB", "1.25 GiB".
inline std::string size_text(double bytes) { return quantity::in_unit(bytes, quantity::kSizes); }

/// "250 us", "12.3 ms", "90 s", "30 min", "2.5 h"; 0: "0 us".
inline std::string duration_text(double seconds) {
  return quantity::in_unit(seconds, quantity::kDurations);
}

}  // namespace tocsin::rules
