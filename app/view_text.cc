#include "app/view_text.h"

#include "app/events_log.h"
#include "app/log_console.h"
#include "app/printable.h"
#include "app/text_table.h"
#include "app/view_words.h"
#include "core/json.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

using Row = TableRow;

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

}  // namespace

std::string issues_text(const std::vector<const TopicView::SeenIssue*>& issues,
                        const TopicView& view, core::WallTime now) {
  std::vector<Row> rows{{"ID", "SEVERITY", "RULE", "JOB", "SINCE", "WHAT"}};
  for (const auto* seen : issues) {
    const core::Issue& issue = seen->newest;
    const bool open = issue.status == core::IssueStatus::firing;
    rows.push_back({short_id(core::fingerprint(issue.labels)),
                    std::string(core::to_string(issue.severity)),
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

constexpr std::size_t kMostOfAReason = 300;

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
  if (ack.action == "stop") {
    log_ack(log, ack);
    return log.line;
  }
  core::Ack first = ack;  // stacks are many lines
  const bool more = first.reason.find('\n') != std::string::npos;
  first.reason.resize(std::min({first.reason.size(), first.reason.find('\n'), kMostOfAReason}));
  if (more) first.reason += " …";
  log_capture_answer(log, first);
  return log.line;
}

}  // namespace tocsin::app
