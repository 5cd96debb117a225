#include "rules/engine/issues/own_issues.h"

#include <algorithm>

#include "rules/engine/issues/issue_labels.h"

namespace tocsin::rules {

Place OwnIssues::place_at(const Run& run, std::int64_t time) {
  Place place;
  place.step_clock = false;
  place.time = time;
  if (run.course.last_step != kNever) {
    place.mode = core::Mode::train;
    place.step = run.course.last_step;
    place.global_step = run.course.last_global_step;
  }
  return place;
}

void OwnIssues::raise(const Turn& turn, Run& run, Operational which, std::uint32_t worker,
                      std::int64_t time, Finding finding) {
  const std::uint32_t rule = turn.rules().own(which);
  const Place place = place_at(run, book_.later(run, rule, time));
  const std::string who = worker < run.workers.size() ? run.workers[worker].name : std::string();
  const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
    if (who.empty()) return {};
    return {{"worker", who}};
  };
  finding.recommendation = operational_rules()[static_cast<std::size_t>(which)].recommendation;
  const auto explain = [&](unsigned) -> std::pair<Finding, Extra> { return {finding, {}}; };
  Life life;
  const Unit unit{{rule, kNoRoster, worker, 0xFF, 0}, worker, labels};
  book_.apply(turn, run, rule, life, unit, hit(), place, explain);
}

void OwnIssues::lower(const Turn& turn, Run& run, Operational which, std::uint32_t worker,
                      std::int64_t time) {
  const OpenKey key{turn.rules().own(which), kNoRoster, worker, 0xFF, 0};
  if (!run.issues.open.contains(key)) return;
  Place place;
  place.step_clock = false;
  place.time = book_.later(run, key.rule, time);
  book_.resolve(turn, run, key, core::Resolution::recovered, place);
}

void OwnIssues::sum_up(const Turn& turn, Run& run, Operational which, std::int64_t time,
                       core::ValueMap told) {
  reports_.sum_up_own(turn, run, turn.rules().own(which), std::move(told), time);
}

void OwnIssues::make_room(const Turn& turn, Run& run, std::uint32_t rule, std::uint32_t worker,
                          const Place& place) {
  const OpenKey* oldest = nullptr;
  std::int64_t since = 0;
  std::size_t others = 0;
  for (const auto& [key, open] : run.issues.open) {
    if (key.rule != rule || open.worker != worker) continue;
    ++others;
    if (oldest == nullptr || open.starts_at < since) {
      oldest = &key;
      since = open.starts_at;
    }
  }
  if (others < ScriptAlert::kMaxOpen) return;
  book_.resolve(turn, run, OpenKey(*oldest), core::Resolution::superseded, place,
                "Newer alerts of the script take its place.");
}

void OwnIssues::tell(const Turn& turn, Run& run, std::uint32_t worker, std::int64_t time,
                     ScriptAlert alert) {
  const std::uint32_t rule = turn.rules().own(Operational::script_alert);
  const std::string& who = run.workers[worker].name;
  // Titles have no numbers of their own; a text of worker and title does not end in the middle.
  const OpenKey key{rule, kNoRoster, core::name_hash(who + '\x1f' + alert.title), 0xFF, 0};
  const Place end = place_at(run, book_.later(run, rule, time));
  if (run.issues.open.contains(key)) {
    book_.resolve(turn, run, key, core::Resolution::superseded, end, "The script said it again.");
  } else {
    make_room(turn, run, rule, worker, end);
  }
  const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
    return {{"title", alert.title}, {"worker", who}};
  };
  alert.finding.recommendation =
      operational_rules()[static_cast<std::size_t>(Operational::script_alert)].recommendation;
  const auto explain = [&](unsigned) -> std::pair<Finding, Extra> { return {alert.finding, {}}; };
  Life life;
  book_.apply(turn, run, rule, life, {key, worker, labels}, hit(),
              place_at(run, book_.later(run, rule, time)), explain);
}

// Of a partition or of a run that is not kept: nothing would ever resolve it, so it times out.
void OwnIssues::raise_plain(const Turn& turn, Operational which, const core::RunUid& run,
                            std::int64_t time, std::string summary) {
  const OperationalRule& table = operational_rules()[static_cast<std::size_t>(which)];
  const RuleSettings& rule = turn.rules().settings(turn.rules().own(which));
  core::Issue issue;
  issue.source = "/" + options_.cluster + "/rules/" + rule.name;
  issue.time = issue.starts_at = issue.measured_at = core::wall_time(time);
  issue.evaluated_at = core::wall_time(turn.evaluated_at);
  issue.rule = issue.rule_type = rule.name;
  issue.params_hash = rule.params_hash;
  issue.severity = rule.severity;
  for (const auto& [name, value] : options_.labels) issue.labels.set(name, value);
  issue.labels.set("rule", rule.name);
  issue.labels.set("severity", core::to_string(rule.severity));
  issue.labels.set("cluster", options_.cluster);
  const std::string partition = std::to_string(turn.part.number);
  if (run.nil()) {
    issue.labels.set("partition", partition);
  } else {
    issue.labels.set("run_uid", core::to_text(run));
  }
  bound_issue_labels(issue.labels);
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
  reports_.emit(turn, std::move(issue));
}

void OwnIssues::judge_gap(const Turn& turn, Run& run, std::uint32_t worker, const Place& place) {
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
    finding.titled("data of " + from.name, Verb::is, "incomplete");
    finding.summary = std::to_string(missing) + (missing == 1 ? " frame" : " frames") + " of " +
                      from.name + " did not arrive before " +
                      std::string(core::to_string(*place.mode)) + " step " +
                      std::to_string(place.step) + " ended; its data of that step is incomplete.";
    finding.recommendation = operational_rules()[0].recommendation;
    return {finding, {}};
  };
  const std::uint32_t rule = turn.rules().own(Operational::telemetry_gap);
  const Unit unit{{rule, kNoRoster, worker, 0xFF, 0}, worker, labels};
  book_.apply(turn, run, rule, from.gap_life, unit, from.gap ? hit() : kOk, place, explain);
}

void OwnIssues::tell_incomplete(const Turn& turn) {
  raise_plain(turn, Operational::state_incomplete, {}, turn.now,
              "The rule state of partition " + std::to_string(turn.part.number) +
                  " is not what it was: " + turn.part.incomplete + ".");
}

}  // namespace tocsin::rules
