// What each subcommand does; main.cc only parses. Results are exit codes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/app.h"
#include "app/cli/evaluate_from.h"
#include "app/cli/rule_worker.h"
#include "app/cli/view_commands.h"
#include "app/config/config_path.h"
#include "app/process/exit_code.h"
#include "app/process/version.h"

namespace tocsin::app {

struct Invocation {
  std::string config_file;
  std::string listen;
  std::string log_level;
  std::string log_format;
  std::string format = "text";
  std::string name;
  std::string out;                     // run; topics: --from
  std::vector<std::string> arguments;  // run: the command
  int start_timeout = 300;             // seconds
  ViewOptions view;                    // status, issues, tail
  RecordedOptions recorded;            // evaluate --from
  WorkerOptions worker;                // rule-worker
  bool strict = false;
  bool markdown = false;
  std::function<int()> run;
};

/// up, collect, evaluate, route: until SIGINT or SIGTERM; a second signal ends at once.
int serve(const Invocation& call, Roles roles);
/// The same with a configuration that was read already; `doubts`: its warnings.
int serve(const Invocation& call, Roles roles, AppConfig loaded,
          const std::vector<config::Diagnostic>& doubts);
int check_command(const Invocation& call);
int topics_command(const Invocation& call, const std::string& verb);
int schema_command(const Invocation& call);
int rules_list(const Invocation& call);
/// 1: there is no such rule.
int rules_describe(const Invocation& call);
int version_command(const Invocation& call);

}  // namespace tocsin::app
