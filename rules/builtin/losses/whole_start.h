// Whether a loss of whole data sets runs away from the start, as boosting with too large a rate does.
#pragma once

#include <cmath>
#include <cstdint>

#include "rules/contract/whole.h"

namespace tocsin::rules {

/// No batch makes such a value waver: the test of LossStart, which first learns how much single batches
/// scatter, would wait for nothing. A tree of gradient boosting takes the fraction `eta` of the step
/// that its leaves would best take; above 2 each round leaves a larger residual of a squared error than
/// the one before, by |1 − eta|. One larger value may be a round of few rows. Trivially copyable.
struct WholeStart {
  static constexpr std::uint32_t kFirst = 16;  // values that are looked at
  static constexpr std::uint32_t kRow = 2;
  static constexpr double kTwice = 2;

  double first = 0;
  std::uint32_t seen = 0;
  std::uint32_t above = 0;  // values in a row of more than twice the first

  /// Takes a finite value. `whole`: it is one of a whole data set.
  bool runs_away(double loss, bool whole) {
    if (!std::isfinite(loss) || seen >= kFirst) return false;
    if (seen++ == 0) first = loss;
    above = whole && loss > kTwice * std::fabs(first) ? above + 1 : 0;
    return above >= kRow;
  }
};

}  // namespace tocsin::rules
