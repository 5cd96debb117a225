#include "app/api/rule_standings.h"

#include <cstdint>
#include <tuple>
#include <utility>

#include "core/time.h"

namespace tocsin::app {

void RuleStandings::saw(const core::RuleStatusEvent& rule) {
  const auto [place, first] = newest_.try_emplace(rule.rule, rule);
  if (first) return;
  core::RuleStatusEvent& known = place->second;
  const bool same_attempt = rule.run.attempt == known.run.attempt;
  const bool later =
      std::tie(rule.run.attempt, rule.time) >= std::tie(known.run.attempt, known.time);
  core::ValueMap summed_up = same_attempt ? known.summary : core::ValueMap{};
  if (later)
    known = rule;
  else if (!same_attempt)
    return;
  if (!known.summary.empty()) return;
  if (rule.summary.empty())
    known.summary = std::move(summed_up);
  else
    known.summary = rule.summary;
}

core::ValueList RuleStandings::rows() const {
  core::ValueList out;
  for (const auto& [name, rule] : newest_) {
    core::ValueMap evaluations;
    for (const auto& [outcome, count] : rule.evaluations)
      evaluations.emplace_back(outcome, static_cast<std::int64_t>(count));
    out.push_back(core::ValueMap{
        {"rule", name},
        {"type", rule.rule_type},
        {"version", rule.rule_version},
        {"status", std::string(core::to_string(rule.status))},
        {"reason", rule.reason.empty() ? core::Value() : core::Value(rule.reason)},
        {"missing", core::ValueList(rule.missing.begin(), rule.missing.end())},
        {"evaluations", std::move(evaluations)},
        {"summary", rule.summary.empty() ? core::Value() : core::Value(rule.summary)},
        {"time", core::to_rfc3339(rule.time)}});
  }
  return out;
}

}  // namespace tocsin::app
