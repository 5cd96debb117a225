#include "rules/engine/compare/families.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/identity.h"
#include "rules/engine/compare/other_runs.h"
#include "rules/engine/partition/evaluators.h"

namespace tocsin::rules {
namespace {

bool has_evaluator(const Run& run, std::uint32_t number) {
  return number < run.evaluators.size() && run.evaluators[number].evaluator != nullptr;
}

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

Run& made(const Turn& turn, const core::RunUid& uid) {
  std::unique_ptr<Run>& run = turn.part.runs[{uid, 0}];
  if (!run) {
    run = std::make_unique<Run>();
    run->id = {uid, 0};
    run->partition = turn.part.number;
    run->life = run->names.life = turn.part.cut.fresh_life();
    run->course.first_seen = turn.now;
    run->issues.progress.resize(turn.rules().all.size());
    run->job.ended = true;
  }
  turn.part.cut.touch_head(*run);
  run->course.last_arrival = run->course.last_any = turn.now;  // it is of use
  return *run;
}

}  // namespace

bool is_family(const RuleTable& rules, const Run& run) {
  return run.workers.empty() &&
         std::any_of(rules.families.begin(), rules.families.end(),
                     [&](std::uint32_t number) { return has_evaluator(run, number); });
}

const Evaluator* Families::evaluator(const PartitionState& part, const Run& run,
                                     std::uint32_t number) {
  const auto uid = family_of(part, run, number);
  if (!uid) return nullptr;
  const auto found = part.runs.find({*uid, 0});
  if (found == part.runs.end() || !has_evaluator(*found->second, number)) return nullptr;
  return found->second->evaluators[number].evaluator.get();
}

void Families::meet(const Turn& turn, const Run& run, std::uint32_t number) {
  if (turn.rules().evaluated[number].program->family().empty()) return;
  const auto uid = family_of(turn.part, run, number);
  if (!uid) return;
  Run& family = made(turn, *uid);
  if (!has_evaluator(family, number)) ++turn.part.families_met;
  (void)evaluator_of(turn.part, family, number);
}

void Families::join(const Turn& turn, Run& run) {
  if (run.job.outcome != "completed") return;
  for (const std::uint32_t number : turn.rules().families) {
    const auto uid = has_evaluator(run, number) ? family_of(turn.part, run, number) : std::nullopt;
    if (!uid) continue;
    Run& family = made(turn, *uid);
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
