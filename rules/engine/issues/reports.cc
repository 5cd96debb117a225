#include "rules/engine/issues/reports.h"

#include <algorithm>
#include <array>

#include "rules/engine/issues/issue_labels.h"
#include "rules/engine/memory/thinning.h"
#include "rules/engine/partition/describe.h"

namespace tocsin::rules {
namespace {

// What make_issue() and OwnIssues set, and the units of the rules' shapes and evaluators.
constexpr std::array<std::string_view, 16> kIssueLabels{
    "cluster", "device", "job",       "kind",  "labels_left_out", "metric",
    "mode",    "node",   "partition", "rule",  "run_uid",         "severity",
    "span",    "tensor", "title",     "worker"};

// Each mode counts its own steps: where the unit joins modes, the step alone could mean two.
std::string window_end(const Open& open, const Place& place) {
  if (!place.step_clock) return "t" + std::to_string(place.time);
  const bool joins = std::none_of(open.unit.begin(), open.unit.end(),
                                  [](const auto& label) { return label.first == "mode"; });
  const std::string step = "s" + std::to_string(place.step);
  return joins && place.mode ? std::string(core::to_string(*place.mode)) + ':' + step : step;
}

// The first shard alone has statuses.
std::string spread_words(const Run& run, const Program& program, const RuleProgress& progress) {
  const core::RuleState state = progress.state;
  const std::string shards = std::to_string(run.course.shards) + " shards";
  if (withholds_tensors(run, program)) {
    return "the tensors of this run are spread over " + shards +
           ", and a rule that joins several gets none of them";
  }
  const bool unfed = std::all_of(progress.counts.begin(), progress.counts.end(),
                                 [](std::uint64_t count) { return count == 0; });
  if (unfed && (program.inputs() & input::kValues) != 0) {
    return "the tensors of this run are spread over " + shards +
           ", and a rule of series gets only scalars";
  }
  const bool nothing =
      state == core::RuleState::no_data || state == core::RuleState::no_issues_found;
  if (!nothing || program.tensor_use() == TensorUse::none) return {};
  return "judged for the first of " + shards + " only; issues report the others";
}

// What a rule of the user's own selects: nothing of it was there.
std::vector<std::string> selections_of(const RuleSettings& which) {
  std::vector<std::string> out;
  for (const core::Parameter& one : which.parameters) {
    if (const auto* text = core::as<std::string>(one.value); one.name == "select" && text) {
      out.push_back("anything that fits " + *text);
    }
    if (one.name != "let") continue;
    const auto* map = core::as<core::ValueMap>(one.value);
    for (const auto& [name, value] : map == nullptr ? core::ValueMap() : *map) {
      if (const auto* text = core::as<std::string>(value)) {
        out.push_back("anything that fits " + *text);
      }
    }
  }
  return out;
}

}  // namespace

std::span<const std::string_view> issue_labels() noexcept { return kIssueLabels; }

void Reports::emit(const Turn& turn, Event event) {
  if (turn.part.silent) return;
  turn.part.output.events.push_back(std::move(event));
}

void Reports::send(const Turn& turn, Run& run, std::uint32_t rule, core::Issue issue) {
  issue.sequence = ++run.issues.progress[rule].issue_sequence;
  if (issue.shadow && !turn.part.silent) ++stats_.shadow_issues;
  if (rule < turn.rules().first_own) tell_reports(turn, run, issue);
  emit(turn, std::move(issue));
}

// Rules that sum up what others found, as far as the run has their evaluators: none waits for issues.
void Reports::tell_reports(const Turn& turn, Run& run, const core::Issue& issue) {
  for (const std::uint32_t number : turn.rules().takers_of(input::kIssues)) {
    if (number >= run.evaluators.size() || !run.evaluators[number].evaluator) continue;
    turn.part.cut.touch_evaluator(run, number);
    run.evaluators[number].evaluator->on_issue(issue);
  }
}

void Reports::spread(const Turn& turn, Run& run, std::uint16_t shards) {
  run.course.shards = shards;
  for (std::uint32_t rule = 0; rule < turn.rules().first_own; ++rule) {
    if (run.issues.progress[rule].state != core::RuleState::no_data) continue;
    if (withholds_tensors(run, *turn.rules().settings(rule).program)) {
      status(turn, run, rule, core::RuleState::no_data);
    }
  }
}

void Reports::status(const Turn& turn, Run& run, std::uint32_t rule, core::RuleState state,
                     std::string reason, core::ValueMap summary,
                     std::optional<std::int64_t> as_of) {
  RuleProgress& progress = run.issues.progress[rule];
  const core::RuleState previous = std::exchange(progress.state, state);
  // The engine's own rules have no status, and shards beyond the first leave it to the first.
  if (rule >= turn.rules().first_own || run.id.shard != 0) return;
  const RuleSettings& which = turn.rules().settings(rule);
  core::RuleStatusEvent event;
  event.rule = which.name;
  event.rule_type = which.type;
  event.rule_version = which.version;
  event.status = state;
  event.previous = previous;
  event.reason = std::move(reason);
  if (run.course.shards > 1) {
    const std::string more = spread_words(run, *which.program, progress);
    event.reason += (event.reason.empty() || more.empty() ? "" : "; ") + more;
  }
  // What it tells so far says by itself what is still needed.
  if (state == core::RuleState::no_data && !as_of) {
    if (std::string thinned = thinned_words(run.job, *which.program); !thinned.empty()) {
      event.reason += (event.reason.empty() ? "" : "; ") + thinned;
      event.missing.push_back(std::move(thinned));
    }
    for (const Need& need : which.program->needs) {
      std::string text = "collection " + need.collection;
      for (const std::string& statistic : need.statistics) text += ", statistic " + statistic;
      event.missing.push_back(std::move(text));
    }
    // Where it asks the hook for nothing (samples, ends of steps, tensors by name) its own words say what it needs.
    const RuleDescriptor* type = event.missing.empty() ? find_rule(which.type) : nullptr;
    if (type != nullptr && !type->needs.empty()) event.missing.emplace_back(type->needs);
    if (event.missing.empty()) event.missing = selections_of(which);
  }
  for (std::size_t i = 0; i < kEvaluationOutcomes; ++i) {
    event.evaluations[std::string(to_string(static_cast<EvaluationOutcome>(i)))] =
        progress.counts[i];
  }
  event.summary = std::move(summary);
  event.run = run_ref(run);
  event.time = core::wall_time(as_of.value_or(run.course.last_time));
  emit(turn, std::move(event));
}

void Reports::sum_up_own(const Turn& turn, const Run& run, std::uint32_t rule, core::ValueMap told,
                         std::int64_t time) {
  if (run.id.shard != 0) return;
  const RuleSettings& which = turn.rules().settings(rule);
  core::RuleStatusEvent event;
  event.rule = which.name;
  event.rule_type = which.type;
  event.rule_version = which.version;
  event.status = event.previous = core::RuleState::in_progress;
  event.summary = std::move(told);
  event.run = run_ref(run);
  event.time = core::wall_time(time);
  emit(turn, std::move(event));
}

core::Issue Reports::make_issue(const Turn& turn, const Run& run, const RuleSettings& which,
                                const Open& open, const Place& place) const {
  core::Issue issue;
  issue.source = "/" + options_.cluster + "/rules/" + which.name;
  issue.time = core::wall_time(place.time);
  issue.rule = which.name;
  issue.rule_type = which.type;
  issue.rule_version = which.version;
  issue.params_hash = which.params_hash;
  issue.kind = open.kind;
  issue.shadow = which.shadow;
  issue.severity = open.severity;
  for (const auto& [name, value] : run.job.labels) issue.labels.set(name, value);
  for (const auto& [name, value] : options_.labels) issue.labels.set(name, value);
  for (const auto& [name, value] : open.unit) issue.labels.set(name, value);
  if (!open.kind.empty()) issue.labels.set("kind", open.kind);
  issue.labels.set("rule", which.name);
  issue.labels.set("severity", core::to_string(open.severity));
  issue.labels.set("job", run.job.name);
  issue.labels.set("run_uid", core::to_text(run.id.uid));
  issue.labels.set("cluster", options_.cluster);
  bound_issue_labels(issue.labels);
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
  evidence.data_refs.push_back({std::string(turn.record.topic), turn.record.partition,
                                own ? turn.record.offset : place.first_offset,
                                own ? turn.record.offset : place.last_offset});
  if (!turn.part.incomplete.empty()) evidence.values.emplace_back("state_incomplete", true);
  issue.measured_at = core::wall_time(place.time);
  issue.published_at = turn.record.timestamp;
  issue.evaluated_at = core::wall_time(turn.evaluated_at);
  return issue;
}

void Reports::identify(const Run& run, core::Issue& issue, const Open& open, const Place& place) {
  issue.event_id = core::make_id(
      "iss_", {issue.rule, issue.rule_version, issue.params_hash, core::to_text(run.id.uid),
               std::to_string(run.attempt), unit_text(open), open.kind, window_end(open, place),
               core::to_string(issue.status)});
}

core::JobEvent Reports::job_event(const Turn& turn, const Run& run, core::JobPhase phase,
                                  std::uint64_t number, std::int64_t time) const {
  core::JobEvent event;
  event.phase = phase;
  event.number = number;
  event.run = run_ref(run);
  for (const auto& [name, value] : run.job.labels) event.labels.set(name, value);
  for (const auto& [name, value] : options_.labels) event.labels.set(name, value);
  bound_issue_labels(event.labels);
  event.world_size = run.world_size;
  event.rules.reserve(turn.rules().first_own + configured_.elsewhere.size());
  for (std::uint32_t i = 0; i < turn.rules().first_own; ++i)
    event.rules.push_back(turn.rules().all[i].name);
  for (const RuleSettings& one : configured_.elsewhere) event.rules.push_back(one.name);
  event.time = core::wall_time(time);
  if (run.job.started) event.started_at = core::wall_time(run.job.started_at);
  if (run.course.last_step != kNever) event.step = run.course.last_step;
  if (const std::size_t timed =
          std::min<std::size_t>(run.pulse.steps_timed, run.pulse.step_times.size());
      timed > 0) {
    std::array<std::int64_t, 16> times = run.pulse.step_times;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(timed / 2);
    std::nth_element(times.begin(), middle, times.begin() + static_cast<std::ptrdiff_t>(timed));
    event.step_seconds = static_cast<double>(*middle) / 1e9;
  }
  for (const auto& [node, newest] : run.job.launch) {
    event.launch[node] = newest.boot + "/" + std::to_string(newest.opened);
  }
  return event;
}

}  // namespace tocsin::rules
