#include "app/view/view_text.h"

#include "actions/actions.h"
#include "app/log/log_console.h"
#include "app/view/ack_words.h"
#include "app/view/events_log.h"
#include "app/view/view_words.h"
#include "core/labels.h"
#include "core/text.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using Row = core::TableRow;

// "silenced: " where nobody is told of it, or what else is held back.
std::string silenced(const TopicView& view, const core::Issue& issue, core::WallTime now) {
  bool untold = false;
  bool unstopped = false;
  for (const auto* silence : in_force(view, now)) {
    const auto scope = routing::SilenceScope::of(*silence);
    if (!scope || !scope->matches(issue.labels)) continue;
    untold = untold || silence->actions != "stop_training";
    unstopped = unstopped || silence->actions != "notify";
  }
  if (untold) return unstopped ? "silenced: " : "silenced (notify): ";
  return unstopped ? "silenced (stop_training): " : "";
}

// "acknowledged by ada@node-7: "
std::string taken_on(const TopicView& view, const TopicView::SeenIssue& seen, core::WallTime now) {
  if (view.acknowledgements().empty()) return {};
  const auto* ack = acknowledged(view, core::issue_key(seen.newest.labels), seen, now);
  return ack == nullptr ? "" : "acknowledged by " + core::visible(ack->by) + ": ";
}

// "resolved (job_ended): ": what stands behind it is what was found.
std::string ended(const core::Issue& issue) {
  const std::string how(core::to_string(issue.resolution));
  return how.empty() ? "resolved: " : "resolved (" + how + "): ";
}

}  // namespace

std::string issues_text(const std::vector<const TopicView::SeenIssue*>& issues,
                        const TopicView& view, core::WallTime now) {
  std::vector<Row> rows{{"ID", "SEVERITY", "RULE", "JOB", "SINCE", "WHAT"}};
  for (const auto* seen : issues) {
    const core::Issue& issue = seen->newest;
    const bool open = issue.status == core::IssueStatus::firing;
    rows.push_back(
        {short_id(core::fingerprint(issue.labels)), std::string(core::to_string(issue.severity)),
         core::visible(issue.rule) + (issue.shadow ? " (shadow)" : ""),
         core::visible(issue.run.job), ago(seen->since, now),
         (open ? silenced(view, issue, now) + taken_on(view, *seen, now) : ended(issue)) +
             core::visible(issue.summary)});
  }
  return core::text_table(rows);
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
  if (ack.action == "stop" || ack.action == actions::kPlatformAck) {
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
