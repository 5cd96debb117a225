#include "app/cli/serving_options.h"

#include <memory>
#include <string>

#include "app/cli/evaluate_from.h"
#include "app/cli/place_options.h"
#include "app/cli/rule_worker.h"
#include "app/cli/serve_command.h"

namespace tocsin::app {
namespace {

void add_serving(CLI::App& command, ServeOptions& out) {
  add_config_file(command, out.config_file);
  command
      .add_option("--web.listen-address", out.listen,
                  "Serve metrics and health on this address; overrides http.listen")
      ->type_name("ADDRESS:PORT");
  command.add_option("--log.level", out.log_level, "Log this level and above; overrides log.level")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  command.add_option("--log.format", out.log_format, "Log in this format; overrides log.format")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "console", "logfmt", "json"}));
  command
      .add_option("--start-timeout", out.start_timeout,
                  "Wait up to this many seconds for the broker at startup (default: 300)")
      ->type_name("SECONDS");
}

void add_role(CLI::App& app, const std::string& name, Roles roles, CommandRun& out) {
  auto* command = app.add_subcommand(name);
  const auto options = std::make_shared<ServeOptions>();
  add_serving(*command, *options);
  command->callback(
      [&out, options, roles] { out = [options, roles] { return serve(*options, roles); }; });
}

struct EvaluateCommand {
  ServeOptions serve;
  RecordedOptions recorded;  // with --from
};

}  // namespace

void add_up(CLI::App& app, CommandRun& out) { add_role(app, "up", {true, true, true, true}, out); }

void add_collect(CLI::App& app, CommandRun& out) {
  add_role(app, "collect", {true, false, false}, out);
}

void add_route(CLI::App& app, CommandRun& out) {
  add_role(app, "route", {false, false, true}, out);
}

void add_evaluate(CLI::App& app, CommandRun& out) {
  auto* command = app.add_subcommand("evaluate");
  const auto options = std::make_shared<EvaluateCommand>();
  add_serving(*command, options->serve);
  const std::size_t serving = command->get_options().size();
  auto* from =
      command
          ->add_option(
              "--from", options->recorded.directory,
              "Judge this journal directory once, as a live engine would; leave it unchanged")
          ->type_name("DIRECTORY");
  add_rule_choice(*command, options->recorded.rules);
  add_run_choice(*command, options->recorded);
  const auto all = command->get_options();
  for (std::size_t i = serving; i < all.size(); ++i) {
    if (!all[i]->get_group().empty()) all[i]->group("With a recording instead of live telemetry");
    if (all[i] != from) all[i]->needs(from);
  }
  command->callback([&out, options, from] {
    out = [options, from] {
      if (from->count() == 0) return serve(options->serve, {false, true, false, true});
      options->recorded.rules.config_file = options->serve.config_file;
      return evaluate_recorded(options->recorded);
    };
  });
}

void add_rule_worker(CLI::App& app, CommandRun& out) {
  auto* command = app.add_subcommand("rule-worker");
  const auto options = std::make_shared<WorkerOptions>();
  add_serving(*command, options->serve);
  command->add_option("file", options->file, "Python file with rules (docs/rules/python.md)")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--class", options->classes, "Run only this rule class of the file; repeatable")
      ->type_name("NAME");
  command
      ->add_option("--set", options->parameters,
                   "Pass this argument to the rules' constructors; VALUE is YAML; repeatable")
      ->type_name("NAME=VALUE");
  command
      ->add_option("--out", options->out,
                   "Read and write kafka://HOST:PORT or a directory instead of the "
                   "configuration's transport")
      ->type_name("PLACE");
  command->add_option("--from", options->out, "")->group("");
  command->callback([&out, options] { out = [options] { return rule_worker(*options); }; });
}

}  // namespace tocsin::app
