#include "rules/evaluate/box.h"

#include <algorithm>

#include "rules/evaluate/horizon.h"

namespace tocsin::rules {

Box box_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Box box;
  box.p05 = quantile(values, 0.05);
  box.p25 = quantile(values, 0.25);
  box.p50 = quantile(values, 0.5);
  box.p75 = quantile(values, 0.75);
  box.p95 = quantile(values, 0.95);
  box.max = values.back();
  constexpr double kWhisker = 1.5;
  const double reach = kWhisker * (box.p75 - box.p25);
  box.lower = std::max(values.front(), box.p25 - reach);
  box.upper = std::min(values.back(), box.p75 + reach);
  return box;
}

void add_box(Finding& finding, const Box& box, const std::string& of) {
  finding.with(of + "p25", box.p25)
      .with(of + "p50", box.p50)
      .with(of + "p75", box.p75)
      .with(of + "lower_whisker", box.lower)
      .with(of + "upper_whisker", box.upper);
}

}  // namespace tocsin::rules
