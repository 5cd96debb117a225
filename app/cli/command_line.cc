#include "app/cli/command_line.h"

#include "app/cli/ack_options.h"
#include "app/cli/agent_options.h"
#include "app/cli/command_help.h"
#include "app/cli/feedback_options.h"
#include "app/cli/insights_options.h"
#include "app/cli/operator_options.h"
#include "app/cli/recording_options.h"
#include "app/cli/serving_options.h"
#include "app/cli/steering_options.h"
#include "app/cli/tool_options.h"
#include "app/cli/view_options.h"
#include "app/process/version.h"

namespace tocsin::app {
namespace {

using AddCommand = void (*)(CLI::App&, CommandRun&);

/// A line per command, in the order of --help.
constexpr AddCommand kCommands[] = {
    add_init,     add_check,   add_config,  add_topics,    add_rules,    add_schema,
    add_version,  add_up,      add_collect, add_route,     add_evaluate, add_rule_worker,
    add_status,   add_issues,  add_groups,  add_tail,      add_history,  add_dlq,
    add_endpoint, add_breaker, add_routes,  add_simulate,  add_report,   add_stop,
    add_stops,    add_silence, add_ack,     add_send_test, add_template, add_capture,
    add_replay,   add_test,    add_journal, add_run,       add_sync,     add_completion,
    add_verdict,  add_note,    add_pin,     add_agent,     add_insights,
};

}  // namespace

void declare_command_line(CLI::App& app, CommandRun& out) {
  app.name("tocsin");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "Print the version and exit");
  for (const AddCommand add : kCommands) add(app, out);
  add_help(app);
}

}  // namespace tocsin::app
