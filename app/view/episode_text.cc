#include "app/view/episode_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "app/view/router_reading.h"
#include "app/view/view_words.h"
#include "core/fields/out.h"
#include "core/fields/run_told.h"
#include "core/json.h"
#include "core/text_table.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using Row = core::TableRow;

std::string at_step(const std::optional<std::int64_t>& step) {
  return step ? " at step " + std::to_string(*step) : "";
}

/// The end of the attempt that the issue is about; null: it goes on, or another attempt runs.
const core::JobEvent* end_of(const core::Issue& issue, const TopicView& view) {
  const auto run = view.runs().find(issue.run.uid);
  if (run == view.runs().end() || run->second.phase != core::JobPhase::ended) return nullptr;
  const std::uint32_t attempt = issue.run.attempt;
  return attempt == 0 || attempt == run->second.run.attempt ? &run->second : nullptr;
}

const TopicView::SeenStop* stop_of(const core::Issue& issue, const TopicView& view) {
  const auto stop = view.stops().find(issue.run.uid);
  if (stop == view.stops().end() || stop->second.command.dry_run) return nullptr;
  const std::uint32_t attempt = issue.run.attempt;
  return attempt == 0 || attempt == stop->second.command.attempt ? &stop->second : nullptr;
}

std::string outcome_text(const core::JobEvent& end) {
  std::string out = end.outcome.empty() ? "unknown" : end.outcome;
  if (end.exit_code) out += ", exit code " + std::to_string(*end.exit_code);
  return out + at_step(end.step);
}

std::string asked_by(const core::StopTold& stop) {
  return stop.rule.empty() ? stop.requested_by : "rule " + stop.rule;
}

std::string answers_text(const core::StopAnswers& answers) {
  if (answers.heard == 0) return "no rank has answered";
  const std::string all = answers.asked == 0 ? "" : " of " + std::to_string(answers.asked);
  std::string out = std::to_string(answers.stopped) + all + " ranks stopped";
  if (answers.accepted > answers.stopped) {
    out += ", " + std::to_string(answers.accepted) + " accepted";
  }
  if (answers.refused > 0) out += ", " + std::to_string(answers.refused) + " refused";
  return out;
}

std::string checkpoint_text(const core::Checkpoint& checkpoint) {
  return (checkpoint.host.empty() ? "" : checkpoint.host + ":") + checkpoint.path +
         (checkpoint.bytes == 0 ? "" : ", " + std::to_string(checkpoint.bytes) + " bytes") +
         (checkpoint.step ? ", saved" + at_step(checkpoint.step) : "");
}

class Rows {
 public:
  void add(const std::string& name, const std::string& value) {
    if (!value.empty()) rows_.push_back({name, core::visible(value)});
  }
  [[nodiscard]] std::string text() const { return core::text_table(rows_); }

 private:
  std::vector<Row> rows_;
};

void add_end(Rows& rows, const core::Issue& issue) {
  if (issue.status == core::IssueStatus::firing) return;
  rows.add("ended", issue.ends_at ? core::to_rfc3339(*issue.ends_at) : "");
  if (!issue.ending) return;
  rows.add("ending", issue.ending->summary);
  rows.add("ended at step", issue.ending->step ? std::to_string(*issue.ending->step) : "");
  rows.add("ending event", issue.ending->event_id);
}

void add_stop(Rows& rows, const core::StopTold& stop) {
  rows.add("stop", stop.state + ", asked by " + asked_by(stop));
  rows.add("stop command", stop.command_id);
  rows.add("stop answers", answers_text(stop.answers));
  rows.add("stopped at step", stop.step ? std::to_string(*stop.step) : "");
  rows.add("checkpoint", stop.checkpoint ? checkpoint_text(*stop.checkpoint) : "");
  rows.add("checkpoint failed", stop.checkpoint_failure);
}

// "today: told; 1 end owed; 2 messages on their way"
std::string told_text(const routing::IntegrationStanding& one, const std::string& key) {
  const auto is_it = [&](const auto& entry) { return entry.issue_key == key; };
  const auto told = std::find_if(one.told.begin(), one.told.end(), is_it);
  std::string out = one.integration;
  if (told == one.told.end()) {
    out += ": not told";
  } else {
    out += told->arrived ? ": told" : ": a message is on its way";
  }
  if (std::any_of(one.owed.begin(), one.owed.end(), is_it)) out += ", its end is owed";
  if (one.told.size() > 1 && told != one.told.end())
    out += ", with " + std::to_string(one.told.size() - 1) + " more";
  return out;
}

// Who was told of it, and when its groups are looked at next.
void add_groups(Rows& rows, const std::vector<routing::GroupStanding>& groups,
                const std::string& key, core::WallTime now) {
  for (const routing::GroupStanding& group : groups) {
    rows.add("group", group.key);
    if (group.next_flush) {
      rows.add("next look", *group.next_flush <= now ? "due by its group_interval"
                                                     : core::to_rfc3339(*group.next_flush));
    }
    for (const auto& one : group.integrations) rows.add("told", told_text(one, key));
  }
}

}  // namespace

std::string issue_text(const TopicView::SeenIssue& seen, const TopicView& view, core::WallTime now,
                       const RoutingSight& sight) {
  const core::Issue& issue = seen.newest;
  std::string out = core::visible(issue.summary) + "\n";
  if (!issue.description.empty()) out += core::visible(issue.description) + "\n";
  if (!issue.recommendation.empty()) out += "→ " + core::visible(issue.recommendation) + "\n";
  Rows rows;
  rows.add("status", std::string(core::to_string(issue.status)) +
                         (issue.resolution == core::Resolution::none
                              ? ""
                              : " (" + std::string(core::to_string(issue.resolution)) + ")"));
  rows.add("severity", std::string(core::to_string(issue.severity)));
  rows.add("shadow", issue.shadow ? "yes: recorded, told to nobody" : "");
  const std::string key = core::issue_key(issue.labels);
  const HeldBack held = HeldBackView(view, sight, now).of(view, key, seen);
  for (const auto& [name, text] : held_back_rows(held, view, now)) rows.add(name, text);
  if (sight.standing != nullptr) add_groups(rows, sight.standing->groups_of(key), key, now);
  rows.add("since", core::to_rfc3339(seen.since) + ", " + ago(seen.since, now));
  rows.add("run", core::to_text(issue.run.uid) + ", attempt " + std::to_string(issue.run.attempt));
  rows.add("step", issue.step ? std::to_string(*issue.step) : "");
  add_end(rows, issue);
  if (const auto* end = end_of(issue, view)) rows.add("outcome of the run", outcome_text(*end));
  if (const auto* stop = stop_of(issue, view)) add_stop(rows, stop->told);
  rows.add("reports", std::to_string(seen.reports));
  rows.add("runbook", issue.runbook_url);
  rows.add("fingerprint", core::fingerprint(issue.labels));
  rows.add("event", issue.event_id);
  for (const auto& [name, value] : issue.labels.entries()) rows.add("label " + name, value);
  for (const auto& [name, value] : issue.evidence.values) {
    rows.add("value " + name, core::to_json(value));
  }
  return out + "\n" + rows.text();
}

std::string episode_json(const TopicView::SeenIssue& seen, const TopicView& view,
                         core::WallTime now, const RoutingSight& sight) {
  const core::Issue& issue = seen.newest;
  const std::string key = core::issue_key(issue.labels);
  core::ValueMap out =
      issue_with_held_back(issue, HeldBackView(view, sight, now).of(view, key, seen));
  if (const auto* end = end_of(issue, view)) out.emplace_back("outcome", end->outcome);
  if (const auto* stop = stop_of(issue, view)) {
    out.emplace_back("stop", core::message_value(stop->told));
  }
  if (sight.standing != nullptr) {
    core::ValueList groups;
    for (const auto& group : sight.standing->groups_of(key)) groups.push_back(group_value(group));
    out.emplace_back("groups", std::move(groups));
  }
  return core::to_json(core::Value(std::move(out)));
}

}  // namespace tocsin::app
