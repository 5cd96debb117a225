// The life of issues: first hit, repetition, resolution, and the events that tell of them.
#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

std::string unit_text(const Open& open) {
  std::vector<std::pair<std::string, std::string>> labels = open.unit;
  if (!open.kind.empty()) labels.emplace_back("kind", open.kind);
  std::sort(labels.begin(), labels.end());
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += '\x1e';
    text += name + "=" + value;
  }
  return text;
}

std::string kind_name(const Program& program, unsigned kind) {
  return kind < program.kinds.size() ? std::string(program.kinds[kind]) : std::string();
}

std::string spelled(const std::vector<std::pair<std::string, std::string>>& unit) {
  std::string text;
  for (const auto& [name, value] : unit) text += (text.empty() ? "" : ", ") + name + " " + value;
  return text.empty() ? "the run" : text;
}

// Each mode counts its own steps: where the unit joins modes, the step alone could mean two.
std::string window_end(const Open& open, const Place& place) {
  if (!place.step_clock) return "t" + std::to_string(place.time);
  const bool joins = std::none_of(open.unit.begin(), open.unit.end(),
                                  [](const auto& label) { return label.first == "mode"; });
  const std::string step = "s" + std::to_string(place.step);
  return joins && place.mode ? std::string(core::to_string(*place.mode)) + ':' + step : step;
}

}  // namespace

void Engine::Impl::emit(Event event) {
  if (part->silent) return;
  part->output.events.push_back(std::move(event));
}

void Engine::Impl::count(Run& run, std::uint32_t rule, const OutcomeCounts& counts) {
  RuleProgress& progress = run.issues.progress[rule];
  std::uint64_t judged = 0;
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    progress.counts[i] += counts[i];
    judged += counts[i];
  }
  const std::uint64_t hits = counts[static_cast<std::size_t>(Outcome::hit)];
  stats.evaluations[rule] += judged;
  stats.hits[rule] += hits;
  if (progress.state == core::RuleState::no_data &&
      (hits > 0 || counts[static_cast<std::size_t>(Outcome::ok)] > 0)) {
    set_state(run, rule, core::RuleState::in_progress);
  }
}

void Engine::Impl::set_state(Run& run, std::uint32_t rule, core::RuleState state,
                             std::string reason) {
  RuleProgress& progress = run.issues.progress[rule];
  const core::RuleState previous = std::exchange(progress.state, state);
  // The engine's own rules have no status, and shards beyond the first leave it to the first.
  if (rule >= first_own || run.id.shard != 0) return;
  const RuleSettings& which = settings(rule);
  core::RuleStatusEvent event;
  event.rule = which.name;
  event.rule_type = which.type;
  event.rule_version = which.version;
  event.status = state;
  event.previous = previous;
  event.reason = std::move(reason);
  if (state == core::RuleState::no_data) {
    for (const Need& need : which.program->needs) {
      std::string text = "collection " + need.collection;
      for (const std::string& statistic : need.statistics) text += ", statistic " + statistic;
      event.missing.push_back(std::move(text));
    }
  }
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    event.evaluations[std::string(to_string(static_cast<Outcome>(i)))] = progress.counts[i];
  }
  event.run = run_ref(run);
  event.time = core::wall_time(run.course.last_time);
  emit(std::move(event));
}

void Engine::Impl::settle(Run& run, std::uint32_t rule, Life& life, const Unit& unit,
                          Verdict verdict, const Place& place, Explain explain) {
  const Common& common = settings(rule).program->common;
  if (verdict.outcome == Outcome::ok) {
    life.hits = 0;
    if (life.open == 0 || ++life.oks < common.clear_after) return;
    for (std::uint8_t kind = 0; kind < 8; ++kind) {
      if ((life.open & (1U << kind)) == 0) continue;
      OpenKey key = unit.key;
      key.kind = kind;
      resolve_open(run, key, core::Resolution::recovered, place);
    }
    life.open = 0;
    life.oks = 0;
    return;
  }
  if (verdict.outcome != Outcome::hit) return;
  life.oks = 0;
  if (life.hits < 0xFFFFFFFFU) ++life.hits;
  if (life.hits < common.min_hits) return;
  for (unsigned kind = 0; kind < 8; ++kind) {
    if ((verdict.kinds & (1U << kind)) != 0) fire(run, rule, life, unit, kind, place, explain);
  }
}

void Engine::Impl::fire(Run& run, std::uint32_t rule, Life& life, const Unit& unit, unsigned kind,
                        const Place& place, Explain explain) {
  const RuleSettings& which = settings(rule);
  const Common& common = which.program->common;
  OpenKey key = unit.key;
  key.kind = static_cast<std::uint8_t>(kind);
  auto found = run.issues.open.find(key);
  const bool fresh = found == run.issues.open.end();
  if (fresh) {
    std::uint32_t& others = run.issues.open_counts[{rule, kind, unit.worker}];
    if (others >= common.max_open_units.value_or(options.config.max_open_units)) return;
    ++others;
    Open open;
    open.unit = unit.labels();
    open.kind = kind_name(*which.program, kind);
    open.worker = unit.worker;
    open.starts_at = place.time;
    found = run.issues.open.emplace(key, std::move(open)).first;
    life.open = static_cast<std::uint8_t>(life.open | (1U << kind));
  } else {
    ++found->second.occurrences;
    // A report from long after now is one of a clock that was set right since: it holds nothing.
    const std::int64_t since = distance(place.time, found->second.last_report);
    if (since < common.cooldown.count() && since > -options.config.max_clock_skew.count()) return;
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
  core::Issue issue = make_issue(run, which, open, place);
  issue.summary = std::move(finding.summary);
  issue.description = std::move(finding.description);
  issue.recommendation = std::move(finding.recommendation);
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
  if (fresh) begin(run, rule, key, open, issue, place, extra.role);
  name_causes(run, open, issue);
  send_issue(run, rule, std::move(issue), open, place);
  if (run.issues.progress[rule].state != core::RuleState::issues_found) {
    set_state(run, rule, core::RuleState::issues_found);
  }
}

// What its rule looks at says where in the step it began; others may follow from it from now on.
void Engine::Impl::begin(Run& run, std::uint32_t rule, const OpenKey& key, Open& open,
                         core::Issue& issue, const Place& place,
                         const std::optional<core::Role>& role) {
  const Program& program = *settings(rule).program;
  const auto stage = stage_of(role, issue.evidence.tensor, program);
  if (!place.step_clock || !stage || settings(rule).shadow) return;
  identify(run, issue, open, place);
  // Producers that count no steps over all modes leave that number behind.
  open.beginning = Beginning{{std::max(place.global_step, place.step), *stage},
                             place.mode,
                             place.step,
                             issue.event_id,
                             core::issue_key(issue.labels)};
  run.issues.signs.add(open.beginning, key);
}

void Engine::Impl::name_causes(const Run& run, const Open& open, core::Issue& issue) const {
  if (!open.beginning.known()) return;
  for (const OpenKey& key : run.issues.signs.before(open.beginning.onset)) {
    const Open& earlier = run.issues.open.at(key);
    core::Cause cause;
    cause.event_id = earlier.beginning.event_id;
    cause.issue_key = earlier.beginning.issue_key;
    cause.rule = settings(key.rule).name;
    for (const auto& [name, value] : earlier.unit) {
      cause.unit += (cause.unit.empty() ? "" : ",") + name + "=" + value;
    }
    cause.mode = earlier.beginning.mode;
    cause.step = earlier.beginning.step;
    cause.global_step = earlier.beginning.onset.global_step;
    issue.caused_by.push_back(std::move(cause));
  }
}

void Engine::Impl::resolve_open(Run& run, const OpenKey& key, core::Resolution resolution,
                                const Place& place) {
  const auto found = run.issues.open.find(key);
  if (found == run.issues.open.end()) return;
  const Open open = std::move(found->second);
  run.issues.open.erase(found);
  if (open.beginning.known()) run.issues.signs.remove(open.beginning, key);
  const auto others = run.issues.open_counts.find({key.rule, key.kind, open.worker});
  if (others != run.issues.open_counts.end() && --others->second == 0)
    run.issues.open_counts.erase(others);
  core::Issue issue = make_issue(run, settings(key.rule), open, place);
  issue.status = core::IssueStatus::resolved;
  issue.resolution = resolution;
  // The clock of the trainer may have stepped back since.
  issue.ends_at = std::max(issue.starts_at, core::wall_time(place.time));
  issue.evidence.observed = {open.observed_name, open.observed};
  const std::string where = spelled(open.unit);
  switch (resolution) {
    case core::Resolution::recovered:
      issue.summary = "Back to normal for " + where + ".";
      break;
    case core::Resolution::job_ended:
      issue.summary = "The job ended while this fired for " + where + ".";
      break;
    case core::Resolution::superseded:
      issue.summary = "A new attempt of the run has started; this concerned the one before.";
      break;
    default:
      issue.summary = "No longer followed: nothing was heard of the run.";
  }
  send_issue(run, key.rule, std::move(issue), open, place);
}

// What silence ends, it ends at a time: the run may be heard of again, and then an issue of the same
// unit may end a second time with the clock of steps where it was.
void Engine::Impl::resolve_all(Run& run, core::Resolution resolution, bool lost) {
  std::vector<std::pair<std::string, OpenKey>> keys;
  for (const auto& [key, open] : run.issues.open) {
    const bool stays = resolution == core::Resolution::job_ended && key.rule >= first_own &&
                       operational_rules()[key.rule - first_own].outlives_job;
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
    const Program* program = settings(key.rule).program.get();
    const bool silence = dynamic_cast<const ClockProgram*>(program) != nullptr;
    const bool steps =
        (key.rule < first_own || operational_rules()[key.rule - first_own].step_clock) &&
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
    resolve_open(run, key, resolution, place);
  }
}

core::Issue Engine::Impl::make_issue(const Run& run, const RuleSettings& which, const Open& open,
                                     const Place& place) const {
  core::Issue issue;
  issue.source = "/" + options.cluster + "/rules/" + which.name;
  issue.time = core::wall_time(place.time);
  issue.rule = which.name;
  issue.rule_type = which.type;
  issue.rule_version = which.version;
  issue.params_hash = which.params_hash;
  issue.kind = open.kind;
  issue.shadow = which.shadow;
  issue.severity = open.severity;
  for (const auto& [name, value] : run.job.labels) issue.labels.set(name, value);
  for (const auto& [name, value] : options.labels) issue.labels.set(name, value);
  for (const auto& [name, value] : open.unit) issue.labels.set(name, value);
  if (!open.kind.empty()) issue.labels.set("kind", open.kind);
  issue.labels.set("rule", which.name);
  issue.labels.set("severity", core::to_string(open.severity));
  issue.labels.set("job", run.job.name);
  issue.labels.set("run_uid", core::to_text(run.id.uid));
  issue.labels.set("cluster", options.cluster);
  issue.runbook_url = which.runbook_url;
  issue.starts_at = core::wall_time(open.starts_at);
  issue.run = run_ref(run);
  if (place.mode) {
    issue.mode = place.mode;
    issue.step = place.step;
    issue.global_step = place.global_step;
  }
  core::Evidence& evidence = issue.evidence;
  evidence.window.clock = place.step_clock ? "step" : "time";
  const std::int64_t first_time = place.first_time != 0 ? place.first_time : place.time;
  evidence.window.first = place.step_clock ? place.step : first_time;
  evidence.window.last = place.step_clock ? place.step : place.time;
  evidence.window.first_time = core::wall_time(first_time);
  evidence.window.last_time = core::wall_time(place.time);
  evidence.window.partial = place.partial;
  evidence.window.missing_ranks = place.missing_ranks;
  evidence.parameters = which.parameters;
  evidence.first_seen = core::wall_time(open.starts_at);
  evidence.occurrences = open.occurrences;
  const bool own = place.first_offset < 0 || place.first_offset == kForever;
  evidence.data_refs.push_back({ref_topic, ref.partition, own ? ref.offset : place.first_offset,
                                own ? ref.offset : place.last_offset});
  if (!part->incomplete.empty()) evidence.values.emplace_back("state_incomplete", true);
  issue.measured_at = core::wall_time(place.time);
  issue.published_at = ref.timestamp;
  issue.evaluated_at = core::wall_time(evaluated_at);
  return issue;
}

void Engine::Impl::send_issue(Run& run, std::uint32_t rule, core::Issue issue, const Open& open,
                              const Place& place) {
  issue.sequence = ++run.issues.progress[rule].issue_sequence;
  identify(run, issue, open, place);
  emit(std::move(issue));
}

void Engine::Impl::identify(const Run& run, core::Issue& issue, const Open& open,
                            const Place& place) {
  issue.event_id = core::make_id(
      "iss_", {issue.rule, issue.rule_version, issue.params_hash, core::to_text(run.id.uid),
               std::to_string(run.attempt), unit_text(open), open.kind, window_end(open, place),
               core::to_string(issue.status)});
}

void Engine::Impl::resolve_gone(PartitionState& partition, const Run& run, const RuleSettings& gone,
                                const Open& open, std::uint64_t sequence) {
  Place place;
  place.step = run.course.last_step == kNever ? 0 : run.course.last_step;
  place.global_step = run.course.last_global_step;
  place.time = run.course.last_time;
  core::Issue issue = make_issue(run, gone, open, place);
  issue.status = core::IssueStatus::resolved;
  issue.resolution = core::Resolution::superseded;
  // The clock of the trainer may have stepped back since.
  issue.ends_at = std::max(issue.starts_at, core::wall_time(place.time));
  issue.evidence.observed = {open.observed_name, open.observed};
  issue.evidence.data_refs.clear();
  issue.summary = "The rule " + gone.name + " was removed or changed while this fired for " +
                  spelled(open.unit) + ".";
  issue.sequence = sequence;
  identify(run, issue, open, place);
  partition.farewell.push_back(std::move(issue));
}

}  // namespace tocsin::rules
