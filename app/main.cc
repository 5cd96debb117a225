// tocsin: the command line. Parses, loads the configuration, hands over; decides nothing.
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/completion.h"
#include "app/init_command.h"
#include "app/journal_commands.h"
#include "app/place_options.h"
#include "app/recording_options.h"
#include "app/replay/reproduce_command.h"
#include "app/run_command.h"
#include "app/steering_options.h"
#include "app/suggest.h"
#include "app/sync_command.h"

namespace {

using namespace tocsin::app;

CLI::App* add_serving(CLI::App& app, const std::string& name, const std::string& help, Roles roles,
                      Invocation& out) {
  auto* command = app.add_subcommand(name, help);
  command->add_option("--config.file,-c", out.config_file,
                      "configuration file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)");
  command->add_option("--web.listen-address", out.listen,
                      "address:port of /metrics and health; overrides http.listen");
  command
      ->add_option("--log.level", out.log_level, "debug | info | warn | error; overrides log.level")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  command
      ->add_option("--log.format", out.log_format,
                   "auto | console | logfmt | json; overrides log.format")
      ->check(CLI::IsMember({"auto", "console", "logfmt", "json"}));
  command->add_option("--start-timeout", out.start_timeout,
                      "seconds to wait for the broker at start (default 300)");
  command->callback([&out, roles] { out.run = [&out, roles] { return serve(out, roles); }; });
  return command;
}

void add_evaluate(CLI::App& app, Invocation& out) {
  auto* command = add_serving(app, "evaluate", "the rule engine: telemetry in, issues out",
                              {false, true, false, true}, out);
  const std::size_t serving = command->get_options().size();
  auto* from = command->add_option(
      "--from", out.recorded.directory,
      "journal directory: judged once, as a live engine would have; nothing in it is changed");
  add_rule_choice(*command, out.recorded.rules);
  add_run_choice(*command, out.recorded);
  const auto options = command->get_options();
  for (std::size_t i = serving; i < options.size(); ++i) {
    options[i]->group("To judge a recording instead of serving");
    if (options[i] != from) options[i]->needs(from);
  }
  command->footer(
      "With --from the exit code is 0 when there is no issue, 1 when there are issues, 2 for a "
      "name "
      "that does not\nexist, 3 for a configuration, and 4 when the journal cannot be read.\n\n"
      "Examples:\n  tocsin evaluate -c tocsin.yaml\n  tocsin evaluate --from ./run1\n"
      "  tocsin evaluate --from ./run1 --rules exploding_tensor,overfit --format json");
  command->callback([&out, from] {
    out.run = [&out, from] {
      if (from->count() == 0) return serve(out, {false, true, false, true});
      out.recorded.rules.config_file = out.config_file;
      return evaluate_recorded(out.recorded);
    };
  });
}

void add_rule_worker(CLI::App& app, Invocation& out) {
  auto* command =
      add_serving(app, "rule-worker", "rules in Python over live runs, each a process", {}, out);
  command->add_option("file", out.worker.file, "Python file with rules (docs/rules/python.md)")
      ->required();
  command->add_option("--class", out.worker.classes, "only these of its rules");
  command->add_option("--set", out.worker.parameters,
                      "NAME=VALUE: an argument of their constructors, as YAML");
  command->add_option("--out", out.worker.out,
                      "kafka://host:9092 or a directory, instead of the configuration's transport");
  command->footer(
      "Rules of the configuration whose `source` is this file are run as they stand there; without "
      "one, every rule\nof the file, with --set. Its issues are routed by whoever routes.\n\n"
      "Examples:\n  tocsin rule-worker my_rules.py --out kafka://localhost:9092\n  tocsin "
      "rule-worker my_rules.py --class BigGradient --set threshold=10");
  command->callback([&out] { out.run = [&out] { return rule_worker(out); }; });
}

void add_topics(CLI::App& app, Invocation& out) {
  auto* topics = app.add_subcommand(
      "topics", "the Kafka topics: what is needed, what is there, how to create it");
  topics->require_subcommand(1);
  topics->footer(
      "Examples:\n  tocsin topics plan -c tocsin.yaml\n  tocsin topics export --format strimzi > "
      "topics.yaml");
  for (const auto& [name, help] :
       {std::pair{"plan", "show each topic, its settings, and whether it exists"},
        {"apply", "create the missing ones"},
        {"export", "write the plan for other tools"}}) {
    auto* command = topics->add_subcommand(name, help);
    command->add_option("--config.file,-c", out.config_file, "configuration file");
    if (std::string(name) == "export") {
      command->add_option("--format", out.format, "strimzi | shell | terraform | text")
          ->check(CLI::IsMember({"strimzi", "shell", "terraform", "text"}))
          ->required();
    }
    command->callback([&out, verb = std::string(name)] {
      out.run = [&out, verb] { return topics_command(out, verb); };
    });
  }
}

void add_rules(CLI::App& app, Invocation& out) {
  auto* rules = app.add_subcommand("rules", "the built-in rules");
  rules->require_subcommand(1);
  rules->add_subcommand("list", "name, severity and one sentence each")->callback([&out] {
    out.run = [] { return rules_list(); };
  });
  auto* describe = rules->add_subcommand(
      "describe", "each parameter: its meaning, and its value in both presets");
  describe->add_option("name", out.name, "rule")->required();
  describe->callback([&out] { out.run = [&out] { return rules_describe(out); }; });
}

void add_journal(CLI::App& app, Invocation& out) {
  auto* journal = app.add_subcommand("journal", "what to do about a journal that may be damaged");
  journal->require_subcommand(1);
  auto* check = journal->add_subcommand("check", "read all of it and say what is wrong");
  check->add_option("directory", out.config_file, "the journal")->required();
  check->callback([&out] { out.run = [&out] { return journal_check(out.config_file); }; });
  auto* salvage =
      journal->add_subcommand("salvage", "copy what can be read into a new journal, say what not");
  salvage->add_option("directory", out.config_file, "the journal; nobody may be writing it")
      ->required();
  salvage->add_option("new", out.name, "folder of the new one")->required();
  salvage->callback(
      [&out] { out.run = [&out] { return journal_salvage(out.config_file, out.name); }; });
}

void add_run(CLI::App& app, Invocation& out) {
  auto* run = app.add_subcommand("run", "run a training command, watch it, and say how it ended");
  run->add_option("command", out.arguments, "the command with its arguments, after --")->required();
  run->add_option("--out", out.out,
                  "kafka://host:9092 or a directory, as for the hook (default: TOCSIN_BROKERS, "
                  "TOCSIN_OUT, the configuration, ./tocsin-data)");
  run->add_option("--config.file,-c", out.config_file, "configuration file");
  run->footer(
      "Gives the command's own exit code back; 128 + n for signal n; 77 when a rule's stop was "
      "acknowledged\nand the command ended with 0, or a launcher with 1.\n\n"
      "Example:\n  tocsin run -- torchrun --nproc-per-node 8 train.py");
  const auto no_attach = std::make_shared<bool>(false);
  run->add_flag("--no-attach", *no_attach,
                "watch only what calls tocsin.watch() itself; TOCSIN_DISABLED=1 switches all off");
  run->callback([&out, no_attach] {
    out.run = [&out, no_attach] {
      return run_command({out.arguments, out.out, out.config_file, !*no_attach});
    };
  });
}

void add_sync(CLI::App& app, Invocation& out) {
  auto* sync = app.add_subcommand("sync", "send a finished directory to Kafka");
  const auto options = std::make_shared<SyncOptions>();
  sync->add_option("directory", options->directory, "the journal: what watch(out=…) has written")
      ->required();
  sync->add_option("--to", options->out,
                   "kafka://host:9092 (default: TOCSIN_BROKERS, the configuration)");
  sync->add_option("--config.file,-c", options->config_file, "configuration file");
  sync->footer(
      "Sends what was not sent to that cluster before, in its order. Example:\n"
      "  tocsin sync ./run1 --to kafka://host:9092");
  sync->callback([&out, options] { out.run = [options] { return sync_command(*options); }; });
}

void add_moment(CLI::App& command, std::string& at) {
  command.add_option("--at", at,
                     "as it was then: 2026-11-22T14:00:00Z, 2026-11-22, or so long ago: 2h");
}

void add_filters(CLI::App& command, ViewOptions& out) {
  command.add_option("--job", out.job, "only of this job");
  command.add_option("--rule", out.rule, "only of this rule");
}

// What looks and changes nothing.
void add_views(CLI::App& app, Invocation& out) {
  auto* status = app.add_subcommand("status", "runs, open issues, stops, and what is unhealthy");
  add_place(*status, out.view);
  add_moment(*status, out.view.at);
  status->add_flag("--all", out.view.all, "every line, not only the first of each part");
  status->callback([&out] { out.run = [&out] { return status_command(out.view); }; });

  auto* issues = app.add_subcommand("issues", "what is wrong now, or was");
  issues->require_subcommand(1);
  auto* list = issues->add_subcommand("list", "open issues, the worst first");
  add_place(*list, out.view);
  add_filters(*list, out.view);
  add_moment(*list, out.view.at);
  list->add_flag("--all", out.view.all, "resolved ones too");
  list->callback([&out] { out.run = [&out] { return issues_list(out.view); }; });
  auto* show = issues->add_subcommand("show", "everything about one issue");
  show->add_option("id", out.view.id, "id from the list, or an event id; its beginning is enough")
      ->required();
  add_place(*show, out.view);
  add_moment(*show, out.view.at);
  show->callback([&out] { out.run = [&out] { return issues_show(out.view); }; });

  auto* reproduce = issues->add_subcommand("reproduce", "judge again what led to an issue");
  const auto again = std::make_shared<ReproduceOptions>();
  reproduce->add_option("id", again->id, "as with show")->required();
  add_place(*reproduce, *again);
  reproduce->add_option("--from", again->from, "telemetry of this directory, not of the topic");
  reproduce->add_option("--save", again->save, "copy what was judged into this new directory");
  reproduce->callback([&out, again] { out.run = [again] { return reproduce_command(*again); }; });

  auto* tail = app.add_subcommand("tail", "issues and jobs as they come, until Ctrl-C");
  add_place(*tail, out.view);
  add_filters(*tail, out.view);
  tail->add_flag("--all", out.view.all, "what is there already, too");
  tail->callback([&out] { out.run = [&out] { return tail_command(out.view); }; });
}

void add_init(CLI::App& app, Invocation& out) {
  auto* init = app.add_subcommand("init", "write a commented configuration to start from");
  init->add_option("file", out.config_file, "where to (default: tocsin.yaml)");
  init->callback([&out] {
    out.run = [&out] {
      return init_command(out.config_file.empty() ? "tocsin.yaml" : out.config_file);
    };
  });
}

void add_completion(CLI::App& app, Invocation& out) {
  auto* completion = app.add_subcommand("completion", "what a shell completes, as a script for it");
  completion->add_option("shell", out.name, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "Examples:\n  source <(tocsin completion bash)\n  tocsin completion fish > "
      "~/.config/fish/completions/tocsin.fish");
  completion->callback([&app, &out] {
    out.run = [&app, &out] {
      std::cout << completion_script(app, out.name);
      return kOk;
    };
  });
}

int run(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error code of write(), nothing to die of
  CLI::App app{
      "Tocsin: an alarm system for machine-learning training that runs on Kafka.\n"
      "It reads what training jobs publish, judges it by rules, tells people, and stops broken "
      "jobs."};
  app.name("tocsin");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 ok · 1 failed, or the answer is no · 2 usage · 3 configuration · 4 broker or "
      "journal\n"
      "unreachable · 75 temporary, try again. A training process that a rule stopped exits with "
      "77.\n\n"
      "Examples:\n  tocsin init\n  tocsin check tocsin.yaml\n  tocsin up -c tocsin.yaml\n  tocsin "
      "evaluate -c "
      "tocsin.yaml --log.format json");
  Invocation call;
  app.set_version_flag("--version", version_text());
  add_init(app, call);
  add_serving(app, "up", "all roles in one process: collect, evaluate, route",
              {true, true, true, true}, call);
  add_serving(app, "collect",
              "the node agent: system samples, and signals to runs that do not answer a stop",
              {true, false, false}, call);
  add_evaluate(app, call);
  add_rule_worker(app, call);
  add_replay(app, call);
  add_test(app, call);
  add_report(app, call);
  add_serving(app, "route", "the router and its deliveries: issues in, notifications out",
              {false, false, true}, call);

  auto* check = app.add_subcommand(
      "check", "find every error of a configuration, and what keeps an alarm silent");
  check->add_option("file,--config.file,-c", call.config_file,
                    "configuration file (default: $TOCSIN_CONFIG, then ./tocsin.yaml)");
  check->add_option("--format", call.format, "text | json | github")
      ->check(CLI::IsMember({"text", "json", "github"}));
  check->add_flag("--strict", call.strict, "warnings count as errors; notes do not");
  check->callback([&] { call.run = [&] { return check_command(call); }; });

  add_views(app, call);
  add_stop(app, call);
  add_silence(app, call);
  add_capture(app, call);
  add_topics(app, call);
  add_journal(app, call);
  add_rules(app, call);
  add_run(app, call);
  add_sync(app, call);

  auto* schema = app.add_subcommand("schema", "JSON Schema of the configuration file, for editors");
  schema
      ->add_option(
          "what", call.name,
          "config, events (what is published), topics or collectors (tables), or vocabulary "
          "(codes, collections and statistics, as JSON)")
      ->check(CLI::IsMember({"config", "events", "topics", "collectors", "vocabulary"}));
  schema->add_flag("--markdown", call.markdown, "a table of all keys instead");
  schema->callback([&] { call.run = [&] { return schema_command(call); }; });
  add_completion(app, call);
  app.add_subcommand("version", "version and what it was built with")->callback([&] {
    call.run = [] { return version_command(); };
  });

  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (const std::string problem = unknown_word(app, words); !problem.empty()) {
    std::cerr << problem << "\n";
    return kUsage;
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::cerr << refused(app, words, error) << "\n";
    return kUsage;
  }
  return call.run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tocsin: internal error: %s\n", error.what());
    return tocsin::app::kFailed;
  }
}
