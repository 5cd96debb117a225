#include "rules/engine/jobs/reload.h"
#include "rules/engine/partition/describe.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace tocsin::rules {
namespace {

// The unit of this issue is as one that does not fire: its next hit begins another one.
void close_life(Run& run, const OpenKey& key, const RuleTable& rules) {
  const auto closed = [&](Life& life) {
    life.open = static_cast<std::uint8_t>(life.open & ~(1U << key.kind));
  };
  if (key.roster != kNoRoster) {
    for (std::size_t r = 0; r < rules.rows.size(); ++r) {
      if (rules.rows[r].rule == key.rule) closed(run.rosters[key.roster].blocks[r].lives[key.item]);
    }
    return;
  }
  if (const auto known = run.issues.lives.find({key.rule, key.item});
      known != run.issues.lives.end()) {
    closed(known->second);
  }
  const auto clock = run.issues.clocks.find({key.rule, static_cast<std::uint32_t>(key.item)});
  if (clock != run.issues.clocks.end()) clock->second.fired = false;
}

}  // namespace

void Reload::apply(const Turn& turn, std::shared_ptr<const RuleTable> next) {
  PartitionState& part = turn.part;
  const std::shared_ptr<const RuleTable> before = part.rules;  // until its evaluators are gone
  const Remap moves(before->layout(), *next);
  for (auto& [id, run] : part.runs) {
    part.cut.touch_all(*run);
    end_issues(turn, *run, *next, moves);
    end_statuses(turn, *run, *next, moves);
    moves.apply(*run);
    move_evaluators(turn, *run, *next);
  }
  move_families(turn, *next);
  part.rules = std::move(next);
  turn.part.deadline.at_once();  // timers are found again
  if (!part.silent) ++stats_.reloads;
  for (auto& [id, run] : part.runs) {
    if (run->job.ended) continue;
    run->pulse.changed = true;  // the registry names the rules
    if (run->job.started) jobs_.request_capture(turn, *run, run->course.last_time);
  }
}

// Also those of rules that are told of from now on, or not any more: they fire anew, as what they
// are then.
void Reload::end_issues(const Turn& turn, Run& run, const RuleTable& next, const Remap& moves) {
  std::vector<std::pair<std::string, OpenKey>> keys;
  for (const auto& [key, open] : run.issues.open) {
    const auto number = moves.number(key.rule);
    const bool stays =
        number && next.settings(*number).shadow == turn.rules().settings(key.rule).shadow;
    if (!stays) keys.emplace_back(unit_text(open), key);
  }
  // Numbers of units depend on who came first; their texts do not.
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.rule, a.first) < std::tie(b.second.rule, b.first);
  });
  for (const auto& [text, key] : keys) end_issue(turn, run, key);
}

void Reload::end_issue(const Turn& turn, Run& run, const OpenKey& key) {
  std::uint64_t& sequence = run.issues.progress[key.rule].issue_sequence;
  reports_.emit(turn, book_.end_of_gone(turn, run, turn.rules().settings(key.rule),
                                        run.issues.open.at(key), ++sequence));
  close_life(run, key, turn.rules());
  IssueBook::forget(run, key);
}

void Reload::end_statuses(const Turn& turn, Run& run, const RuleTable& next, const Remap& moves) {
  if (run.job.ended) return;
  for (std::uint32_t rule = 0; rule < turn.rules().first_own; ++rule) {
    if (moves.number(rule)) continue;
    const std::string& name = turn.rules().settings(rule).name;
    const bool changed = std::any_of(next.all.begin(), next.all.end(),
                                     [&](const RuleSettings& other) { return other.name == name; });
    reports_.status(turn, run, rule, core::RuleState::stopped,
                    changed ? "the rule was changed and starts again"
                            : "the rule was removed from the configuration");
  }
}

// What a family learned stays for as long as one of its rules does.
void Reload::move_families(const Turn& turn, const RuleTable& next) {
  FamilyTable& families = turn.part.families;
  for (auto at = families.begin(); at != families.end();) {
    Family& family = at->second;
    turn.part.cut.touch_all(family);
    Family gone;
    gone.uid = family.uid;
    gone.life = family.life;
    move_evaluators(family.evaluators, next, gone.evaluators);
    const bool stays = !identities_of(family.evaluators).empty();
    if (!stays) gone.head_mark = family.head_mark;
    if (!stays || !gone.evaluators.empty()) turn.part.cut.retire(std::move(gone));
    at = stays ? std::next(at) : families.erase(at);
  }
}

void Reload::move_evaluators(const Turn& turn, Run& run, const RuleTable& next) {
  auto gone = std::make_unique<Run>();
  move_evaluators(run.evaluators, next, gone->evaluators);
  if (gone->evaluators.empty()) return;
  gone->id = run.id;
  gone->life = run.life;
  gone->names.life = run.names.life;
  turn.part.cut.retire(std::move(gone));
}

// Their states are read by evaluators of the new programs: what a rule says may have changed where
// its parameters have not.
void Reload::move_evaluators(EvaluatorParts& parts, const RuleTable& next, EvaluatorParts& gone) {
  EvaluatorParts kept(next.evaluated.size());
  for (EvaluatorPart& one : parts) {
    if (!one.evaluator) continue;
    const auto number = next.evaluated_as(one.identity);
    if (!number) {
      gone.push_back(std::move(one));
      continue;
    }
    std::string bytes;
    Writer writer(bytes);
    one.evaluator->save(writer);
    Loader loader(bytes);
    one.evaluator = next.evaluated[*number].program->evaluator();
    one.evaluator->load(loader);
    kept[*number] = std::move(one);
  }
  parts = std::move(kept);
}

}  // namespace tocsin::rules
