#include "app/cli/command_line.h"

#include "app/cli/command_help.h"
#include "app/cli/recording_options.h"
#include "app/cli/serving_options.h"
#include "app/cli/steering_options.h"
#include "app/cli/tool_options.h"
#include "app/cli/view_options.h"

namespace tocsin::app {

void declare_command_line(CLI::App& app, Invocation& out) {
  app.name("tocsin");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "Print the version and exit");
  add_configuration_tools(app, out);
  add_roles(app, out);
  add_evaluate(app, out);
  add_rule_worker(app, out);
  add_views(app, out);
  add_report(app, out);
  add_stop(app, out);
  add_silence(app, out);
  add_capture(app, out);
  add_replay(app, out);
  add_test(app, out);
  add_record_tools(app, out);
  add_completion(app, out);
  add_help(app);
}

}  // namespace tocsin::app
