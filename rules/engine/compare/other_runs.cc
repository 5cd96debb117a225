#include "rules/engine/compare/other_runs.h"

#include <algorithm>
#include <cstdio>

namespace tocsin::rules {

bool is_compared_with(const RuleTable& rules, const Run& run) {
  return std::any_of(rules.comparing.begin(), rules.comparing.end(), [&](std::uint32_t number) {
    return *rules.evaluated[number].program->other() == run.id.uid;
  });
}

std::string comparison_key(const core::RunUid& run, std::uint64_t identity) {
  char number[17];
  std::snprintf(number, sizeof number, "%016llx", static_cast<unsigned long long>(identity));
  return core::to_text(run) + "/" + number + "/";
}

const Evaluator* evaluator_of_other(const PartitionState& part, std::uint32_t rule) {
  for (const std::uint32_t number : part.rules->comparing) {
    const RuleTable::Evaluated& one = part.rules->evaluated[number];
    if (one.rule != rule) continue;
    const auto found = part.runs.find({*one.program->other(), 0});
    if (found == part.runs.end() || number >= found->second->evaluators.size()) return nullptr;
    return found->second->evaluators[number].evaluator.get();
  }
  return nullptr;
}

}  // namespace tocsin::rules
