#include "rules/engine/issues/issue_book.h"

#include <algorithm>
#include <tuple>

#include "core/identity.h"
#include "rules/engine/issues/found_words.h"
#include "rules/engine/partition/describe.h"
#include "rules/engine/partition/evaluators.h"

namespace tocsin::rules {
namespace {

std::string kind_name(const Program& program, unsigned kind) {
  return kind < program.kinds.size() ? std::string(program.kinds[kind]) : std::string();
}

std::string spelled(const std::vector<std::pair<std::string, std::string>>& unit) {
  std::string text;
  for (const auto& [name, value] : unit) text += (text.empty() ? "" : ", ") + name + " " + value;
  return text.empty() ? "the run" : text;
}

// Producers that count no steps over all modes leave that number behind.
std::int64_t global_step_of(const Place& place) { return std::max(place.global_step, place.step); }

// A second report of it would have the id of the first, and who reads it would drop it as told.
bool same_moment(const Open& open, const Place& place) {
  if (!place.step_clock) return open.last_report == place.time;
  return open.mode == place.mode && open.last_step == place.step;
}

// An issue that ended where it began, and began there once more, would have two beginnings of one id.
bool began_here(const Run& run, const OpenKey& key, const Place& place) {
  const auto found = run.issues.open.find(key);
  return found != run.issues.open.end() && same_moment(found->second, place) &&
         found->second.starts_at == found->second.last_report;
}

std::string end_of(const Open& open, core::Resolution resolution) {
  switch (resolution) {
    case core::Resolution::recovered:
      return "Back to normal for " + spelled(open.unit) + ".";
    case core::Resolution::job_ended:
      return "The job ended while this fired for " + spelled(open.unit) + ".";
    case core::Resolution::superseded:
      return "A new attempt of the run has started; this issue belongs to the previous one.";
    default:
      return "No longer followed: the run has sent nothing for too long.";
  }
}

// Of the tensor that the unit is or its evidence names, in its worker's order; nullopt: of none.
std::optional<std::uint32_t> slot_of(const Run& run, const OpenKey& key, const Open& open,
                                     const core::Issue& issue, const Place& place) {
  if (key.roster != kNoRoster) {
    if (run.rosters[key.roster].scalars) return std::nullopt;
    return static_cast<std::uint32_t>(key.item);
  }
  if (!issue.evidence.tensor || !place.mode) return std::nullopt;
  // Of all workers together: they train the same model, and the first has its tensors in the same order.
  const std::uint32_t worker = open.worker == kNoRoster ? 0 : open.worker;
  const std::uint32_t roster = run.rosters.find(worker, *place.mode, false);
  if (roster == kNoRoster) return std::nullopt;
  const std::uint32_t slot =
      run.rosters[roster].index.find(core::name_hash(issue.evidence.tensor->name));
  return slot == FlatIndex::kNone ? std::nullopt : std::optional(slot);
}

}  // namespace

void IssueBook::count(const Turn& turn, Run& run, std::uint32_t rule,
                      const EvaluationCounts& counts) {
  RuleProgress& progress = run.issues.progress[rule];
  std::uint64_t judged = 0;
  for (std::size_t i = 0; i < kEvaluationOutcomes; ++i) {
    progress.counts[i] += counts[i];
    judged += counts[i];
  }
  const std::uint64_t hits = counts[static_cast<std::size_t>(EvaluationOutcome::hit)];
  stats_.evaluations += judged;
  stats_.hits += hits;
  if (progress.state == core::RuleState::no_data &&
      (hits > 0 || counts[static_cast<std::size_t>(EvaluationOutcome::ok)] > 0)) {
    reports_.status(turn, run, rule, core::RuleState::in_progress);
  }
}

void IssueBook::sum_up(const Turn& turn, Run& run, std::uint32_t rule, std::int64_t period_end,
                       core::ValueMap told) {
  // Before its first evaluation there is nothing to sum up, and behind an error nothing to rely on.
  if (run.issues.progress[rule].state != core::RuleState::in_progress || told.empty()) return;
  reports_.status(turn, run, rule, core::RuleState::in_progress, {}, std::move(told), period_end);
}

void IssueBook::tell_so_far(const Turn& turn, Run& run, std::uint32_t rule, std::int64_t time,
                            core::ValueMap told) {
  const core::RuleState state = run.issues.progress[rule].state;
  if (state == core::RuleState::error || told.empty()) return;
  reports_.status(turn, run, rule, state, {}, std::move(told), time);
}

void IssueBook::fail(const Turn& turn, Run& run, std::uint32_t rule, std::string reason) {
  if (run.issues.progress[rule].state == core::RuleState::error) return;
  reports_.status(turn, run, rule, core::RuleState::error, std::move(reason));
}

void IssueBook::recover(const Turn& turn, Run& run, std::uint32_t rule) {
  const RuleProgress& progress = run.issues.progress[rule];
  if (progress.state != core::RuleState::error) return;
  const bool found = progress.counts[static_cast<std::size_t>(EvaluationOutcome::hit)] > 0;
  reports_.status(turn, run, rule,
                  found ? core::RuleState::issues_found : core::RuleState::in_progress,
                  "it works again");
}

void IssueBook::apply(const Turn& turn, Run& run, std::uint32_t rule, Life& life, const Unit& unit,
                      Verdict verdict, const Place& place, Explain explain) {
  const Common& common = turn.rules().settings(rule).program->common;
  if (verdict.outcome == EvaluationOutcome::ok) {
    life.hits = 0;
    if (life.open == 0 || ++life.oks < common.clear_after) return;
    life.oks = static_cast<std::uint16_t>(common.clear_after);  // 65535 at most
    for (std::uint8_t kind = 0; kind < 8; ++kind) {
      if ((life.open & (1U << kind)) == 0) continue;
      OpenKey key = unit.key;
      key.kind = kind;
      if (began_here(run, key, place)) continue;  // ends at the next ok
      resolve(turn, run, key, core::Resolution::recovered, place);
      life.open = static_cast<std::uint8_t>(life.open & ~(1U << kind));
    }
    if (life.open == 0) life.oks = 0;
    return;
  }
  if (verdict.outcome != EvaluationOutcome::hit) return;
  life.oks = 0;
  if (life.hits < 0xFFFFFFFFU) ++life.hits;
  if (life.hits < common.min_hits) return;
  for (unsigned kind = 0; kind < 8; ++kind) {
    if ((verdict.kinds & (1U << kind)) != 0)
      fire(turn, run, rule, life, unit, kind, place, explain);
  }
}

void IssueBook::fire(const Turn& turn, Run& run, std::uint32_t rule, Life& life, const Unit& unit,
                     unsigned kind, const Place& place, Explain explain) {
  const RuleSettings& which = turn.rules().settings(rule);
  const Common& common = which.program->common;
  OpenKey key = unit.key;
  key.kind = static_cast<std::uint8_t>(kind);
  auto found = run.issues.open.find(key);
  const bool fresh = found == run.issues.open.end();
  if (fresh) {
    std::uint32_t& others = run.issues.open_counts[{rule, kind, unit.worker}];
    if (others >= common.max_open_units.value_or(options_.config.max_open_units)) return;
    ++others;
    Open open;
    open.unit = unit.labels();
    open.kind = kind_name(*which.program, kind);
    open.worker = unit.worker;
    open.starts_at = place.time;
    found = run.issues.open.emplace(key, std::move(open)).first;
    life.open = static_cast<std::uint8_t>(life.open | (1U << kind));
  }
  tell_followers(turn, run, rule, place, found->second.unit);
  if (!fresh) {
    ++found->second.occurrences;
    // A report from long after now is one of a clock that was set right since: it holds nothing.
    // One moment is one report: a rule over several selections may hit at two points of a step.
    if (same_moment(found->second, place)) return;
    const std::int64_t since = distance(place.time, found->second.last_report);
    if (since < common.cooldown.count() && since > -options_.config.max_clock_skew.count()) return;
    --found->second.occurrences;
  }
  Open& open = found->second;
  ++open.occurrences;
  open.last_report = place.time;
  open.mode = place.mode;
  open.last_step = place.step;
  auto [finding, extra] = explain(kind);
  open.severity = which.severity_set ? which.severity : finding.severity.value_or(which.severity);
  open.observed_name = finding.observed.name;
  open.observed = finding.observed.value;
  core::Issue issue = reports_.make_issue(turn, run, which, open, place);
  issue.summary = std::move(finding.summary);
  issue.description = std::move(finding.description);
  issue.recommendation = std::move(finding.recommendation);
  if (!finding.title.empty()) issue.annotations.emplace_back("title", std::move(finding.title));
  core::Evidence& evidence = issue.evidence;
  evidence.observed = std::move(finding.observed);
  evidence.op = std::move(finding.op);
  evidence.threshold = std::move(finding.threshold);
  evidence.values = std::move(finding.values);
  evidence.tensor = std::move(extra.tensor);
  evidence.affected = std::move(extra.affected);
  if (place.step_clock) evidence.window.first = finding.first_step.value_or(place.step);
  evidence.window.points = finding.points;
  if (evidence.window.partial) evidence.values.emplace_back("partial", true);
  Reports::identify(run, issue, open, place);
  if (fresh) begin(turn, run, rule, key, open, issue, place, extra.role);
  if (fresh || issue.severity > open.found_severity) {
    open.words = found_words(issue);
    open.found_severity = issue.severity;
  }
  Onset at = open.beginning.onset;
  at.global_step = global_step_of(place);
  if (!open.beginning.known()) at.stage = HeldReports::kNoStage;
  held_.add({at, &run, key, std::move(issue), open.beginning});
  if (run.issues.progress[rule].state != core::RuleState::issues_found) {
    reports_.status(turn, run, rule, core::RuleState::issues_found);
  }
}

void IssueBook::tell_followers(const Turn& turn, Run& run, std::uint32_t rule, const Place& place,
                               const Labels& unit) {
  if (!place.step_clock) return;
  for (const RuleTable::Follower& one : turn.rules().followers[rule]) {
    evaluator_of(turn.part, run, one.evaluator).on_fired(one.which, place, unit);
  }
}

// What its rule looks at says where in the step it began; others may follow from it from now on.
void IssueBook::begin(const Turn& turn, Run& run, std::uint32_t rule, const OpenKey& key,
                      Open& open, const core::Issue& issue, const Place& place,
                      const std::optional<core::Role>& role) {
  const Program& program = *turn.rules().settings(rule).program;
  const auto stage = stage_of(role, issue.evidence.tensor, program);
  if (!place.step_clock || !stage || turn.rules().settings(rule).shadow) return;
  const std::optional<std::uint32_t> slot = slot_of(run, key, open, issue, place);
  const std::uint32_t position = slot ? position_in_stage(*stage, *slot) : 0;
  open.beginning = Beginning{{global_step_of(place), *stage, position},
                             place.mode,
                             place.step,
                             issue.event_id,
                             core::issue_key(issue.labels)};
  run.issues.signs.add(open.beginning, key);
}

void IssueBook::settle(const Turn& turn) {
  if (held_.empty()) return;
  for (HeldReport& one : held_.take()) {
    name_causes(turn, *one.run, one.beginning, one.issue);
    reports_.send(turn, *one.run, one.key.rule, std::move(one.issue));
  }
}

void IssueBook::name_causes(const Turn& turn, const Run& run, const Beginning& beginning,
                            core::Issue& issue) const {
  if (!beginning.known()) return;
  for (const OpenKey& key : run.issues.signs.before(beginning.onset)) {
    const Open& earlier = run.issues.open.at(key);
    core::Cause cause;
    cause.event_id = earlier.beginning.event_id;
    cause.issue_key = earlier.beginning.issue_key;
    cause.rule = turn.rules().settings(key.rule).name;
    for (const auto& [name, value] : earlier.unit) {
      cause.unit += (cause.unit.empty() ? "" : ",") + name + "=" + value;
    }
    cause.mode = earlier.beginning.mode;
    cause.step = earlier.beginning.step;
    cause.global_step = earlier.beginning.onset.global_step;
    issue.caused_by.push_back(std::move(cause));
  }
}

void IssueBook::resolve(const Turn& turn, Run& run, const OpenKey& key, core::Resolution resolution,
                        const Place& place, std::string_view said) {
  const auto found = run.issues.open.find(key);
  if (found == run.issues.open.end()) return;
  if (held_.come_before(key, global_step_of(place))) settle(turn);
  const Open open = found->second;
  forget(run, key);
  core::Issue issue = reports_.make_issue(turn, run, turn.rules().settings(key.rule), open, place);
  issue.status = core::IssueStatus::resolved;
  issue.resolution = resolution;
  // The clock of the trainer may have stepped back since.
  issue.ends_at = std::max(issue.starts_at, core::wall_time(place.time));
  issue.evidence.observed = {open.observed_name, open.observed};
  tell_end(issue, open.words, said.empty() ? end_of(open, resolution) : std::string(said));
  Reports::identify(run, issue, open, place);
  reports_.send(turn, run, key.rule, std::move(issue));
}

// What silence ends, it ends at a time: the run may be heard of again, and then an issue of the same
// unit may end a second time with the clock of steps where it was.
void IssueBook::resolve_all(const Turn& turn, Run& run, core::Resolution resolution, bool lost) {
  settle(turn);
  std::vector<std::pair<std::string, OpenKey>> keys;
  for (const auto& [key, open] : run.issues.open) {
    const bool stays = resolution == core::Resolution::job_ended &&
                       key.rule >= turn.rules().first_own &&
                       operational_rules()[key.rule - turn.rules().first_own].outlives_job;
    if (!stays) keys.emplace_back(unit_text(open), key);
  }
  // Numbers of units depend on who came first; their texts do not.
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.rule, a.first) < std::tie(b.second.rule, b.first);
  });
  Place place;
  place.step = run.course.last_step == kNever ? 0 : run.course.last_step;
  place.global_step = run.course.last_global_step;
  for (const auto& [text, key] : keys) {
    const Program* program = turn.rules().settings(key.rule).program.get();
    const bool silence = dynamic_cast<const ClockProgram*>(program) != nullptr;
    const bool steps = (key.rule < turn.rules().first_own ||
                        operational_rules()[key.rule - turn.rules().first_own].step_clock) &&
                       program->step_clock();
    place.step_clock = steps && !lost;
    place.time = run.course.last_time;
    const Open& open = run.issues.open.at(key);
    // Where its own mode stands, and not before what it said last.
    if (steps && open.mode) {
      place.mode = open.mode;
      place.step = std::max(open.last_step, run.workers.clock().newest(at(*open.mode)));
    } else {
      place.mode.reset();
      place.step = run.course.last_step == kNever ? 0 : run.course.last_step;
    }
    // Reports at times lie at the ends of periods, beyond the newest step: no end comes before them.
    if (!place.step_clock) {
      place.time = std::max(place.time, open.last_report);
    }
    if (silence || lost) place.time = later(run, key.rule, place.time);
    resolve(turn, run, key, resolution, place);
  }
}

core::Issue IssueBook::end_of_gone(const Turn& turn, const Run& run, const RuleSettings& gone,
                                   const Open& open, std::uint64_t sequence) const {
  Place place;
  place.step = run.course.last_step == kNever ? 0 : run.course.last_step;
  place.global_step = run.course.last_global_step;
  place.time = run.course.last_time;
  core::Issue issue = reports_.make_issue(turn, run, gone, open, place);
  issue.status = core::IssueStatus::resolved;
  const std::vector<RuleSettings>& now = configured_.table->all;
  const bool changed = std::any_of(
      now.begin(), now.end(), [&](const RuleSettings& rule) { return rule.name == gone.name; });
  issue.resolution = changed ? core::Resolution::rule_changed : core::Resolution::rule_removed;
  // The clock of the trainer may have stepped back since.
  issue.ends_at = std::max(issue.starts_at, core::wall_time(place.time));
  issue.evidence.observed = {open.observed_name, open.observed};
  issue.evidence.data_refs.clear();
  tell_end(issue, open.words,
           "The rule " + gone.name + " was " + (changed ? "changed" : "removed") +
               " while this fired for " + spelled(open.unit) + "; it may still be true.");
  issue.sequence = sequence;
  Reports::identify(run, issue, open, place);
  return issue;
}

void IssueBook::forget(Run& run, const OpenKey& key) {
  const auto found = run.issues.open.find(key);
  if (found == run.issues.open.end()) return;
  const Open& open = found->second;
  if (open.beginning.known()) run.issues.signs.remove(open.beginning, key);
  const auto others = run.issues.open_counts.find({key.rule, key.kind, open.worker});
  if (others != run.issues.open_counts.end() && --others->second == 0) {
    run.issues.open_counts.erase(others);
  }
  run.issues.open.erase(found);
}

// Clocks stand still and step back. Two reports of the same moment would have the same id, and who
// reads them would drop the second one as told.
std::int64_t IssueBook::later(Run& run, std::uint32_t rule, std::int64_t time) {
  std::int64_t& last = run.issues.progress[rule].last_window;
  if (last != kNever) time = std::max(time, add(last, core::Duration(1)));
  last = time;
  return time;
}

}  // namespace tocsin::rules
