#include "app/api/past_issues.h"

#include <optional>
#include <variant>

#include "app/api/api_rows.h"
#include "app/api/past_run.h"
#include "app/api/run_first_signs.h"
#include "app/view/topic_view.h"
#include "core/issue.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostIssuesOfARun = 10'000;
constexpr std::size_t kMostBytesHeld = std::size_t{32} << 20U;  // then runs are read again

}  // namespace

// How an issue was depends on the attempts of its run and on its own reports, on nothing else.
void PastIssues::sort_in(insights::KeptRecord kept, OfRun& out) {
  const std::string& topic = kept.record.topic;
  if (topic != core::topic::kRegistry && topic != core::topic::kIssues) return;
  const auto decoded = ingest::decode_event(kept.view());
  if (!decoded) return;
  bytes_ += kept.record.value ? kept.record.value->size() : 0;
  if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    out.reports[core::issue_key(issue->labels)].push_back(std::move(kept));
  } else if (std::holds_alternative<core::JobEvent>(decoded->event)) {
    out.attempts.push_back(std::move(kept));
  }
}

PastIssues::OfRun PastIssues::read(const insights::IssueLine& line) {
  std::optional<insights::RunLine> run;
  if (!line.run.empty()) run = store_.run(line.run);
  auto issues = run ? store_.issues_of(run->uid, kMostIssuesOfARun) : std::vector{line};
  auto events = line.run.empty() ? store_.events_of_issue(line.key) : store_.events_of(line.run);
  insights::RunLine then = run.value_or(insights::RunLine());
  OfRun out;
  if (!put_back(then, issues, events, at_)) return out;  // nothing was known of it
  mark_first_signs(issues);
  for (insights::IssueLine& one : issues)
    out.lines.emplace(std::pair(one.key, one.ordinal), std::move(one));
  for (insights::KeptRecord& kept : events) sort_in(std::move(kept), out);
  return out;
}

const PastIssues::OfRun& PastIssues::run_of(const insights::IssueLine& line) {
  const std::string place =
      line.run.empty() ? line.key + "/" + std::to_string(line.ordinal) : line.run;
  if (const auto known = runs_.find(place); known != runs_.end()) return known->second;
  if (bytes_ > kMostBytesHeld) {
    runs_.clear();
    bytes_ = 0;
  }
  return runs_.emplace(place, read(line)).first->second;
}

bool PastIssues::first_sign(const insights::IssueLine& line) {
  const OfRun& run = run_of(line);
  const auto then = run.lines.find({line.key, line.ordinal});
  return then != run.lines.end() && then->second.first_sign;
}

core::Value PastIssues::issue(const insights::IssueLine& line) {
  const OfRun& run = run_of(line);
  const auto then = run.lines.find({line.key, line.ordinal});
  const auto reports = run.reports.find(line.key);
  if (then == run.lines.end() || reports == run.reports.end()) return {};
  TopicView view;
  if (!line.event_id.empty()) view.look_for(line.event_id);
  for (const auto& kept : run.attempts) view.apply(kept.view());
  for (const auto& kept : reports->second) view.apply(kept.view());
  view.close_ended();
  const auto seen = view.found().find(line.key);
  if (seen == view.found().end()) return {};
  const core::Issue& newest = seen->second.newest;
  // Reports between its first and its newest one are not kept: it had not been silent.
  const IssueState state =
      state_of(view, newest, resolve_timeout_, then->second.firing ? newest.time : at_);
  const auto number = static_cast<std::uint64_t>(line.episode.value_or(line.ordinal));
  return issue_value({line.key, seen->second, state, number, {}});
}

}  // namespace tocsin::app
