// One line per measured figure, the same in every benchmark:
//   name  value unit  ratio to baseline  target  pass|miss
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace tocsin::bench {

inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  return values[at];
}

inline void figure(const std::string& name, double value, const std::string& unit) {
  std::printf("%-52s %14.4g %-14s\n", name.c_str(), value, unit.c_str());
  std::fflush(stdout);
}

/// `at_least`: the target is a floor, else a ceiling.
inline void judged(const std::string& name, double value, const std::string& unit, double target,
                   bool at_least) {
  const bool pass = at_least ? value >= target : value <= target;
  std::printf("%-52s %14.4g %-14s target %s %-10.4g %s\n", name.c_str(), value, unit.c_str(),
              at_least ? ">=" : "<=", target, pass ? "pass" : "miss");
  std::fflush(stdout);
}

/// A figure with its floor from the same run and the ratio of both; `target`: the most that ratio
/// may be, 0 for none. False when it is missed.
inline bool beside(const std::string& name, double value, double floor, const std::string& unit,
                   double target) {
  const double ratio = floor > 0 ? value / floor : 0;
  std::printf("%-52s %14.4g %-4s floor %-9.4g ratio %-6.3g", name.c_str(), value, unit.c_str(),
              floor, ratio);
  const bool pass = target <= 0 || (floor > 0 && ratio <= target);
  if (target > 0) std::printf("  target <= %-5.3g %s", target, pass ? "pass" : "miss");
  std::printf("\n");
  std::fflush(stdout);
  return pass;
}

}  // namespace tocsin::bench
