#include "rules/run/operational.h"

#include <algorithm>
#include <array>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

using core::Severity;

constexpr std::array<OperationalRule, 7> kRules{{
    {"telemetry_gap", Severity::warning, true, false,
     "Look for dropped frames in the hook's statistics: a slow or unreachable broker, or a queue "
     "that is too small.",
     "2"},
    {"job_failed", Severity::error, false, true,
     "Look at the output of the process; the last steps before its end are in the evidence of what "
     "fired before."},
    {"job_lost", Severity::error, false, true,
     "Look whether the process or its machine is still there: kernel log (out of memory), the "
     "scheduler, the node."},
    {"run_unwatched", Severity::error, false, false,
     "No rule judges this data. Raise engine.max_runs, or look why an earlier launch still sends."},
    {"clock_skew", Severity::warning, false, false,
     "Set the machine's clock right (NTP): its times are not believed until then."},
    {"state_incomplete", Severity::error, false, false,
     "Open issues and windows of before are forgotten, rules start anew. Look at the log for what "
     "could not be read."},
    {"training_preflight", Severity::warning, false, false,
     "Such a part does not train, and nothing else will say so. Compare what the optimizer was "
     "given "
     "with the model's parameters, and look which of them the loss depends on."},
}};

/// No parameters beyond the shared ones.
class OperationalProgram final : public Program {};

}  // namespace

std::span<const OperationalRule> operational_rules() noexcept { return kRules; }

RuleSettings operational_settings(const OperationalRule& rule) {
  RuleSettings out;
  out.name = rule.name;
  out.type = rule.name;
  out.version = rule.version;
  out.severity = rule.severity;
  out.params_hash = core::params_hash("{}");
  out.program = std::make_shared<OperationalProgram>();
  return out;
}

// Clocks stand still and step back. Two reports of the same moment would have the same id, and who
// reads them would drop the second one as told.
std::int64_t Engine::Impl::later(Run& run, std::uint32_t rule, std::int64_t time) {
  std::int64_t& last = run.issues.progress[rule].last_window;
  if (last != kNever) time = std::max(time, add(last, core::Duration(1)));
  last = time;
  return time;
}

void Engine::Impl::raise(Run& run, Operational which, std::uint32_t worker, std::int64_t time,
                         Finding finding) {
  const std::uint32_t rule = own(which);
  Place place;
  place.step_clock = false;
  place.time = later(run, rule, time);
  if (run.course.last_step != kNever) {
    place.mode = core::Mode::train;
    place.step = run.course.last_step;
    place.global_step = run.course.last_global_step;
  }
  const std::string who = worker < run.workers.size() ? run.workers[worker].name : std::string();
  const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
    if (who.empty()) return {};
    return {{"worker", who}};
  };
  finding.recommendation = kRules[static_cast<std::size_t>(which)].recommendation;
  const auto explain = [&](unsigned) -> std::pair<Finding, Extra> { return {finding, {}}; };
  Life life;
  const Unit unit{{rule, kNoLane, worker, 0xFF, 0}, worker, labels};
  settle(run, rule, life, unit, hit(), place, explain);
}

void Engine::Impl::lower(Run& run, Operational which, std::uint32_t worker, std::int64_t time) {
  const OpenKey key{own(which), kNoLane, worker, 0xFF, 0};
  if (!run.issues.open.contains(key)) return;
  Place place;
  place.step_clock = false;
  place.time = later(run, key.rule, time);
  resolve_open(run, key, core::Resolution::recovered, place);
}

// Of a partition or of a run that is not kept: nothing would ever resolve it, so it times out.
void Engine::Impl::raise_plain(Operational which, const core::RunUid& run, std::int64_t time,
                               std::string summary) {
  const OperationalRule& table = kRules[static_cast<std::size_t>(which)];
  const RuleSettings& rule = settings(own(which));
  core::Issue issue;
  issue.source = "/" + options.cluster + "/rules/" + rule.name;
  issue.time = issue.starts_at = issue.measured_at = core::wall_time(time);
  issue.evaluated_at = core::wall_time(evaluated_at);
  issue.rule = issue.rule_type = rule.name;
  issue.params_hash = rule.params_hash;
  issue.severity = rule.severity;
  for (const auto& [name, value] : options.labels) issue.labels.set(name, value);
  issue.labels.set("rule", rule.name);
  issue.labels.set("severity", core::to_string(rule.severity));
  issue.labels.set("cluster", options.cluster);
  const std::string partition = std::to_string(part->number);
  if (run.nil()) {
    issue.labels.set("partition", partition);
  } else {
    issue.labels.set("run_uid", core::to_text(run));
  }
  issue.run.uid = run;
  issue.run.attempt = 0;  // it speaks of none, and so never stops any
  issue.explicit_expiry = false;
  issue.sequence = static_cast<std::uint64_t>(std::max<std::int64_t>(time, 0));  // only grows
  issue.summary = std::move(summary);
  issue.recommendation = table.recommendation;
  issue.evidence.window.clock = "time";
  issue.evidence.window.first = issue.evidence.window.last = time;
  issue.evidence.window.first_time = issue.evidence.window.last_time = core::wall_time(time);
  issue.event_id =
      core::make_id("iss_", {issue.rule, issue.rule_version, issue.params_hash, core::to_text(run),
                             "0", "partition=" + partition, "", "t" + std::to_string(time),
                             core::to_string(issue.status)});
  emit(std::move(issue));
}

void Engine::Impl::judge_gap(Run& run, std::uint32_t worker, const Place& place) {
  Worker& from = run.workers[worker];
  if (!from.gap && !from.gap_life.active()) return;
  const std::uint64_t missing = std::exchange(from.gap_frames, 0);
  const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
    return {{"worker", from.name}};
  };
  const auto explain = [&](unsigned) -> std::pair<Finding, Extra> {
    Finding finding;
    finding.observed = {"missing_frames", static_cast<double>(missing)};
    finding.op = ">=";
    finding.threshold = core::NamedNumber{"limit", 1};
    finding.summary = std::to_string(missing) + (missing == 1 ? " frame" : " frames") + " of " +
                      from.name + " did not arrive before " +
                      std::string(core::to_string(*place.mode)) + " step " +
                      std::to_string(place.step) + " ended; its data of that step is incomplete.";
    finding.recommendation = kRules[0].recommendation;
    return {finding, {}};
  };
  const std::uint32_t rule = own(Operational::telemetry_gap);
  const Unit unit{{rule, kNoLane, worker, 0xFF, 0}, worker, labels};
  settle(run, rule, from.gap_life, unit, from.gap ? hit() : kOk, place, explain);
}

}  // namespace tocsin::rules
