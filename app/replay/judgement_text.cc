#include "app/replay/judgement_text.h"

#include <algorithm>
#include <tuple>

#include "app/view/summary_text.h"
#include "core/episode.h"
#include "core/json.h"
#include "core/labels.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMaxIssue = 1U << 20;

using RunKey = std::pair<core::RunUid, std::uint32_t>;

/// What is known of a rule and an attempt at the end of the recording.
struct RuleLine {
  const rules::RuleSettings* rule = nullptr;
  core::RuleStatusEvent status;
  std::uint64_t issues = 0;
  std::optional<std::int64_t> first_step;
};

std::string needs_of(const core::RuleStatusEvent& status) {
  std::string out;
  for (const std::string& one : status.missing) out += (out.empty() ? "" : "; ") + one;
  if (!out.empty()) return out;
  const auto* descriptor = rules::find_rule(status.rule_type);
  return descriptor == nullptr ? "" : std::string(descriptor->needs);
}

std::vector<RuleLine> rule_lines(const JudgementHead& head, const RunJudgement& run,
                                 const std::vector<IssueStory>& stories) {
  std::vector<RuleLine> out;
  for (const auto& rule : head.rules.rules.rules) {
    RuleLine line;
    line.rule = &rule;
    if (const auto known = run.rules.find(rule.name); known != run.rules.end()) {
      line.status = known->second;
    } else {
      line.status.rule = rule.name;
      line.status.rule_type = rule.type;
      line.status.rule_version = rule.version;
      line.status.status = core::RuleState::no_data;
    }
    if (line.status.status == core::RuleState::no_data && line.status.reason.empty()) {
      line.status.reason = "no data arrived that this rule can judge";
    }
    for (const IssueStory& story : stories) {
      if (story.first->rule != rule.name) continue;
      ++line.issues;
      if (!line.first_step) line.first_step = story.first->step;
    }
    out.push_back(std::move(line));
  }
  return out;
}

std::string state_words(const RuleLine& line, bool ended) {
  switch (line.status.status) {
    case core::RuleState::issues_found:
      return line.rule->shadow ? "fired (shadow)" : "fired";
    case core::RuleState::no_issues_found:
      return "ok";
    case core::RuleState::in_progress:
      return ended ? "ok" : "ok so far";
    case core::RuleState::no_data:
    case core::RuleState::error:
    case core::RuleState::stopped:
      break;
  }
  return std::string(core::to_string(line.status.status));
}

std::string rule_words(const RuleLine& line) {
  if (line.issues > 0) {
    return std::to_string(line.issues) + (line.issues == 1 ? " issue" : " issues") +
           (line.first_step ? ", first at step " + std::to_string(*line.first_step) : "");
  }
  const bool failed = line.status.status == core::RuleState::error;
  std::string out = failed ? last_words(line.status.reason) : core::visible(line.status.reason);
  if (line.status.status == core::RuleState::no_data) {
    if (const std::string needs = needs_of(line.status); !needs.empty()) {
      out += " (needs: " + core::visible(needs) + ")";
    }
  }
  return out;
}

std::string where(const core::Issue& issue) {
  return issue.step ? std::to_string(*issue.step) : "–";
}

std::string until(const IssueStory& story) {
  const core::Issue& last = *story.last;
  if (last.status == core::IssueStatus::firing) return "open";
  std::string out(core::to_string(last.resolution));
  const std::optional<std::int64_t> step = core::step_of_news(last);
  if (step && last.resolution == core::Resolution::recovered) {
    out += " at " + std::to_string(*step);
  }
  return out;
}

std::string issue_table(const std::vector<IssueStory>& stories) {
  std::vector<core::TableRow> rows{{"STEP", "SEVERITY", "RULE", "THEN", "EVENT", "WHAT"}};
  for (const IssueStory& story : stories) {
    const core::Issue& issue = *story.first;
    rows.push_back({where(issue), std::string(core::to_string(issue.severity)),
                    core::visible(issue.rule) + (issue.shadow ? " (shadow)" : ""), until(story),
                    issue.event_id, core::visible(issue.summary)});
  }
  return core::text_table(rows);
}

std::vector<IssueStory> of_run(const std::vector<IssueStory>& all, const RunKey& run) {
  std::vector<IssueStory> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](const IssueStory& one) {
    return one.first->run.uid == run.first && one.first->run.attempt == run.second;
  });
  return out;
}

std::uint64_t rows_of(const Judgement& judgement, const core::RunUid& run) {
  const auto found = judgement.rows.find(run);
  return found == judgement.rows.end() ? 0 : found->second;
}

std::string count(std::uint64_t number, const char* one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

core::Value number_or_null(const std::optional<std::int64_t>& number) {
  return number ? core::Value(*number) : core::Value();
}

core::Value issue_value(const core::Issue& issue) {
  core::ValueMap out{{"id", issue.event_id}};
  const auto data = core::parse_json(ingest::issue_json(issue), kMaxIssue);
  if (!data) return out;
  if (const auto* map = core::as<core::ValueMap>(*data)) {
    for (const auto& [name, value] : *map) {
      if (name != "id") out.emplace_back(name, value);
    }
  }
  return out;
}

core::Value rule_value(const RuleLine& line) {
  core::ValueList missing;
  for (const std::string& one : line.status.missing) missing.emplace_back(one);
  core::ValueMap evaluations;
  for (const auto& [outcome, number] : line.status.evaluations) {
    evaluations.emplace_back(outcome, number);
  }
  return core::ValueMap{{"rule", line.rule->name},
                        {"type", line.rule->type},
                        {"version", line.rule->version},
                        {"params_hash", line.rule->params_hash},
                        {"status", std::string(core::to_string(line.status.status))},
                        {"reason", line.status.reason},
                        {"missing", std::move(missing)},
                        {"evaluations", std::move(evaluations)},
                        {"summary", line.status.summary},
                        {"issues", line.issues},
                        {"first_step", number_or_null(line.first_step)}};
}

core::Value run_value(const JudgementHead& head, const Judgement& judgement, const RunKey& key,
                      const RunJudgement& run, const std::vector<IssueStory>& stories) {
  core::ValueList rules;
  for (const RuleLine& line : rule_lines(head, run, stories)) rules.push_back(rule_value(line));
  return core::ValueMap{{"run", core::to_text(key.first)},
                        {"job", run.run.job},
                        {"attempt", std::int64_t{key.second}},
                        {"outcome", run.outcome.empty() ? core::Value() : core::Value(run.outcome)},
                        {"step", number_or_null(run.step)},
                        {"rows", rows_of(judgement, key.first)},
                        {"issues", std::uint64_t{stories.size()}},
                        {"rules", std::move(rules)}};
}

}  // namespace

std::vector<IssueStory> issue_stories(const Judgement& judgement) {
  std::vector<IssueStory> out;
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> known;
  for (const core::Issue& issue : judgement.events) {
    const auto [at, fresh] =
        known.try_emplace({core::issue_key(issue.labels), issue.run.attempt}, out.size());
    if (fresh) out.push_back({&issue, &issue, 0});
    IssueStory& story = out[at->second];
    ++story.reports;
    story.last = &issue;
  }
  return out;
}

std::string last_words(const std::string& reason) {
  std::size_t end = reason.find_last_not_of(" \n");
  if (end == std::string::npos) return {};
  const std::size_t before = reason.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return core::visible(reason.substr(begin, end + 1 - begin));
}

std::vector<RuleFailure> failures_of(const Judgement& judgement) {
  std::vector<RuleFailure> out;
  for (const auto& [key, run] : judgement.runs) {
    for (const auto& [rule, why] : run.failed) {
      out.push_back({rule, core::to_text(key.first), last_words(why)});
    }
  }
  return out;
}

std::string failure_text(const Judgement& judgement) {
  std::string out;
  for (const RuleFailure& one : failures_of(judgement)) {
    out += core::visible(one.rule) + " failed" +
           (judgement.runs.size() > 1 ? " in run " + one.run : "") + ": " + one.why + "\n";
  }
  return out;
}

core::Value failure_value(const Judgement& judgement) {
  core::ValueList out;
  for (const RuleFailure& one : failures_of(judgement)) {
    out.emplace_back(core::ValueMap{{"rule", one.rule}, {"run", one.run}, {"reason", one.why}});
  }
  return out;
}

std::string judgement_heading(const JudgementHead& head, const Judgement& judgement) {
  std::uint64_t rows = 0;
  for (const auto& [run, of_run] : judgement.rows) rows += of_run;
  std::string out = head.source + ": " + count(judgement.records, "record") + ", " +
                    count(rows, "row") + ", " + count(judgement.rows.size(), "run") + "; " +
                    head.rules.from + " (" + count(head.rules.rules.rules.size(), "rule") + ")\n";
  if (judgement.refused > 0) {
    out += count(judgement.refused, "record") +
           " could not be read; newest: " + core::visible(judgement.refused_newest) + "\n";
  }
  if (head.gaps > 0) out += "records are missing in " + count(head.gaps, "place") + "\n";
  return out;
}

std::string judgement_text(const JudgementHead& head, const Judgement& judgement) {
  std::string out = judgement_heading(head, judgement);
  const auto stories = issue_stories(judgement);
  for (const auto& [key, run] : judgement.runs) {
    const std::string uid = core::to_text(key.first);
    out += "\n" + (run.run.job.empty() ? uid : core::visible(run.run.job) + "  " + uid) +
           "  attempt " + std::to_string(key.second) + "  " +
           (run.outcome.empty() ? "no end recorded" : core::visible(run.outcome)) +
           (run.step ? "  step " + std::to_string(*run.step) : "") + "\n";
    const auto own = of_run(stories, key);
    if (!own.empty()) out += issue_table(own);
    std::vector<core::TableRow> rows;
    const std::vector<RuleLine> lines = rule_lines(head, run, own);
    rows.reserve(lines.size());
    for (const RuleLine& line : lines) {
      rows.push_back({core::visible(line.rule->name), state_words(line, !run.outcome.empty()),
                      rule_words(line)});
    }
    out += core::text_table(rows);
    for (const RuleLine& line : lines) {
      if (line.status.summary.empty()) continue;
      out += "  " + core::visible(line.rule->name) + " sums up\n" +
             summary_lines(line.status.summary, 4);
    }
  }
  if (const auto none = of_run(stories, {core::RunUid{}, 1}); !none.empty()) {
    out += "\nof no run\n" + issue_table(none);
  }
  return out;
}

std::string judgement_json(const JudgementHead& head, const Judgement& judgement) {
  const auto stories = issue_stories(judgement);
  core::ValueList runs;
  for (const auto& [key, run] : judgement.runs) {
    runs.push_back(run_value(head, judgement, key, run, of_run(stories, key)));
  }
  core::ValueList issues;
  for (const core::Issue& issue : judgement.events) issues.push_back(issue_value(issue));
  return core::to_json(core::ValueMap{
      {"source", head.source},
      {"rules", head.rules.from},
      {"records", judgement.records},
      {"gaps", head.gaps},
      {"refused",
       core::ValueMap{{"records", judgement.refused}, {"newest", judgement.refused_newest}}},
      {"runs", std::move(runs)},
      {"issues", std::move(issues)}});
}

}  // namespace tocsin::app
