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
std::optional<core::RunUid> family_of(const Context& ctx, const Run& run, std::uint32_t number) {
  const RuleTable::Evaluated& one = ctx.rules->evaluated[number];
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

Run& made(Context& ctx, const core::RunUid& uid) {
  std::unique_ptr<Run>& run = ctx.part->runs[{uid, 0}];
  if (!run) {
    run = std::make_unique<Run>();
    run->id = {uid, 0};
    run->partition = ctx.part->number;
    run->life = run->names.life = ctx.part->cut.fresh_life();
    run->course.first_seen = ctx.now;
    run->issues.progress.resize(ctx.rules->all.size());
    run->job.ended = true;
  }
  ctx.part->cut.touch_head(*run);
  run->course.last_arrival = run->course.last_any = ctx.now;  // it is of use
  return *run;
}

}  // namespace

bool is_family(const RuleTable& rules, const Run& run) {
  return run.workers.empty() &&
         std::any_of(rules.families.begin(), rules.families.end(),
                     [&](std::uint32_t number) { return has_evaluator(run, number); });
}

const Evaluator* evaluator_of_family(const Context& ctx, const Run& run, std::uint32_t number) {
  const auto uid = family_of(ctx, run, number);
  if (!uid) return nullptr;
  const auto found = ctx.part->runs.find({*uid, 0});
  if (found == ctx.part->runs.end() || !has_evaluator(*found->second, number)) return nullptr;
  return found->second->evaluators[number].evaluator.get();
}

void meet_family(Context& ctx, const Run& run, std::uint32_t number) {
  if (ctx.rules->evaluated[number].program->family().empty()) return;
  const auto uid = family_of(ctx, run, number);
  if (!uid) return;
  Run& family = made(ctx, *uid);
  if (!has_evaluator(family, number)) ++ctx.part->families_met;
  (void)evaluator_of(ctx, family, number);
}

void join_families(Context& ctx, Run& run) {
  if (run.job.outcome != "completed") return;
  for (const std::uint32_t number : ctx.rules->families) {
    const auto uid = has_evaluator(run, number) ? family_of(ctx, run, number) : std::nullopt;
    if (!uid) continue;
    Run& family = made(ctx, *uid);
    const std::string prefix = comparison_key(*uid, ctx.rules->evaluated[number].heritage);
    const auto say = [&](const std::string& key, std::optional<std::string> value) {
      if (!ctx.options.shares_comparisons || ctx.part->silent) return;
      ++ctx.stats.comparisons_told;
      ctx.part->output.comparisons.push_back({prefix + key, std::move(value)});
    };
    Evaluator& elders = evaluator_of(ctx, family, number);
    evaluator_of(ctx, run, number).publish([&](std::string key, std::optional<std::string> value) {
      elders.learn(key, value);
      say(key, std::move(value));
    });
    elders.publish(say);
  }
}

}  // namespace tocsin::rules
