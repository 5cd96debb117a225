#include "app/cli/tool_options.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/check_command.h"
#include "app/cli/completion.h"
#include "app/cli/config_diff.h"
#include "app/cli/config_show.h"
#include "app/cli/init_command.h"
#include "app/cli/journal_commands.h"
#include "app/cli/place_options.h"
#include "app/cli/rule_commands.h"
#include "app/cli/run_command.h"
#include "app/cli/schema_command.h"
#include "app/cli/sync_command.h"
#include "app/cli/topics_command.h"
#include "app/cli/version_command.h"
#include "app/process/exit_code.h"

namespace tocsin::app {
namespace {

void add_format(CLI::App& command, std::string& out,
                const std::vector<std::string>& formats = {"text", "json"}) {
  add_output(
      command, [&out](const std::string& format) { out = format; }, formats);
}

using TopicsCommand = int (*)(const TopicsOptions&);

void add_topics_command(CLI::App& topics, const std::string& name, TopicsCommand work,
                        CommandRun& out) {
  auto* command = topics.add_subcommand(name);
  const auto options = std::make_shared<TopicsOptions>();
  add_config_file(*command, options->config_file);
  if (name == "export") {
    add_format(*command, options->format, {"text", "json", "strimzi", "shell", "terraform"});
  } else {
    add_from(*command, options->out);
    add_format(*command, options->format);
  }
  command->callback([&out, options, work] { out = [options, work] { return work(*options); }; });
}

void add_journal_check(CLI::App& journal, CommandRun& out) {
  auto* check = journal.add_subcommand("check");
  const auto options = std::make_shared<JournalCheckOptions>();
  check->add_option("directory,--from", options->directory, "Read this journal")
      ->type_name("DIRECTORY")
      ->required();
  add_output(*check, options->json);
  check->callback([&out, options] { out = [options] { return journal_check(*options); }; });
}

void add_journal_salvage(CLI::App& journal, CommandRun& out) {
  auto* salvage = journal.add_subcommand("salvage");
  const auto options = std::make_shared<JournalSalvageOptions>();
  salvage
      ->add_option("directory,--from", options->from, "Read this journal; stop its writers first")
      ->type_name("DIRECTORY")
      ->required();
  salvage->add_option("new,--out", options->to, "Create the new journal in this directory")
      ->type_name("DIRECTORY")
      ->required();
  add_output(*salvage, options->json);
  salvage->callback([&out, options] { out = [options] { return journal_salvage(*options); }; });
}

}  // namespace

void add_init(CLI::App& app, CommandRun& out) {
  auto* init = app.add_subcommand("init");
  const auto options = std::make_shared<InitOptions>();
  init->add_option("file,--out", options->file, "Write to this file (default: tocsin.yaml)")
      ->type_name("FILE");
  add_output(*init, options->json);
  init->callback([&out, options] { out = [options] { return init_command(*options); }; });
}

void add_check(CLI::App& app, CommandRun& out) {
  auto* check = app.add_subcommand("check");
  const auto options = std::make_shared<CheckOptions>();
  check
      ->add_option("file,--config.file,-c", options->config_file,
                   "Check this file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)")
      ->type_name("FILE");
  add_format(*check, options->format, {"text", "json", "github"});
  check->add_flag("--strict", options->strict, "Treat warnings as errors; notes stay notes");
  check->add_flag("--live", options->live,
                  "Ask the broker and each receiver too, without sending a message");
  check->callback([&out, options] { out = [options] { return check_command(*options); }; });
}

void add_config(CLI::App& app, CommandRun& out) {
  auto* config = app.add_subcommand("config");
  config->require_subcommand(1);
  auto* diff = config->add_subcommand("diff");
  const auto options = std::make_shared<ConfigDiffOptions>();
  diff->add_option("old", options->before, "Compare this configuration")
      ->type_name("OLD")
      ->required();
  diff->add_option("new", options->after, "Compare with this configuration")
      ->type_name("NEW")
      ->required();
  diff->add_flag("--live", options->live,
                 "Show which firing issues would be told to others or in another group");
  add_from(*diff, options->out);
  add_output(*diff, options->json);
  diff->callback([&out, options] { out = [options] { return config_diff(*options); }; });
  auto* show = config->add_subcommand("show");
  const auto shown = std::make_shared<ConfigShowOptions>();
  show->add_option("file,--config.file,-c", shown->config_file,
                   "Show this file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)")
      ->type_name("FILE");
  show->add_flag("--effective", shown->effective, "Show the defaults of keys that are not set too");
  add_output(*show, shown->json);
  show->callback([&out, shown] { out = [shown] { return config_show(*shown); }; });
}

void add_topics(CLI::App& app, CommandRun& out) {
  auto* topics = app.add_subcommand("topics");
  topics->require_subcommand(1);
  add_topics_command(*topics, "plan", topics_plan, out);
  add_topics_command(*topics, "apply", topics_apply, out);
  add_topics_command(*topics, "export", topics_export, out);
}

void add_rules(CLI::App& app, CommandRun& out) {
  auto* rules = app.add_subcommand("rules");
  rules->require_subcommand(1);
  auto* list = rules->add_subcommand("list");
  const auto listed = std::make_shared<RulesListOptions>();
  add_output(*list, listed->json);
  list->callback([&out, listed] { out = [listed] { return rules_list(*listed); }; });
  auto* describe = rules->add_subcommand("describe");
  const auto described = std::make_shared<RulesDescribeOptions>();
  describe->add_option("name", described->rule, "Rule name from `tocsin rules list`")
      ->type_name("RULE")
      ->required();
  add_output(*describe, described->json);
  describe->callback(
      [&out, described] { out = [described] { return rules_describe(*described); }; });
}

void add_schema(CLI::App& app, CommandRun& out) {
  auto* schema = app.add_subcommand("schema");
  const auto options = std::make_shared<SchemaOptions>();
  schema
      ->add_option("what", options->what,
                   "Schema of config (default) or events; table of topics or collectors; "
                   "vocabulary: codes, collections and statistics")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"config", "events", "topics", "collectors", "vocabulary"}));
  schema->add_flag("--markdown", options->markdown,
                   "Print a Markdown table of the keys instead of a schema");
  schema->callback([&out, options] { out = [options] { return schema_command(*options); }; });
}

void add_version(CLI::App& app, CommandRun& out) {
  auto* version = app.add_subcommand("version");
  const auto options = std::make_shared<VersionOptions>();
  add_output(*version, options->json);
  version->callback([&out, options] { out = [options] { return version_command(*options); }; });
}

void add_journal(CLI::App& app, CommandRun& out) {
  auto* journal = app.add_subcommand("journal");
  journal->require_subcommand(1);
  add_journal_check(*journal, out);
  add_journal_salvage(*journal, out);
}

void add_run(CLI::App& app, CommandRun& out) {
  auto* run = app.add_subcommand("run");
  const auto options = std::make_shared<RunOptions>();
  run->add_option("command", options->command, "Training command with its arguments, after --")
      ->type_name("COMMAND")
      ->required();
  run->add_option("--out", options->out,
                  "Write to kafka://HOST:PORT or a directory, as the hook does (default: "
                  "TOCSIN_BROKERS, TOCSIN_OUT, the configuration, ./tocsin-data)")
      ->type_name("PLACE");
  add_config_file(*run, options->config_file);
  const auto no_attach = std::make_shared<bool>(false);
  run->add_flag("--no-attach", *no_attach,
                "Watch only scripts that call tocsin.watch() themselves; TOCSIN_DISABLED=1 turns "
                "all watching off");
  run->callback([&out, options, no_attach] {
    options->attach = !*no_attach;
    out = [options] { return run_command(*options); };
  });
}

void add_sync(CLI::App& app, CommandRun& out) {
  auto* sync = app.add_subcommand("sync");
  const auto options = std::make_shared<SyncOptions>();
  sync->add_option("directory,--from", options->directory,
                   "Send this journal, written by watch(out=…)")
      ->type_name("DIRECTORY")
      ->required();
  sync->add_option("--out", options->out,
                   "Send to kafka://HOST:PORT (default: TOCSIN_BROKERS, the configuration)")
      ->type_name("PLACE");
  sync->add_option("--to", options->out, "")->group("");
  add_config_file(*sync, options->config_file);
  add_output(*sync, options->json);
  sync->callback([&out, options] { out = [options] { return sync_command(*options); }; });
}

void add_completion(CLI::App& app, CommandRun& out) {
  auto* completion = app.add_subcommand("completion");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "Shell that will load the script")
      ->type_name("SHELL")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, &out, shell] {
    out = [&app, shell] {
      std::cout << completion_script(app, *shell);
      return kOk;
    };
  });
}

}  // namespace tocsin::app
