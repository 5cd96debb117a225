#include "app/cli/insights_options.h"

#include <memory>
#include <string>

#include "app/cli/insights_command.h"
#include "app/cli/insights_rebuild.h"
#include "app/cli/place_options.h"

namespace tocsin::app {
namespace {

using InsightsCommand = int (*)(const InsightsOptions&);

void add_insights_command(CLI::App& insights, const std::string& name, InsightsCommand work,
                          CommandRun& out) {
  auto* command = insights.add_subcommand(name);
  const auto options = std::make_shared<InsightsOptions>();
  add_config_file(*command, options->config_file);
  if (name == "rebuild") {
    command->add_flag("--drop-lost", options->drop_lost,
                      "Accept the loss of runs that the topics no longer have");
  } else {
    command
        ->add_option("directory,--from", options->directory,
                     "Read insights.db and curves.db in this directory (default: the "
                     "configuration's stores)")
        ->type_name("DIRECTORY");
  }
  add_output(*command, options->json);
  command->callback([&out, options, work] { out = [options, work] { return work(*options); }; });
}

}  // namespace

void add_insights(CLI::App& app, CommandRun& out) {
  auto* insights = app.add_subcommand("insights");
  insights->require_subcommand(1);
  add_insights_command(*insights, "check", insights_check, out);
  add_insights_command(*insights, "stats", insights_stats, out);
  add_insights_command(*insights, "rebuild", insights_rebuild, out);
}

}  // namespace tocsin::app
