// One rule with many values of one parameter, over one reading of the data: when each value would
// have fired.
#pragma once

#include <string>
#include <vector>

#include "app/replay/judgement_text.h"

namespace tocsin::app {

struct SweepValue {
  std::string text;  // "1e-07", "30s"
  std::string rule;  // name of the rule that has it: "vanishing_gradient@1e-07"
};

struct Sweep {
  std::string rule;  // the one that is varied
  std::string parameter;
  std::vector<SweepValue> values;
};

/// "[RULE.]PARAMETER=LOW..HIGH[:STEPS]" or "…=A,B,C": numbers or durations; switches (true,false) and
/// words one by one. A span of a factor of
/// ten or more is cut in equal ratios, one value per decade unless STEPS says otherwise; a smaller
/// one in equal parts. `rules` becomes that rule once per value, alone; it must be a built-in one.
/// Without RULE the parameter must belong to one rule only. invalid_argument: no such rule or
/// parameter (with the nearest), a value that the rule refuses.
core::Result<Sweep> make_sweep(const std::string& text, rules::RulesConfig& rules);

/// A table per run, and one over all runs where there are several: what stopping at the first issue
/// would have spared of runs that did not complete, and how many stops would have ended one that did.
std::string sweep_text(const Sweep& sweep, const Judgement& judgement);
core::Value sweep_value(const Sweep& sweep, const Judgement& judgement);

}  // namespace tocsin::app
