#include "app/report/gather.h"

#include <algorithm>
#include <variant>

#include "app/replay/judgement_text.h"
#include "core/labels.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app::report {

RunReport& Gathering::attempt(const core::RunRef& run) {
  const auto [at, fresh] = attempts_.try_emplace({run.uid, run.attempt});
  RunReport& out = at->second;
  if (fresh) {
    const auto known = checkpoints_.find(at->first);
    if (known != checkpoints_.end()) out.checkpoint = known->second;
  }
  if (out.run.uid.nil() || out.run.job.empty()) out.run = run;
  return out;
}

void Gathering::apply(const core::RecordView& record) {
  if (record.tombstone) return;
  if (record.topic == core::topic::kAcks) {
    if (const auto ack = ingest::decode_ack(record)) take(*ack);
    return;
  }
  auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  if (auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    take(std::move(*issue));
  } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    take(*job);
  } else if (auto* rule = std::get_if<core::RuleStatusEvent>(&decoded->event)) {
    take(std::move(*rule));
  }
}

void Gathering::take(core::Issue issue) {
  if (issue.run.uid.nil()) return;
  RunReport& of = attempt(issue.run);
  const auto [at, fresh] =
      issues_.try_emplace({core::issue_key(issue.labels), issue.run.attempt}, of.issues.size());
  if (fresh) of.issues.push_back({issue, issue, 0});
  IssueTold& told = of.issues[at->second];
  ++told.reports;
  told.last = std::move(issue);
}

void Gathering::take(const core::JobEvent& event) {
  RunReport& of = attempt(event.run);
  if (event.started_at) of.started = event.started_at;
  if (event.phase == core::JobPhase::started && !of.started) of.started = event.time;
  if (event.step) of.step = std::max(of.step.value_or(*event.step), *event.step);
  of.world_size = std::max(of.world_size, event.world_size);
  of.newest = std::max(of.newest.value_or(event.time), event.time);
  if (event.phase == core::JobPhase::ended) {
    of.outcome = event.outcome.empty() ? "ended" : event.outcome;
  }
  if (event.phase == core::JobPhase::started) of.outcome.clear();
}

// An answer alone is no run: who has asked it knows of one.
void Gathering::take(const core::Ack& ack) {
  if (ack.action != "stop" || ack.checkpoint_path.empty()) return;
  checkpoints_[{ack.run, ack.attempt}] = ack;
  const auto of = attempts_.find({ack.run, ack.attempt});
  if (of != attempts_.end()) of->second.checkpoint = ack;
}

void Gathering::take(core::RuleStatusEvent event) {
  if (event.rule == kReportRule) return;
  RunReport& of = attempt(event.run);
  const auto known = std::find_if(of.rules.begin(), of.rules.end(),
                                  [&](const auto& one) { return one.rule == event.rule; });
  if (known == of.rules.end()) {
    of.rules.push_back(std::move(event));
    return;
  }
  // A status without one does not take back what was summed up before.
  if (event.summary.empty()) event.summary = std::move(known->summary);
  *known = std::move(event);
}

Gathering::Attempts attempts_of(const Judgement& judgement, const embedded::ChosenRules& rules) {
  Gathering::Attempts out;
  for (const auto& [key, run] : judgement.runs) {
    RunReport& of = out[key];
    of.run = run.run;
    of.run.attempt = key.second;
    of.outcome = run.outcome;
    of.started = run.started;
    if (core::nanoseconds(run.newest) != 0) of.newest = run.newest;
    of.step = run.step;
    of.world_size = run.world_size;
    for (const auto& rule : rules.rules.rules) {
      if (const auto known = run.rules.find(rule.name); known != run.rules.end()) {
        of.rules.push_back(known->second);
        continue;
      }
      core::RuleStatusEvent none;
      none.rule = rule.name;
      none.rule_type = rule.type;
      none.rule_version = rule.version;
      none.reason = "no data arrived that this rule can judge";
      if (const auto* descriptor = rules::find_rule(rule.type)) {
        none.missing.emplace_back(descriptor->needs);
      }
      of.rules.push_back(std::move(none));
    }
  }
  for (const IssueStory& story : issue_stories(judgement)) {
    const auto of = out.find({story.first->run.uid, story.first->run.attempt});
    if (of != out.end()) of->second.issues.push_back({*story.first, *story.last, story.reports});
  }
  return out;
}

}  // namespace tocsin::app::report
