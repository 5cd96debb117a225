#include "app/replay/evaluate_from.h"

#include <algorithm>
#include <iostream>

#include "app/commands.h"
#include "app/replay/judge.h"
#include "app/replay/recording.h"
#include "app/replay/verdict_text.h"

namespace tocsin::app {
namespace {

int refuse(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

// What is damaged, missing or locked is a journal that cannot be read, whatever its code.
int unreadable(const core::Error& error) { return refuse(kUnreachable, error.message); }

bool is_uid_beginning(const std::string& text) {
  return text.size() >= 4 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

RunFilter wanted_runs(const RecordedOptions& options) {
  if (options.run.empty()) return nullptr;
  const core::RunUid named = core::run_uid_for(options.job, options.run);
  const bool prefix = options.job.empty() && is_uid_beginning(options.run);
  return [named, prefix, text = options.run](const core::RunUid& run) {
    return run == named || (prefix && core::to_text(run).starts_with(text));
  };
}

bool found_issue(const Verdicts& verdicts) {
  return std::any_of(verdicts.events.begin(), verdicts.events.end(), [](const core::Issue& issue) {
    return issue.status == core::IssueStatus::firing && !issue.shadow;
  });
}

}  // namespace

int evaluate_recorded(const RecordedOptions& options) {
  ChosenRules rules;
  if (const int code = choose_rules(options.rules, rules); code != kOk) return code;
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto transport = ingest::Transport::open_recording(options.directory, {}, log, telemetry);
  if (!transport) return unreadable(transport.error());
  auto judge = Judge::create(rules, wanted_runs(options));
  if (!judge) return refuse(kConfiguration, judge.error().message);
  const auto end = read_recording(
      **transport, [&](const core::RecordView& record) { (*judge)->handle(record); },
      [&] { (*judge)->collect(); });
  if (!end) return unreadable(end.error());
  (*judge)->finish();
  const Verdicts& verdicts = (*judge)->verdicts();
  if (verdicts.rows.empty() && !options.run.empty() && verdicts.records > 0) {
    return refuse(kUsage, "there is no run " + options.run + " in " + options.directory +
                              "; without --run all are judged and named");
  }
  if (verdicts.rows.empty()) {
    return refuse(kUnreachable, "there is no telemetry of a run in " + options.directory);
  }
  const VerdictHead head{(*transport)->describe(), rules, end->gaps};
  if (options.json) {
    std::cout << verdict_json(head, verdicts) << "\n";
  } else {
    std::cout << verdict_text(head, verdicts);
  }
  return found_issue(verdicts) ? kFailed : kOk;
}

}  // namespace tocsin::app
