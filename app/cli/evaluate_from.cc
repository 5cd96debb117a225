#include "app/cli/evaluate_from.h"

#include <algorithm>
#include <iostream>

#include "app/process/exit_code.h"
#include "app/recordings/recording.h"
#include "app/replay/judge.h"
#include "app/replay/judgement_text.h"
#include "app/replay/sweep.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

int refuse_source(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

// What is damaged, missing or locked is a journal that cannot be read, whatever its code.
int unreadable(const core::Error& error) { return refuse_source(kUnreachable, error.message); }

bool found_issue(const Judgement& judgement) {
  return std::any_of(judgement.events.begin(), judgement.events.end(),
                     [](const core::Issue& issue) {
                       return issue.status == core::IssueStatus::firing && !issue.shadow;
                     });
}

// At the end: one that failed at a step and went on has judged.
bool failed(const Judgement& judgement, const rules::RulesConfig& rules) {
  return std::any_of(rules.rules.begin(), rules.rules.end(), [&](const auto& rule) {
    return !rule.shadow &&
           std::any_of(judgement.runs.begin(), judgement.runs.end(), [&](const auto& run) {
             const auto known = run.second.rules.find(rule.name);
             return known != run.second.rules.end() &&
                    known->second.status == core::RuleState::error;
           });
  });
}

}  // namespace

int evaluate_recorded(const RecordedOptions& options) {
  embedded::ChosenRules rules;
  if (const int code = choose_rules(options.rules, rules); code != kOk) return code;
  rules.plugins.out = options.directory;
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open_recording(options.directory, {}, log, telemetry);
  if (!transport) return unreadable(transport.error());
  std::optional<Sweep> sweep;
  if (!options.sweep.empty()) {
    auto made = make_sweep(options.sweep, rules.rules);
    if (!made) return refuse_source(kUsage, made.error().message);
    sweep = std::move(*made);
  }
  auto judge = Judge::create(rules, runs_named(options.run, options.job));
  if (!judge) return refuse_source(kConfiguration, judge.error().message);
  const auto end = read_recording(
      **transport, core::topic::kTelemetry, {},
      [&](const core::RecordView& record) { (*judge)->handle(record); },
      [&] { (*judge)->collect(); });
  if (!end) return unreadable(end.error());
  (*judge)->finish();
  const Judgement& judgement = (*judge)->judgement();
  if (judgement.rows.empty() && !options.run.empty() && judgement.records > 0) {
    return refuse_source(kUsage, "there is no run " + options.run + " in " + options.directory +
                                     "; omit --run to judge and list all runs");
  }
  if (judgement.rows.empty()) {
    return refuse_source(kUnreachable, "there is no telemetry of a run in " + options.directory);
  }
  const JudgementHead head{(*transport)->describe(), rules, end->gaps};
  if (sweep) {
    std::cout << (options.json ? core::to_json(sweep_value(*sweep, judgement)) + "\n"
                               : sweep_text(*sweep, judgement));
    return kOk;
  }
  if (options.json) {
    std::cout << judgement_json(head, judgement) << "\n";
  } else {
    std::cout << judgement_text(head, judgement);
  }
  return found_issue(judgement) || failed(judgement, rules.rules) ? kFailed : kOk;
}

}  // namespace tocsin::app
