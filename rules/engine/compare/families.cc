#include "rules/engine/compare/families.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/identity.h"
#include "rules/engine/compare/other_runs.h"
#include "rules/engine/partition/evaluators.h"

namespace tocsin::rules {
namespace {

// nullopt: the run lacks a label that makes the family.
std::optional<core::RunUid> family_of(const PartitionState& part, const Run& run,
                                      std::uint32_t number) {
  const RuleTable::Evaluated& one = part.rules->evaluated[number];
  std::string text = "family:" + std::to_string(one.heritage);
  for (const std::string& wanted : one.program->family()) {
    const std::string* value = wanted == "job" ? &run.job.name : nullptr;
    for (const auto& [label, said] : run.job.labels) {
      if (wanted != "job" && label == wanted) value = &said;
    }
    if (value == nullptr || value->empty()) return std::nullopt;
    text += '\x1f' + *value;
  }
  return core::run_uid_v5(text);
}

/// It is of use: kept for longer.
Family& used(const Turn& turn, const core::RunUid& uid) {
  Family& family = Families::open(turn.part, uid, turn.now);
  turn.part.cut.touch_head(family);
  family.last_used = turn.now;
  return family;
}

}  // namespace

Family& Families::open(PartitionState& part, const core::RunUid& uid, std::int64_t now) {
  if (Family* const known = part.families.find(uid)) return *known;
  // What is left of it from before its rule was taken out, and came back, gives way.
  if (const auto left = part.runs.find({uid, 0}); left != part.runs.end()) {
    part.cut.retire(std::move(left->second));
    part.runs.erase(left);
  }
  Family fresh;
  fresh.uid = uid;
  fresh.life = part.cut.fresh_life();
  fresh.first_seen = fresh.last_used = now;
  return part.families.add(std::move(fresh));
}

const Evaluator* Families::evaluator(const PartitionState& part, const Run& run,
                                     std::uint32_t number) {
  const auto uid = family_of(part, run, number);
  if (!uid) return nullptr;
  const Family* const family = part.families.find(*uid);
  if (family == nullptr || !has_evaluator(family->evaluators, number)) return nullptr;
  return family->evaluators[number].evaluator.get();
}

void Families::meet(const Turn& turn, const Run& run, std::uint32_t number) {
  if (turn.rules().evaluated[number].program->family().empty()) return;
  const auto uid = family_of(turn.part, run, number);
  if (!uid) return;
  Family& family = used(turn, *uid);
  if (!has_evaluator(family.evaluators, number)) turn.part.families.met();
  (void)evaluator_of(turn.part, family, number);
}

void Families::join(const Turn& turn, Run& run) {
  if (run.job.outcome != "completed") return;
  for (const std::uint32_t number : turn.rules().families) {
    const auto uid =
        has_evaluator(run.evaluators, number) ? family_of(turn.part, run, number) : std::nullopt;
    if (!uid) continue;
    Family& family = used(turn, *uid);
    const std::string prefix = comparison_key(*uid, turn.rules().evaluated[number].heritage);
    const auto say = [&](const std::string& key, std::optional<std::string> value) {
      if (!options_.shares_comparisons || turn.part.silent) return;
      ++stats_.comparisons_told;
      turn.part.output.comparisons.push_back({prefix + key, std::move(value)});
    };
    Evaluator& elders = evaluator_of(turn.part, family, number);
    evaluator_of(turn.part, run, number)
        .publish([&](std::string key, std::optional<std::string> value) {
          elders.learn(key, value);
          say(key, std::move(value));
        });
    elders.publish(say);
  }
}

}  // namespace tocsin::rules
