#include "app/view_text.h"

#include <algorithm>
#include <array>

#include "app/events_log.h"
#include "app/log_console.h"
#include "app/printable.h"
#include "app/summary_text.h"
#include "app/text_table.h"
#include "core/json.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using Row = TableRow;

constexpr std::size_t kMostOfASummary = 400;  // bytes of a line
constexpr std::size_t kIdLength = 10;         // enough of a fingerprint to be the only one

std::string ago(core::WallTime then, core::WallTime now) {
  if (core::nanoseconds(then) == 0) return "";
  const auto since =
      std::max<std::int64_t>(0, (core::nanoseconds(now) - core::nanoseconds(then)) / 1'000'000'000);
  if (since < 120) return std::to_string(since) + " s ago";
  if (since < 7200) return std::to_string(since / 60) + " min ago";
  if (since < 172'800) return std::to_string(since / 3600) + " h ago";
  return std::to_string(since / 86'400) + " d ago";
}

std::string short_run(const core::RunUid& run) { return core::to_text(run).substr(0, 8); }

std::string short_id(const core::Issue& issue) {
  return core::fingerprint(issue.labels).substr(0, kIdLength);
}

std::string state_of(const core::JobEvent& run) {
  if (run.phase != core::JobPhase::ended) return "running";
  return run.outcome.empty() ? "ended" : printable(run.outcome);
}

// Running ones, and what ended within a day; the newest first.
std::vector<const core::JobEvent*> recent_runs(const TopicView& view, core::WallTime now) {
  std::vector<const core::JobEvent*> out;
  for (const auto& [uid, run] : view.runs()) {
    const bool recent = now - run.time < 24h;
    if (run.phase != core::JobPhase::ended || recent) out.push_back(&run);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->time > b->time; });
  return out;
}

std::string job_of(const TopicView& view, const core::RunUid& run) {
  const auto found = view.runs().find(run);
  return found == view.runs().end() ? short_run(run) : printable(found->second.run.job);
}

// What rules have summed up of the runs that are shown.
std::vector<const core::RuleStatusEvent*> sums(const TopicView& view, core::WallTime now) {
  std::vector<const core::RuleStatusEvent*> out;
  for (const auto* run : recent_runs(view, now)) {
    for (auto rule = view.rules().lower_bound({run->run.uid, ""});
         rule != view.rules().end() && rule->first.first == run->run.uid; ++rule) {
      if (!rule->second.summary.empty()) out.push_back(&rule->second);
    }
  }
  return out;
}

// One sentence each.
std::vector<std::string> unhealthy(const TopicView& view, core::WallTime now) {
  std::vector<std::string> out;
  for (const auto& [integration, last] : view.deliveries()) {
    const bool failed = last.state == core::DeliveryState::dead ||
                        last.state == core::DeliveryState::expired ||
                        (last.state == core::DeliveryState::pending && last.attempt > 1);
    if (!failed) continue;
    out.push_back("deliveries of " + printable(integration) + " fail: " +
                  std::string(core::to_string(last.state)) + ", " + printable(last.code) + " " +
                  printable(last.detail) + " (" + ago(last.stages.answered, now) + ")");
  }
  for (const auto& [key, rule] : view.rules()) {
    const auto run = view.runs().find(key.first);
    const bool running = run != view.runs().end() && run->second.phase != core::JobPhase::ended;
    if (!running) continue;
    if (rule.status == core::RuleState::error) {
      out.push_back("rule " + printable(rule.rule) + " fails on " + job_of(view, key.first) + ": " +
                    printable(rule.reason));
    } else if (rule.status == core::RuleState::no_data && !rule.missing.empty()) {
      out.push_back("rule " + printable(rule.rule) + " has no data of " + job_of(view, key.first) +
                    ": " + printable(rule.missing.front()) + " is missing");
    }
  }
  if (view.refused().records > 0) {
    out.push_back(std::to_string(view.refused().records) +
                  " records could not be read and lie in the topic dlq; newest: " +
                  printable(view.refused().newest));
  }
  return out;
}

std::vector<const TopicView::SeenIssue*> open_issues(const TopicView& view) {
  std::vector<const TopicView::SeenIssue*> out;
  for (const auto& [key, seen] : view.issues()) {
    if (seen.newest.status == core::IssueStatus::firing) out.push_back(&seen);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    return std::pair(a->newest.severity, b->since) > std::pair(b->newest.severity, a->since);
  });
  return out;
}

std::vector<const routing::Silence*> in_force(const TopicView& view, core::WallTime now) {
  std::vector<const routing::Silence*> out;
  for (const auto& [id, silence] : view.silences()) {
    if (routing::in_force(silence, now)) out.push_back(&silence);
  }
  return out;
}

// "silenced: " where nobody is told of it, or what else is held back.
std::string silenced(const TopicView& view, const core::Issue& issue, core::WallTime now) {
  bool untold = false;
  bool unstopped = false;
  for (const auto* silence : in_force(view, now)) {
    const auto matchers = routing::Matchers::parse(silence->matchers);
    if (!matchers || !matchers->matches(issue.labels)) continue;
    untold = untold || silence->actions != "stop_training";
    unstopped = unstopped || silence->actions != "notify";
  }
  if (untold) return unstopped ? "silenced: " : "silenced (notify): ";
  return unstopped ? "silenced (stop_training): " : "";
}

std::string stop_phase(const TopicView::SeenStop& stop) {
  if (stop.command.dry_run) return "dry run";
  return stop.newest ? printable(stop.newest->phase) : "asked, no answer yet";
}

// A rule, or the person who asked.
std::string asked_by(const core::Command& command) {
  const std::string& rule = command.reason.rule;
  return rule.empty() ? printable(command.requested_by) : "rule " + printable(rule);
}

core::Value parsed(const std::string& json) {
  const auto value = core::parse_json(json, 1U << 20);
  return value ? *value : core::Value();
}

std::string heading(const char* name, std::size_t count) {
  return std::string("\n") + name + (count == 0 ? ": none\n" : "\n");
}

}  // namespace

std::string status_text(const TopicView& view, const std::string& transport, core::WallTime now) {
  std::string out = transport + "\n";
  std::vector<Row> rows{{"JOB", "RUN", "ATTEMPT", "STATE", "STEP", "LAST HEARD OF"}};
  for (const auto* run : recent_runs(view, now)) {
    rows.push_back({printable(run->run.job), short_run(run->run.uid),
                    std::to_string(run->run.attempt), state_of(*run),
                    run->step ? std::to_string(*run->step) : "–", ago(run->time, now)});
  }
  out += heading("runs", rows.size() - 1) + (rows.size() > 1 ? text_table(rows) : "");
  const auto told = sums(view, now);
  out += heading("summed up", told.size());
  for (const auto* rule : told) {
    out += "  " + job_of(view, rule->run.uid) + ": " + printable(rule->rule) + ": " +
           summary_line(rule->summary, kMostOfASummary) + "\n";
  }
  const auto open = open_issues(view);
  out += heading("open issues", open.size()) + (open.empty() ? "" : issues_text(open, view, now));
  rows = {{"JOB", "RUN", "STATE", "ASKED", "BY", "WHY"}};
  for (const auto& [run, stop] : view.stops()) {
    rows.push_back({job_of(view, run), short_run(run), stop_phase(stop),
                    ago(stop.command.issued_at, now), asked_by(stop.command),
                    printable(stop.command.reason.summary)});
  }
  out += heading("stops", rows.size() - 1) + (rows.size() > 1 ? text_table(rows) : "");
  rows = {{"ID", "UNTIL", "BY", "MATCHERS", "COMMENT"}};
  for (const auto* silence : in_force(view, now)) {
    rows.push_back({silence->id.substr(0, kIdLength), core::to_rfc3339(silence->ends_at),
                    printable(silence->created_by), printable(silence->matchers),
                    printable(silence->comment)});
  }
  if (rows.size() > 1) out += heading("silences", rows.size() - 1) + text_table(rows);
  const auto bad = unhealthy(view, now);
  out += heading("unhealthy", bad.size());
  for (const std::string& sentence : bad) out += "  " + sentence + "\n";
  return out;
}

std::string status_json(const TopicView& view, const std::string& transport, core::WallTime now) {
  core::ValueList runs;
  for (const auto* run : recent_runs(view, now)) {
    runs.push_back(core::ValueMap{{"run", core::to_text(run->run.uid)},
                                  {"job", run->run.job},
                                  {"attempt", std::int64_t{run->run.attempt}},
                                  {"state", state_of(*run)},
                                  {"step", run->step ? core::Value(*run->step) : core::Value()},
                                  {"last_heard_of", core::to_rfc3339(run->time)}});
  }
  core::ValueList issues;
  for (const auto* seen : open_issues(view))
    issues.push_back(parsed(ingest::issue_json(seen->newest)));
  core::ValueList stops;
  for (const auto& [run, stop] : view.stops()) {
    stops.push_back(
        core::ValueMap{{"run", core::to_text(run)},
                       {"command_id", stop.command.command_id},
                       {"rule", stop.command.reason.rule},
                       {"requested_by", stop.command.requested_by},
                       {"reason", stop.command.reason.summary},
                       {"dry_run", stop.command.dry_run},
                       {"phase", stop.newest ? core::Value(stop.newest->phase) : core::Value()},
                       {"issued_at", core::to_rfc3339(stop.command.issued_at)}});
  }
  core::ValueList summaries;
  for (const auto* rule : sums(view, now)) {
    summaries.push_back(core::ValueMap{{"run", core::to_text(rule->run.uid)},
                                       {"attempt", std::int64_t{rule->run.attempt}},
                                       {"rule", rule->rule},
                                       {"summary", rule->summary}});
  }
  core::ValueList silences;
  for (const auto* silence : in_force(view, now)) {
    silences.push_back(parsed(silence_json(*silence)));
  }
  core::ValueList bad;
  for (std::string& sentence : unhealthy(view, now)) bad.emplace_back(std::move(sentence));
  return core::to_json(core::ValueMap{{"transport", transport},
                                      {"runs", std::move(runs)},
                                      {"issues", std::move(issues)},
                                      {"stops", std::move(stops)},
                                      {"summaries", std::move(summaries)},
                                      {"silences", std::move(silences)},
                                      {"unhealthy", std::move(bad)}});
}

std::string issues_text(const std::vector<const TopicView::SeenIssue*>& issues,
                        const TopicView& view, core::WallTime now) {
  std::vector<Row> rows{{"ID", "SEVERITY", "RULE", "JOB", "SINCE", "WHAT"}};
  for (const auto* seen : issues) {
    const core::Issue& issue = seen->newest;
    const bool open = issue.status == core::IssueStatus::firing;
    rows.push_back({short_id(issue), std::string(core::to_string(issue.severity)),
                    printable(issue.rule) + (issue.shadow ? " (shadow)" : ""),
                    printable(issue.run.job), ago(seen->since, now),
                    (open ? silenced(view, issue, now) : "resolved: ") + printable(issue.summary)});
  }
  return text_table(rows);
}

std::string issue_text(const TopicView::SeenIssue& seen, core::WallTime now) {
  const core::Issue& issue = seen.newest;
  std::string out = printable(issue.summary) + "\n";
  if (!issue.recommendation.empty()) out += "→ " + printable(issue.recommendation) + "\n";
  std::vector<Row> rows;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, printable(value)});
  };
  add("status", std::string(core::to_string(issue.status)) +
                    (issue.resolution == core::Resolution::none
                         ? ""
                         : " (" + std::string(core::to_string(issue.resolution)) + ")"));
  add("severity", std::string(core::to_string(issue.severity)));
  add("shadow", issue.shadow ? "yes: recorded, told to nobody" : "");
  add("since", core::to_rfc3339(seen.since) + ", " + ago(seen.since, now));
  add("run", core::to_text(issue.run.uid) + ", attempt " + std::to_string(issue.run.attempt));
  add("step", issue.step ? std::to_string(*issue.step) : "");
  add("reports", std::to_string(seen.reports));
  add("runbook", issue.runbook_url);
  add("fingerprint", core::fingerprint(issue.labels));
  add("event", issue.event_id);
  for (const auto& [name, value] : issue.labels.entries())
    rows.push_back({"label " + name, printable(value)});
  for (const auto& [name, value] : issue.evidence.values) {
    rows.push_back({"value " + name, printable(core::to_json(value))});
  }
  return out + "\n" + text_table(rows);
}

namespace {

/// Takes the fields of one event and gives its line.
class LineLog final : public core::Log {
 public:
  LineLog(core::WallTime time, bool colour) : time_(time), colour_(colour) {}
  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field> fields) override {
    core::ValueMap map;
    for (const auto& [name, value] : fields) map.emplace_back(std::string(name), value);
    line = console_line(level, event, map, time_, colour_);
  }
  std::string line;

 private:
  core::WallTime time_;
  bool colour_;
};

}  // namespace

std::string issue_line(const core::Issue& issue, bool colour) {
  LineLog log(issue.time, colour);
  log_issue(log, issue, {});
  return log.line;
}

std::string job_line(const core::JobEvent& event, bool colour) {
  LineLog log(event.time, colour);
  log_job(log, event);
  return log.line;
}

std::string stop_line(const core::Command& command, const std::string& job, bool colour) {
  LineLog log(command.issued_at, colour);
  log_stop(log, command, job);
  return log.line;
}

std::string ack_line(const core::Ack& ack, bool colour) {
  LineLog log(ack.time, colour);
  log_ack(log, ack);
  return log.line;
}

}  // namespace tocsin::app
