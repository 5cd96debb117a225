#include <algorithm>

#include "app/report/aftermath.h"
#include "app/report/run_report.h"
#include "app/report/sections.h"
#include "app/view/run_card.h"
#include "core/json.h"
#include "core/labels.h"
#include "ingest/ingest.h"
#include "rules/rules.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMaxIssue = 1U << 20;

std::string title_of(const RunReport& report) {
  return "Training report: " +
         (report.run.job.empty() ? core::to_text(report.run.uid) : report.run.job);
}

/// Summaries of rules that have no section of their own.
std::vector<Section> other_sections(const RunReport& report) {
  static constexpr std::string_view kOwn[] = {"profiler_report", "create_xgboost_report",
                                              "overall_system_usage", "overall_framework_metrics"};
  std::vector<Section> out;
  for (const auto& rule : report.rules) {
    if (rule.summary.empty()) continue;
    if (std::find(std::begin(kOwn), std::end(kOwn), rule.rule_type) != std::end(kOwn)) continue;
    if (is_card(rule.summary)) continue;
    Section section{"What " + rule.rule + " sums up", {}};
    tell(rule.summary, section);
    out.push_back(std::move(section));
  }
  return out;
}

std::vector<AnsweredQuestion> card_of_report(const RunReport& report) {
  CardSources sources;
  for (const auto& rule : report.rules) sources.rules.push_back(&rule);
  sources.world_size = report.world_size;
  for (const IssueTold& told : report.issues) {
    sources.firing.emplace_back(told.last.rule, told.last.summary);
  }
  return run_card(sources);
}

/// What the questions about the run came to, the worst first.
Section card_section(const RunReport& report) {
  const std::vector<AnsweredQuestion> card = card_of_report(report);
  Section out{"Run card: " + card_counts(card), {}};
  Table table{{"answer", "question", "about", "numbers"}, {}};
  Table unasked{{"question", "why it was not asked"}, {}};
  for (const AnsweredQuestion& one : card) {
    const std::string asks(one.question->asks);
    if (one.lines.empty()) unasked.rows.push_back({asks, one.why});
    for (const CardLine& line : one.lines) {
      table.rows.push_back({line.answer, asks, line.subject, line.numbers});
    }
  }
  if (!table.rows.empty()) out.add(std::move(table));
  if (!unasked.rows.empty()) {  // no holes where an answer would be
    Group folded{"questions that were not asked, and why", {}};
    folded.blocks.push_back(Block{std::move(unasked)});
    out.add(std::move(folded));
  }
  return out;
}

/// What this report could have shown, and why it does not.
Section missing_section(const RunReport& report, bool curves) {
  Section out{"What this report lacks", {}};
  Table table;
  for (const std::string_view type : {"profiler_report", "create_xgboost_report"}) {
    const auto rule = std::find_if(report.rules.begin(), report.rules.end(),
                                   [&](const auto& one) { return one.rule_type == type; });
    const bool xgboost = type == "create_xgboost_report";
    const std::string about = xgboost ? "an XGBoost training" : "time, machines and bottlenecks";
    if (rule == report.rules.end()) {
      table.rows.push_back({about, "the rule " + std::string(type) + " did not judge this run"});
    } else if (rule->summary.empty() && report.outcome.empty()) {
      table.rows.push_back({about, rule->rule + " tells it when the run has ended"});
    } else if (rule->summary.empty() || rule->status == core::RuleState::no_data) {
      table.rows.push_back(
          {about, rule->rule + ": " + (rule->reason.empty() ? "no data" : rule->reason)});
    }
  }
  if (!report.messages) {
    table.rows.push_back({"who was told, and the stop", "no log of messages was read"});
  }
  if (!curves) {
    table.rows.push_back({"curves of the training",
                          "no values are kept here; the server's page has them, and its report"});
  }
  if (report.gaps > 0) {
    table.rows.push_back({"records", "missing in " + std::to_string(report.gaps) + " places"});
  }
  if (!table.rows.empty()) out.add(std::move(table));
  return out;
}

// "node-7:/checkpoints/step-357.pt, at step 357"
std::string place_of(const core::Ack& ack) {
  return (ack.node.empty() ? "" : ack.node + ":") + ack.checkpoint_path + ", at step " +
         std::to_string(ack.step);
}

core::Value checkpoint_value(const RunReport& report) {
  if (!report.checkpoint) return {};
  return core::ValueMap{{"path", report.checkpoint->checkpoint_path},
                        {"host", report.checkpoint->node},
                        {"step", report.checkpoint->step}};
}

core::Value stop_value(const RunReport& report) {
  if (!report.stop) return {};
  const core::StopTold& stop = *report.stop;
  return core::ValueMap{{"state", stop.state},
                        {"mode", stop.mode},
                        {"requested_by", stop.requested_by},
                        {"rule", stop.rule.empty() ? core::Value() : core::Value(stop.rule)},
                        {"requested_at", core::to_rfc3339(stop.requested_at)},
                        {"step", stop.step ? core::Value(*stop.step) : core::Value()}};
}

core::Value message_values(const RunReport& report) {
  if (!report.messages) return {};
  core::ValueList out;
  for (const MessageSent& one : *report.messages) {
    out.push_back(core::ValueMap{{"at", core::to_rfc3339(one.at)},
                                 {"receiver", one.receiver},
                                 {"type", one.way},
                                 {"about", one.about},
                                 {"state", one.state},
                                 {"answer", one.answer}});
  }
  return out;
}

core::Value behind_value(const RunReport& report) {
  if (!report.store_behind) return {};
  return std::chrono::duration_cast<std::chrono::seconds>(*report.store_behind).count();
}

core::Value parsed(const std::string& json) {
  const auto value = core::parse_json(json, kMaxIssue);
  return value ? *value : core::Value();
}

}  // namespace

const core::ValueMap* summary_of(const RunReport& report, std::string_view rule_type) {
  for (const auto& rule : report.rules) {
    if (rule.rule_type == rule_type && !rule.summary.empty()) return &rule.summary;
  }
  return nullptr;
}

Page compose(const RunReport& report, Section curves, const std::string& version,
             core::WallTime made) {
  Page page;
  page.title = title_of(report);
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty()) page.facts.emplace_back(name, value);
  };
  fact("run", core::to_text(report.run.uid));
  fact("attempt", std::to_string(report.run.attempt));
  fact("state", report.outcome.empty() ? "not over, as far as is known: this is told so far"
                                       : report.outcome);
  fact("started", report.started ? moment_text(*report.started) : "");
  fact("last heard of", report.newest ? moment_text(*report.newest) : "");
  fact("step", report.step ? std::to_string(*report.step) : "");
  fact("checkpoint", report.checkpoint ? place_of(*report.checkpoint) : "");
  fact("workers", report.world_size > 0 ? std::to_string(report.world_size) : "");
  fact("issues", std::to_string(report.issues.size()));
  fact("read from", report.source);
  fact("judged by", report.judged_by);
  fact("report made", moment_text(made) + " by " + version);
  const auto add = [&](Section section) {
    if (!section.blocks.empty()) page.sections.push_back(std::move(section));
  };
  add(issue_section(report));
  add(aftermath_section(report));
  const bool with_curves = !curves.blocks.empty();
  add(std::move(curves));
  add(card_section(report));
  for (Section& one : profiler_sections(report)) add(std::move(one));
  if (const auto* xgboost = summary_of(report, "create_xgboost_report")) {
    for (Section& one : xgboost_sections(*xgboost)) add(std::move(one));
  }
  for (Section& one : other_sections(report)) add(std::move(one));
  add(rule_section(report));
  add(missing_section(report, with_curves));
  page.json = report_json(report);
  if (report.outcome.empty()) page.as_of = moment_text(report.newest.value_or(made));
  page.note =
      "Recommendations are for information: whether they fit is for the people of the job to say. "
      "Nothing in this page is loaded from anywhere, and nobody is told that it was opened.";
  return page;
}

std::string report_json(const RunReport& report) {
  core::ValueList issues;
  for (const IssueTold& told : report.issues) {
    issues.emplace_back(core::ValueMap{{"first", parsed(ingest::issue_json(told.first))},
                                       {"last", parsed(ingest::issue_json(told.last))},
                                       {"reports", told.reports}});
  }
  core::ValueList rules;
  for (const auto& rule : report.rules) {
    core::ValueMap evaluations;
    for (const auto& [outcome, count] : rule.evaluations) evaluations.emplace_back(outcome, count);
    core::ValueList missing(rule.missing.begin(), rule.missing.end());
    rules.emplace_back(core::ValueMap{{"rule", rule.rule},
                                      {"type", rule.rule_type},
                                      {"version", rule.rule_version},
                                      {"status", std::string(core::to_string(rule.status))},
                                      {"reason", rule.reason},
                                      {"missing", std::move(missing)},
                                      {"evaluations", std::move(evaluations)},
                                      {"summary", rule.summary}});
  }
  const auto time = [](const std::optional<core::WallTime>& one) {
    return one ? core::Value(core::to_rfc3339(*one)) : core::Value();
  };
  return core::to_json(core::ValueMap{
      {"run", core::to_text(report.run.uid)},
      {"job", report.run.job},
      {"attempt", std::int64_t{report.run.attempt}},
      {"outcome", report.outcome.empty() ? core::Value() : core::Value(report.outcome)},
      {"started", time(report.started)},
      {"last_heard_of", time(report.newest)},
      {"step", report.step ? core::Value(*report.step) : core::Value()},
      {"checkpoint", checkpoint_value(report)},
      {"workers",
       report.world_size > 0 ? core::Value(std::int64_t{report.world_size}) : core::Value()},
      {"stop", stop_value(report)},
      {"messages", message_values(report)},
      {"store_behind_seconds", behind_value(report)},
      {"source", report.source},
      {"judged_by", report.judged_by},
      {"gaps", report.gaps},
      {"issues", std::move(issues)},
      {"card", card_value(card_of_report(report))},
      {"rules", std::move(rules)}});
}

}  // namespace tocsin::app::report
