// The spread of a set of values, as a box plot shows it (Tukey 1977).
#pragma once

#include <string>
#include <vector>

#include "rules/contract/finding.h"

namespace tocsin::rules {

struct Box {
  double p05 = 0;
  double p25 = 0;
  double p50 = 0;
  double p75 = 0;
  double p95 = 0;
  double max = 0;
  double lower = 0;  // whiskers: 1.5 interquartile ranges beyond the box, clipped to the data
  double upper = 0;
};

/// Of at least one value.
Box box_of(std::vector<double> values);
/// Adds quartiles and whiskers to the evidence; `of` stands in front of their names: "gpu_p25".
void add_box(Finding& finding, const Box& box, const std::string& of = {});

}  // namespace tocsin::rules
