#include "app/cli/check_command.h"

#include <algorithm>
#include <iostream>
#include <vector>

#include "app/app.h"
#include "app/cli/check_live.h"
#include "app/cli/rule_worker.h"
#include "app/config/config_path.h"
#include "app/config/insecure_settings.h"
#include "app/process/exit_code.h"
#include "app/view/run_questions.h"
#include "core/text.h"
#include "core/text_table.h"
#include "core/value.h"

namespace tocsin::app {
namespace {

core::ValueList diagnostics_value(const config::Diagnostics& diagnostics) {
  core::ValueList list;
  for (const auto& item : diagnostics.items()) {
    list.push_back(core::ValueMap{{"file", item.location.file},
                                  {"line", std::int64_t{item.location.line}},
                                  {"column", std::int64_t{item.location.column}},
                                  {"grade", std::string(config::to_string(item.grade))},
                                  {"path", item.path},
                                  {"message", item.message}});
  }
  return list;
}

void print_diagnostics(const config::Diagnostics& diagnostics, const CheckOptions& options) {
  const std::string& format = options.format;
  if (format == "json") {
    if (!options.live) {
      std::cout << core::to_json(core::Value(diagnostics_value(diagnostics))) << "\n";
    }
    return;
  }
  for (const auto& item : diagnostics.items()) {
    if (format == "github") {
      std::cout << "::"
                << (item.grade == config::Grade::note ? "notice" : config::to_string(item.grade))
                << " file=" << item.location.file << ",line=" << item.location.line
                << ",col=" << item.location.column << "::" << item.message << "\n";
    } else {
      std::cout << config::to_text(item) << "\n";
    }
  }
}

// What each question about a run needs of the configured capture; empty where nobody asks one.
std::string questions_text(const AppConfig& config) {
  std::vector<std::string> types;
  for (const auto& rule : config.rules.rules) types.push_back(rule.type);
  std::string out;
  bool any = false;
  for (const RunQuestion& question : run_questions()) {
    std::string why = unasked(question, types);
    any = any || (why.empty() && question.rules[0] != "training_preflight");
    if (why.empty() && question.of_ledger && !config.capture.ledger) why = "capture.ledger is off";
    std::string lead = "  " + std::string(question.name);
    lead.resize(13, ' ');
    out += core::wrapped(lead, why.empty() ? std::string(question.needs) : "not asked: " + why, 80,
                         13);
  }
  return any ? "questions about each run, and what each needs (docs/run-card.md)\n" + out : "";
}

// Which actions do something to runs, whether they are armed, and what each would do.
std::string intents_text(const AppConfig& config) {
  std::string out;
  for (const auto& integration : config.receivers.integrations) {
    for (const std::string& intent : integration.config->intents()) {
      const bool off = !integration.common.enabled || integration.common.shadow;
      out += core::wrapped("  " + integration.common.id + ": ", (off ? "disabled; " : "") + intent,
                           80, 4);
    }
  }
  if (out.empty()) return {};
  return std::string("what would be done to runs") +
         (config.stops_dry_run ? ", were stops.dry_run not true" : "") + "\n" + out;
}

std::string insecure_text(const AppConfig& config) {
  std::string out;
  for (const InsecureSetting& one : insecure_settings(config)) {
    out += core::wrapped("  " + one.place + ": ", one.what, 80, 4);
  }
  return out.empty() ? out : "settings that give up a protection\n" + out;
}

}  // namespace

int check_command(const CheckOptions& options) {
  const std::string path = config_path(options.config_file);
  config::Diagnostics diagnostics;
  const AppConfig config = load_config(path, config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) check_hosted(config, path, diagnostics);
  print_diagnostics(diagnostics, options);
  const auto warnings =
      std::count_if(diagnostics.items().begin(), diagnostics.items().end(),
                    [](const auto& item) { return item.grade == config::Grade::warning; });
  const bool bad = diagnostics.has_errors() || (options.strict && warnings > 0);
  if (!bad && options.format == "text") {
    std::cout << questions_text(config) << intents_text(config) << insecure_text(config) << path
              << ": ok";
    if (warnings > 0) std::cout << ", " << warnings << (warnings == 1 ? " warning" : " warnings");
    std::cout << "\n";
  }
  std::vector<LiveAnswer> answers;
  if (options.live && !bad) answers = ask_live(config);
  if (options.live && options.format == "json") {
    const core::Value all =
        core::ValueMap{{"findings", diagnostics_value(diagnostics)}, {"live", live_value(answers)}};
    std::cout << core::to_json(all) << "\n";
  } else if (options.live && !bad) {
    (options.format == "github" ? std::cerr : std::cout) << live_text(answers);
  }
  return bad ? kConfiguration : live_code(answers);
}

}  // namespace tocsin::app
