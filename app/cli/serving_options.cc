#include "app/cli/serving_options.h"

#include <string>

#include "app/cli/place_options.h"

namespace tocsin::app {
namespace {

CLI::App* add_serving(CLI::App& app, const std::string& name, Roles roles, Invocation& out) {
  auto* command = app.add_subcommand(name);
  add_config_file(*command, out.config_file);
  command
      ->add_option("--web.listen-address", out.listen,
                   "Serve metrics and health on this address; overrides http.listen")
      ->type_name("ADDRESS:PORT");
  command->add_option("--log.level", out.log_level, "Log this level and above; overrides log.level")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  command->add_option("--log.format", out.log_format, "Log in this format; overrides log.format")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"auto", "console", "logfmt", "json"}));
  command
      ->add_option("--start-timeout", out.start_timeout,
                   "Wait up to this many seconds for the broker at startup (default: 300)")
      ->type_name("SECONDS");
  command->callback([&out, roles] { out.run = [&out, roles] { return serve(out, roles); }; });
  return command;
}

}  // namespace

void add_roles(CLI::App& app, Invocation& out) {
  add_serving(app, "up", {true, true, true, true}, out);
  add_serving(app, "collect", {true, false, false}, out);
  add_serving(app, "route", {false, false, true}, out);
}

void add_evaluate(CLI::App& app, Invocation& out) {
  auto* command = add_serving(app, "evaluate", {false, true, false, true}, out);
  const std::size_t serving = command->get_options().size();
  auto* from =
      command
          ->add_option(
              "--from", out.recorded.directory,
              "Judge this journal directory once, as a live engine would; leave it unchanged")
          ->type_name("DIRECTORY");
  add_rule_choice(*command, out.recorded.rules);
  add_run_choice(*command, out.recorded);
  const auto options = command->get_options();
  for (std::size_t i = serving; i < options.size(); ++i) {
    if (!options[i]->get_group().empty())
      options[i]->group("With a recording instead of live telemetry");
    if (options[i] != from) options[i]->needs(from);
  }
  command->callback([&out, from] {
    out.run = [&out, from] {
      if (from->count() == 0) return serve(out, {false, true, false, true});
      out.recorded.rules.config_file = out.config_file;
      return evaluate_recorded(out.recorded);
    };
  });
}

void add_rule_worker(CLI::App& app, Invocation& out) {
  auto* command = add_serving(app, "rule-worker", {}, out);
  command->add_option("file", out.worker.file, "Python file with rules (docs/rules/python.md)")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--class", out.worker.classes,
                   "Run only this rule class of the file; repeatable")
      ->type_name("NAME");
  command
      ->add_option("--set", out.worker.parameters,
                   "Pass this argument to the rules' constructors; VALUE is YAML; repeatable")
      ->type_name("NAME=VALUE");
  command
      ->add_option("--out", out.worker.out,
                   "Read and write kafka://HOST:PORT or a directory instead of the "
                   "configuration's transport")
      ->type_name("PLACE");
  command->add_option("--from", out.worker.out, "")->group("");
  command->callback([&out] { out.run = [&out] { return rule_worker(out); }; });
}

}  // namespace tocsin::app
