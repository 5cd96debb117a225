#include "app/report/original_rules.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "app/report/sections.h"
#include "rules/rules.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostOriginalDetails = 100;  // issues of a rule

std::int64_t counted(const core::RuleStatusEvent& rule, const char* outcome) {
  const auto found = rule.evaluations.find(outcome);
  return found == rule.evaluations.end() ? 0 : static_cast<std::int64_t>(found->second);
}

/// "cpu_threshold:90\nwindow:1000", as the original writes them.
std::string parameter_lines(const core::ValueMap& parameters) {
  std::string out;
  for (const auto& [name, value] : parameters) {
    out += (out.empty() ? "" : "\n") + name + ":" + cell_text(value);
  }
  return out;
}

/// Issues of a rule that no other rule sums up.
core::ValueMap issue_details(const RunReport& report, const core::RuleStatusEvent& rule) {
  core::ValueMap out;
  for (const IssueTold& told : report.issues) {
    if (told.first.rule != rule.rule || out.size() == kMostOriginalDetails) continue;
    core::ValueMap one{{"summary", told.first.summary},
                       {"first", core::to_rfc3339(told.first.time)},
                       {"last", core::to_rfc3339(told.last.time)},
                       {"occurrences", told.last.evidence.occurrences}};
    if (told.first.step) one.emplace_back("step", *told.first.step);
    out.emplace_back(told.first.event_id, std::move(one));
  }
  return out;
}

core::ValueMap original_report(const RunReport& report, const core::RuleStatusEvent& rule,
                               const core::ValueMap& told) {
  const std::int64_t issues =
      std::count_if(report.issues.begin(), report.issues.end(),
                    [&](const IssueTold& one) { return one.first.rule == rule.rule; });
  const std::int64_t hits = counted(rule, "hit");
  const core::Value* raised = core::find(told, "violations");
  core::ValueMap details = map_at(told, "details");
  if (details.empty()) details = rule.summary;
  if (details.empty()) details = issue_details(report, rule);
  return {{"RuleTriggered", hits},
          {"Violations", raised == nullptr ? core::Value(issues) : *raised},
          {"Datapoints", hits + counted(rule, "ok")},
          {"Details", std::move(details)},
          {"RuleParameters", parameter_lines(map_at(told, "parameters"))}};
}

}  // namespace

std::vector<std::pair<std::string, core::ValueMap>> original_reports(const RunReport& report) {
  std::vector<std::pair<std::string, core::ValueMap>> out;
  static const core::ValueMap kNone;
  const core::ValueMap* profiler = summary_of(report, "profiler_report");
  const core::ValueMap& parts = profiler == nullptr ? kNone : map_at(*profiler, "rules");
  std::set<std::string, std::less<>> taken;
  for (const core::RuleStatusEvent& rule : report.rules) {
    const rules::RuleDescriptor* type = rules::find_rule(rule.rule_type);
    if (type == nullptr || type->original_name.empty()) continue;
    if (type->name == "profiler_report" || type->name == "create_xgboost_report") continue;
    std::string name(type->original_name);
    if (!taken.insert(name).second) name += "-" + rule.rule;
    out.emplace_back(std::move(name), original_report(report, rule, map_at(parts, rule.rule)));
  }
  return out;
}

}  // namespace tocsin::app::report
