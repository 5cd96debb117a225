#include "app/cli/agent_options.h"

#include <memory>

#include "app/cli/agent_command.h"
#include "app/cli/duration_option.h"
#include "app/cli/place_options.h"

namespace tocsin::app {
namespace {

CLI::Option* add_node(CLI::App& command, AgentOptions& options) {
  return command
      .add_option("node", options.node, "Name of the node: its host name, or collect.node there")
      ->type_name("NODE");
}

void add_writing(CLI::App& command, AgentOptions& options) {
  command.add_option("--author", options.author, "Record this author (default: user@host)")
      ->type_name("NAME");
  command.add_flag("--dry-run", options.dry_run, "Show the request without sending it");
  add_place(command, options);
}

}  // namespace

void add_agent(CLI::App& app, CommandRun& out) {
  auto* agent = app.add_subcommand("agent");
  agent->require_subcommand(1);
  const auto shown = std::make_shared<AgentOptions>();
  auto* show = agent->add_subcommand("show");
  add_node(*show, *shown);
  add_place(*show, *shown);
  show->callback([&out, shown] { out = [shown] { return agent_show(*shown); }; });

  const auto asked = std::make_shared<AgentOptions>();
  auto* set = agent->add_subcommand("set");
  add_node(*set, *asked)->required();
  add_duration(*set, "--interval", asked->interval,
               "Set the time between two samples, 100ms to 1m (default: as the agent's file says)");
  set->add_option("--collectors", asked->collectors,
                  "Run only these collectors, such as cpu,memory,gpu (default: as the agent's file "
                  "says)")
      ->type_name("NAMES")
      ->delimiter(',');
  add_duration(*set, "--for", asked->lasts,
               "End it after this long (default: at `tocsin agent reset`)");
  add_duration(*set, "--wait", asked->wait, "Wait this long for the agent's answer (default: 10s)");
  add_writing(*set, *asked);
  set->callback([&out, asked] { out = [asked] { return agent_set(*asked); }; });

  const auto back = std::make_shared<AgentOptions>();
  auto* reset = agent->add_subcommand("reset");
  add_node(*reset, *back)->required();
  add_writing(*reset, *back);
  reset->callback([&out, back] { out = [back] { return agent_reset(*back); }; });
}

}  // namespace tocsin::app
