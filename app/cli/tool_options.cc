#include "app/cli/tool_options.h"

#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "app/cli/completion.h"
#include "app/cli/init_command.h"
#include "app/cli/journal_commands.h"
#include "app/cli/place_options.h"
#include "app/cli/run_command.h"
#include "app/cli/sync_command.h"

namespace tocsin::app {
namespace {

void add_format(CLI::App& command, Invocation& out,
                const std::vector<std::string>& formats = {"text", "json"}) {
  add_output(
      command, [&out](const std::string& format) { out.format = format; }, formats);
}

void add_topics(CLI::App& app, Invocation& out) {
  auto* topics = app.add_subcommand("topics");
  topics->require_subcommand(1);
  for (const std::string_view name : {"plan", "apply", "export"}) {
    auto* command = topics->add_subcommand(std::string(name));
    add_config_file(*command, out.config_file);
    if (name == "export") {
      add_format(*command, out, {"text", "json", "strimzi", "shell", "terraform"});
    } else {
      add_from(*command, out.out);
      add_format(*command, out);
    }
    command->callback([&out, verb = std::string(name)] {
      out.run = [&out, verb] { return topics_command(out, verb); };
    });
  }
}

void add_rules(CLI::App& app, Invocation& out) {
  auto* rules = app.add_subcommand("rules");
  rules->require_subcommand(1);
  auto* list = rules->add_subcommand("list");
  add_format(*list, out);
  list->callback([&out] { out.run = [&out] { return rules_list(out); }; });
  auto* describe = rules->add_subcommand("describe");
  describe->add_option("name", out.name, "Rule name from `tocsin rules list`")
      ->type_name("RULE")
      ->required();
  add_format(*describe, out);
  describe->callback([&out] { out.run = [&out] { return rules_describe(out); }; });
}

void add_check(CLI::App& app, Invocation& out) {
  auto* check = app.add_subcommand("check");
  check
      ->add_option("file,--config.file,-c", out.config_file,
                   "Check this file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)")
      ->type_name("FILE");
  add_format(*check, out, {"text", "json", "github"});
  check->add_flag("--strict", out.strict, "Treat warnings as errors; notes stay notes");
  check->callback([&out] { out.run = [&out] { return check_command(out); }; });
}

void add_schema(CLI::App& app, Invocation& out) {
  auto* schema = app.add_subcommand("schema");
  schema
      ->add_option("what", out.name,
                   "Schema of config (default) or events; table of topics or collectors; "
                   "vocabulary: codes, collections and statistics")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"config", "events", "topics", "collectors", "vocabulary"}));
  schema->add_flag("--markdown", out.markdown,
                   "Print a Markdown table of the keys instead of a schema");
  schema->callback([&out] { out.run = [&out] { return schema_command(out); }; });
}

void add_journal(CLI::App& app, Invocation& out) {
  auto* journal = app.add_subcommand("journal");
  journal->require_subcommand(1);
  auto* check = journal->add_subcommand("check");
  check->add_option("directory,--from", out.config_file, "Read this journal")
      ->type_name("DIRECTORY")
      ->required();
  add_format(*check, out);
  check->callback([&out] {
    out.run = [&out] { return journal_check(out.config_file, out.format == "json"); };
  });
  auto* salvage = journal->add_subcommand("salvage");
  salvage
      ->add_option("directory,--from", out.config_file, "Read this journal; stop its writers first")
      ->type_name("DIRECTORY")
      ->required();
  salvage->add_option("new,--out", out.name, "Create the new journal in this directory")
      ->type_name("DIRECTORY")
      ->required();
  add_format(*salvage, out);
  salvage->callback([&out] {
    out.run = [&out] { return journal_salvage(out.config_file, out.name, out.format == "json"); };
  });
}

void add_run(CLI::App& app, Invocation& out) {
  auto* run = app.add_subcommand("run");
  run->add_option("command", out.arguments, "Training command with its arguments, after --")
      ->type_name("COMMAND")
      ->required();
  run->add_option("--out", out.out,
                  "Write to kafka://HOST:PORT or a directory, as the hook does (default: "
                  "TOCSIN_BROKERS, TOCSIN_OUT, the configuration, ./tocsin-data)")
      ->type_name("PLACE");
  add_config_file(*run, out.config_file);
  const auto no_attach = std::make_shared<bool>(false);
  run->add_flag("--no-attach", *no_attach,
                "Watch only scripts that call tocsin.watch() themselves; TOCSIN_DISABLED=1 turns "
                "all watching off");
  run->callback([&out, no_attach] {
    out.run = [&out, no_attach] {
      return run_command({out.arguments, out.out, out.config_file, !*no_attach});
    };
  });
}

void add_sync(CLI::App& app, Invocation& out) {
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
  sync->callback([&out, options] { out.run = [options] { return sync_command(*options); }; });
}

}  // namespace

void add_configuration_tools(CLI::App& app, Invocation& out) {
  auto* init = app.add_subcommand("init");
  init->add_option("file,--out", out.config_file, "Write to this file (default: tocsin.yaml)")
      ->type_name("FILE");
  add_format(*init, out);
  init->callback([&out] {
    out.run = [&out] {
      return init_command(out.config_file.empty() ? "tocsin.yaml" : out.config_file,
                          out.format == "json");
    };
  });
  add_check(app, out);
  add_topics(app, out);
  add_rules(app, out);
  add_schema(app, out);
  auto* version = app.add_subcommand("version");
  add_format(*version, out);
  version->callback([&out] { out.run = [&out] { return version_command(out); }; });
}

void add_record_tools(CLI::App& app, Invocation& out) {
  add_journal(app, out);
  add_run(app, out);
  add_sync(app, out);
}

void add_completion(CLI::App& app, Invocation& out) {
  auto* completion = app.add_subcommand("completion");
  completion->add_option("shell", out.name, "Shell that will load the script")
      ->type_name("SHELL")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, &out] {
    out.run = [&app, &out] {
      std::cout << completion_script(app, out.name);
      return kOk;
    };
  });
}

}  // namespace tocsin::app
