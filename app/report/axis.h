// Where a number stands on a chart, and which numbers are written beside it.
#pragma once

#include <vector>

namespace tocsin::app::report {

class Axis {
 public:
  /// From `low` to `high` on pixels `from` to `to`. `logarithmic` wants both above 0. Bounds that are
  /// equal are drawn apart.
  Axis(double low, double high, double from, double to, bool logarithmic = false);

  [[nodiscard]] double at(double value) const;
  /// Round numbers within the bounds, about `wanted` of them, at least one.
  [[nodiscard]] std::vector<double> ticks(int wanted) const;

 private:
  double low_;
  double high_;
  double from_;
  double to_;
  bool logarithmic_;
};

}  // namespace tocsin::app::report
