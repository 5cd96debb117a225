#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

#include "app/report/sections.h"
#include "core/episode.h"
#include "core/first_signs.h"
#include "core/issue.h"
#include "rules/rules.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostTold = 500;      // rows of the table
constexpr std::size_t kMostDetailed = 100;  // of these, the first with all they have
constexpr std::size_t kMostLanes = 30;

/// Labels that say whose issue it is, not what was judged.
bool says_unit(std::string_view label) {
  static constexpr std::string_view kNoUnit[] = {"rule",    "kind",    "severity", "job",
                                                 "run_uid", "cluster", "attempt"};
  return std::find(std::begin(kNoUnit), std::end(kNoUnit), label) == std::end(kNoUnit);
}

std::string unit_of(const core::Issue& issue) {
  std::string out;
  for (const auto& [name, value] : issue.labels.entries()) {
    if (says_unit(name)) out += (out.empty() ? "" : " ") + name + "=" + value;
  }
  return out;
}

std::string then(const core::Issue& last) {
  if (last.status == core::IssueStatus::firing) return "open";
  std::string out(core::to_string(last.resolution));
  const std::optional<std::int64_t> step = core::step_of_news(last);
  if (step && last.resolution == core::Resolution::recovered) {
    out += " at " + std::to_string(*step);
  }
  return out;
}

std::string place(const core::Issue& issue) {
  if (!issue.step) return core::to_rfc3339(issue.time);
  const std::string step = std::to_string(*issue.step);
  return issue.mode ? std::string(core::to_string(*issue.mode)) + " " + step : step;
}

Group details_of(const IssueTold& told) {
  const core::Issue& issue = told.last.status == core::IssueStatus::firing ? told.last : told.first;
  const core::Evidence& evidence = issue.evidence;
  Section inner;
  if (!issue.description.empty()) inner.add(Paragraph{issue.description});
  if (!issue.recommendation.empty()) inner.add(Paragraph{"→ " + issue.recommendation});
  Table table;
  const auto row = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) table.rows.push_back({name, value});
  };
  row("kind", issue.kind);
  row("of", unit_of(issue));
  if (!evidence.observed.name.empty()) {
    row("observed", evidence.observed.name + " " + number_text(evidence.observed.value));
  }
  if (evidence.threshold) {
    row("limit", evidence.op + " " + evidence.threshold->name + " " +
                     number_text(evidence.threshold->value));
  }
  if (evidence.window.points > 0) {
    const bool steps = evidence.window.clock == "step";
    row("window", (steps ? "steps " + std::to_string(evidence.window.first) + " to " +
                               std::to_string(evidence.window.last)
                         : core::to_rfc3339(core::wall_time(evidence.window.first)) + " to " +
                               core::to_rfc3339(core::wall_time(evidence.window.last))) +
                      ", " + std::to_string(evidence.window.points) + " points" +
                      (evidence.window.partial ? ", not all of them" : ""));
  }
  row("seen", std::to_string(evidence.occurrences) + " times, first at " +
                  core::to_rfc3339(told.first.time));
  row("runbook", issue.runbook_url);
  for (const core::Cause& cause : issue.caused_by) {
    row("follows from", cause.rule + " " + cause.unit + " (" + cause.event_id + ")");
  }
  for (const core::DataRef& ref : evidence.data_refs) {
    row("records", ref.topic + " partition " + std::to_string(ref.partition) + " offset " +
                       std::to_string(ref.first) +
                       (ref.last != ref.first ? " to " + std::to_string(ref.last) : ""));
  }
  row("rule",
      issue.rule_type + " version " + issue.rule_version + ", parameters " + issue.params_hash);
  row("event", told.first.event_id);
  inner.add(std::move(table));
  if (!evidence.values.empty()) tell(evidence.values, inner);
  return {place(told.first) + "  " + issue.rule + ": " + issue.summary, std::move(inner.blocks)};
}

using Clock = std::optional<core::Mode>;

/// Steps of training and of evaluation are counted apart: one axis shows those of which most is told.
Clock main_clock(const RunReport& report) {
  std::map<Clock, std::size_t> told;
  for (const IssueTold& one : report.issues) {
    if (one.first.step) ++told[one.first.mode];
  }
  const auto most = std::max_element(
      told.begin(), told.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == told.end() ? Clock{} : most->first;
}

/// By step, where the issues have one of this clock.
Timeline timeline_of(const RunReport& report, const Clock& clock) {
  Timeline out;
  out.x = clock ? std::string(core::to_string(*clock)) + " step" : "step";
  std::map<std::string, Timeline::Lane> lanes;
  bool any = false;
  double newest = 0;
  for (const IssueTold& told : report.issues) {
    if (!told.first.step || told.first.mode != clock) continue;
    const auto from = static_cast<double>(*told.first.step);
    const auto to = static_cast<double>(core::step_of_news(told.last).value_or(*told.first.step));
    newest = std::max({newest, from, to});
    any = true;
    auto lane = lanes.find(told.first.rule);
    if (lane == lanes.end()) {
      if (lanes.size() >= kMostLanes) continue;
      lane = lanes.emplace(told.first.rule, Timeline::Lane{told.first.rule, {}}).first;
    }
    lane->second.spans.push_back({from, std::max(from, to),
                                  std::string(core::to_string(told.first.severity)),
                                  told.first.summary});
  }
  if (!any) return {};
  const bool of_training = !clock || *clock == core::Mode::train || *clock == core::Mode::global;
  out.to = std::max(newest, of_training && report.step ? static_cast<double>(*report.step) : 0.0);
  for (auto& [name, lane] : lanes) out.lanes.push_back(std::move(lane));
  return out;
}

// As the API tells them: a cause was named, or another one began at an earlier step and was not over.
std::vector<bool> which_follow(const RunReport& report) {
  const auto micros = [](core::WallTime time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  };
  std::vector<std::string> keys;
  for (const IssueTold& told : report.issues) keys.push_back(core::issue_key(told.first.labels));
  std::vector<core::IssueSpan> spans;
  for (std::size_t at = 0; at < report.issues.size(); ++at) {
    const auto& [first, last, reports] = report.issues[at];
    core::IssueSpan one;
    one.key = keys[at];
    if (first.mode) one.mode = core::to_string(*first.mode);
    one.attempt = static_cast<std::int64_t>(first.run.attempt);
    if (!first.shadow) one.step = first.step;
    one.opened = micros(first.starts_at);
    if (last.status != core::IssueStatus::firing)
      one.closed = micros(last.ends_at.value_or(last.time));
    spans.push_back(one);
  }
  std::vector<bool> out = core::preceded(spans);
  for (std::size_t at = 0; at < out.size(); ++at)
    out[at] = out[at] || !report.issues[at].first.caused_by.empty();
  return out;
}

std::string state_words(const core::RuleStatusEvent& rule) {
  return std::string(core::to_string(rule.status));
}

}  // namespace

Section issue_section(const RunReport& report) {
  Section out{"Issues", {}};
  if (report.issues.empty()) {
    out.add(Paragraph{"No rule found an issue."});
    return out;
  }
  const std::vector<bool> follows = which_follow(report);
  const auto first = std::find_if(report.issues.begin(), report.issues.end(), [&](const auto& one) {
    return !follows[static_cast<std::size_t>(&one - report.issues.data())] && !one.first.shadow;
  });
  if (first != report.issues.end()) {
    out.add(Paragraph{"First sign, at " + place(first->first) + ": " + first->first.summary, true});
    if (!first->first.recommendation.empty()) {
      out.add(Paragraph{"→ " + first->first.recommendation});
    }
  }
  const Clock clock = main_clock(report);
  if (Timeline timeline = timeline_of(report, clock); !timeline.lanes.empty()) {
    out.add(std::move(timeline));
    const auto apart =
        std::count_if(report.issues.begin(), report.issues.end(),
                      [&](const auto& one) { return one.first.step && one.first.mode != clock; });
    if (apart > 0) {
      out.add(Paragraph{std::to_string(apart) +
                        " of other modes count other steps and stand in the table only."});
    }
  }
  Table table{{"step", "severity", "rule", "then", "of", "what"}, {}};
  for (const IssueTold& told : report.issues) {
    if (table.rows.size() == kMostTold) break;
    const core::Issue& issue = told.first;
    table.rows.push_back({place(issue), std::string(core::to_string(issue.severity)),
                          issue.rule + (issue.shadow ? " (shadow)" : "") +
                              (follows[table.rows.size()] ? " (follows)" : ""),
                          then(told.last), unit_of(issue), issue.summary});
  }
  out.add(std::move(table));
  if (report.issues.size() > kMostTold) {
    out.add(Paragraph{std::to_string(report.issues.size() - kMostTold) + " more are not listed."});
  }
  Group details{"each with its evidence", {}};
  for (const IssueTold& told : report.issues) {
    if (details.blocks.size() == kMostDetailed) break;
    details.blocks.push_back(Block{details_of(told)});
  }
  if (report.issues.size() > kMostDetailed) {
    details.title = "the first " + std::to_string(kMostDetailed) + " with their evidence";
  }
  out.add(std::move(details));
  return out;
}

Section rule_section(const RunReport& report) {
  Section out{"Rules", {}};
  Table table{{"rule", "status", "issues", "evaluated", "what it looks for", "why not"}, {}};
  for (const auto& rule : report.rules) {
    const auto issues =
        std::count_if(report.issues.begin(), report.issues.end(),
                      [&](const IssueTold& one) { return one.first.rule == rule.rule; });
    std::uint64_t judged = 0;
    for (const auto& [outcome, count] : rule.evaluations) {
      if (outcome == "ok" || outcome == "hit") judged += count;
    }
    std::string why = rule.reason;
    for (const std::string& one : rule.missing) why += (why.empty() ? "" : "; ") + one;
    const auto* descriptor = rules::find_rule(rule.rule_type);
    table.rows.push_back({rule.rule, state_words(rule), std::to_string(issues),
                          std::to_string(judged),
                          descriptor == nullptr ? "" : std::string(descriptor->title), why});
  }
  if (!table.rows.empty()) out.add(std::move(table));
  return out;
}

}  // namespace tocsin::app::report
