// `tocsin run -- CMD`: starts a training command as a launch of its own, sees how it ends, and says
// so for whoever below it could not.
#pragma once

#include <string>
#include <vector>

#include "core/identity.h"
#include "core/result.h"

namespace tocsin::app {

/// One worker below this process, from what its hook reported (collectors/hook/client/run_report.h).
struct ReportedWorker {
  core::RunUid run;
  std::uint32_t attempt = 1;
  std::string worker;
  std::uint64_t incarnation = 0;
  std::int64_t pid = 0;
  std::int64_t pid_start = 0;
  std::string boot_id;
  bool told = false;    // its hook's own last word has arrived
  bool judges = false;  // by rules of its own, which say what they find
};

struct LaunchReport {
  std::vector<ReportedWorker> workers;  // in the order in which they opened
  /// A stop was acknowledged, and no worker has started since (a launcher may restart them).
  bool stopped = false;
};
/// Lines that are no report are passed over.
LaunchReport read_launch_report(const std::string& text);

/// What the caller's caller gets for the command's own status: 77 for 0, and for the 1 of a
/// launcher between us and the workers, when a stop was acknowledged; 128 + n for a signal.
int launch_exit_code(int wait_status, std::int64_t child, const LaunchReport& report);

struct RunOptions {
  std::vector<std::string> command;
  std::string out;          // as the hook's `out`; empty: environment, configuration, default
  std::string config_file;  // empty: TOCSIN_CONFIG
  /// Python programs below get the hook without a line of code, unless they call it themselves.
  bool attach = true;
};
/// The exit code. 2: no command; 3: where telemetry goes is unusable; 126, 127: the command cannot
/// be executed, or is not there, as a shell says it.
int run_command(const RunOptions& options);

}  // namespace tocsin::app
