// fired("rule"): whether another rule of the run hit lately, as of a step. What hits at later steps
// may be heard before: it waits until it is due.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rules/contract/archive.h"
#include "rules/declared/memory.h"
#include "rules/declared/step_axis.h"

namespace tocsin::rules::declared {

class Heard {
 public:
  void add(std::size_t which, core::Mode mode, std::int64_t step) {
    std::vector<std::uint64_t>& rules = coming_[{static_cast<std::uint8_t>(mode), step}];
    if (std::find(rules.begin(), rules.end(), which) == rules.end()) rules.push_back(which);
  }

  /// What each of Formula::hearings comes to at `place`, 1 or 0.
  void at(const Formula& formula, const StepAxis& axis, std::int64_t place,
          std::vector<double>& out) {
    out.clear();
    if (formula.hearings.empty()) return;
    std::vector<std::int64_t>& newest = then_;
    newest = newest_;
    for (const auto& [step, rules] : coming_) {
      const auto known = axis.place(static_cast<core::Mode>(step.first), step.second);
      if (known && *known <= place) note(newest, rules, *known);
    }
    for (const Formula::Hearing& one : formula.hearings) {
      const std::int64_t last = one.which < newest.size() ? newest[one.which] : StepAxis::kNever;
      const bool lately =
          last != StepAxis::kNever && (one.steps == 0 || StepAxis::steps(last, place) <= one.steps);
      out.push_back(lately ? 1 : 0);
    }
  }
  /// Everything up to this place was judged.
  void settled(const StepAxis& axis, std::int64_t place) {
    std::erase_if(coming_, [&](const auto& one) {
      const auto known = axis.place(static_cast<core::Mode>(one.first.first), one.first.second);
      if (!known || *known > place) return false;
      note(newest_, one.second, *known);
      return true;
    });
  }

  template <typename A>
  friend void io(A& a, Heard& h) {
    io_all(a, h.coming_, h.newest_);
  }

 private:
  static void note(std::vector<std::int64_t>& newest, const std::vector<std::uint64_t>& rules,
                   std::int64_t place) {
    for (const std::uint64_t which : rules) {
      if (newest.size() <= which) newest.resize(which + 1, StepAxis::kNever);
      newest[which] = std::max(newest[which], place);
    }
  }

  std::map<std::pair<std::uint8_t, std::int64_t>, std::vector<std::uint64_t>> coming_;  // by step
  std::vector<std::int64_t> newest_;  // place of the newest hit that is settled, by rule
  std::vector<std::int64_t> then_;    // for at(); not in snapshots
};

}  // namespace tocsin::rules::declared
