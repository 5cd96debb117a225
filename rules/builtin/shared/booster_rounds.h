// The rounds of a booster in the ledger: calls `<data>-<metric>` of whole data sets, without pairs
// (docs/ledger.md, Boosters). One round is judged beside the others of its step.
#pragma once

#include <string_view>

#include "rules/builtin/shared/ledger_rows.h"
#include "rules/builtin/shared/pairing_course.h"

namespace tocsin::rules {

struct BoosterRound {
  std::string_view data;
  std::string_view metric;

  /// Only loss calls of frameworks count themselves.
  static bool is(const LedgerCall& call) {
    return !call.has(LedgerCall::calls) && !call.has(LedgerCall::pairs) &&
           call.has(LedgerCall::trivial) && call.name.find('-') != std::string_view::npos;
  }
  static BoosterRound of(std::string_view name) {
    const std::size_t at = name.find('-');
    if (at == std::string_view::npos) return {{}, name};
    return {name.substr(0, at), name.substr(at + 1)};
  }
};

/// What the other calls of a booster (`courses`, by name) say of the round `name`.
template <typename Courses>
PairingBeside beside(std::string_view name, const Courses& courses, const PairingBounds& bounds) {
  const BoosterRound own = BoosterRound::of(name);
  PairingBeside out;
  for (const auto& [other_name, other] : courses) {
    if (other_name == name) continue;
    const BoosterRound one = BoosterRound::of(other_name);
    const bool same_data = one.data == own.data;
    if (same_data && PairingCourse::skill_of(other.skill.window()) >= bounds.worse) {
      out.known = true;
    }
    if (!same_data && one.metric == own.metric && other.has_learned(bounds)) out.learned = true;
  }
  return out;
}

}  // namespace tocsin::rules
