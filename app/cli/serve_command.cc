#include "app/cli/serve_command.h"

#include <signal.h>
#include <sys/utsname.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "app/config/config_path.h"
#include "app/config/config_reload.h"
#include "app/health/config_trouble.h"
#include "app/process/allocator.h"
#include "app/process/descriptor_limit.h"
#include "app/process/exit_code.h"
#include "app/process/terminal.h"
#include "app/process/version.h"
#include "core/system_clock.h"

namespace tocsin::app {
namespace {

std::string served_host() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

// Loads and reports the errors; nullopt when there are any. What is only doubtful is for the
// caller.
std::optional<AppConfig> load_or_explain(const ServeOptions& given,
                                         std::vector<config::Diagnostic>* doubts = nullptr) {
  config::Diagnostics diagnostics;
  AppConfig config =
      load_config(config_path(given.config_file), config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) {
    for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
    return std::nullopt;
  }
  if (doubts != nullptr) *doubts = std::move(diagnostics.items());
  return config;
}

void log_doubts(core::Log& log, const std::vector<config::Diagnostic>& doubts) {
  for (const config::Diagnostic& item : doubts) {
    if (item.grade != config::Grade::warning) continue;
    log.warn("configuration_doubtful",
             {{"at", item.location.file + ":" + std::to_string(item.location.line) + ":" +
                         std::to_string(item.location.column)},
              {"key", item.path},
              {"problem", item.message}});
  }
}

// Until a signal to end, or the terminal is closed; meanwhile the configuration is looked after.
int wait_for_end(const sigset_t& signals, ConfigReload& reload) {
  constexpr timespec kLook{1, 0};
  const ControllingTerminal terminal;
  FreedMemory freed;
  bool hung_up = false;
  while (true) {
    const int received = sigtimedwait(&signals, nullptr, &kLook);
    // The signal may come a moment before the terminal is gone.
    hung_up = hung_up || received == SIGHUP;
    if (hung_up && terminal.closed()) return SIGHUP;
    if (received == SIGHUP) {
      reload.reload();
    } else if (received > 0) {
      return received;
    } else {
      reload.look();
      freed.look();
    }
  }
}

}  // namespace

int serve(const ServeOptions& given, Roles roles) {
  std::vector<config::Diagnostic> doubts;
  auto config = load_or_explain(given, &doubts);
  if (!config) return kConfiguration;
  return serve(given, roles, std::move(*config), doubts);
}

int serve(const ServeOptions& given, Roles roles, AppConfig loaded,
          const std::vector<config::Diagnostic>& doubts) {
  keep_freed_memory();
  raise_descriptor_limit();
  // Blocked before any thread starts, so that only the wait below gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  AppConfig* config = &loaded;
  if (!given.listen.empty()) config->http.listen = given.listen;
  if (!given.log_level.empty()) config->log.level = given.log_level;
  if (!given.log_format.empty()) config->log.format = given.log_format;

  core::SystemClock clock;
  const auto log = make_log(config->log, clock);
  if (roles.evaluate || roles.route) log_doubts(*log, doubts);  // a collector alarms nobody
  AppOptions options;
  options.roles = roles;
  options.host = served_host();
  if (const char* socket = std::getenv("NOTIFY_SOCKET")) options.notify_socket = socket;
  const auto open_transport = [transport = config->transport, topics = config->topics,
                               log = log.get()](core::Telemetry& telemetry) {
    return ingest::Transport::open(transport, topics, *log, telemetry);
  };
  const AppConfig started = *config;
  auto app = App::start(std::move(*config), options, open_transport, clock, *log,
                        std::chrono::seconds(given.start_timeout));
  if (!app) {
    log->error("start_failed", {{"code", std::string(core::to_string(app.error().code))},
                                {"error", app.error().message}});
    return exit_code(app.error());
  }
  log->info("started", {{"http", (*app)->address()}, {"version", build_version()}});
  const auto load = [&given](config::Diagnostics& diagnostics) {
    return load_config(config_path(given.config_file), config::process_environment(), diagnostics);
  };
  const auto adopt = [&app](const rules::RulesConfig& rules) { (*app)->reload(rules); };
  const auto tell = [](const std::string& why) { ConfigTrouble::of_this_process().set(why); };
  ConfigReload reload(started, {&clock, log.get(), &(*app)->telemetry(), load, adopt, tell});
  const int received = wait_for_end(signals, reload);
  log->info("stopping", {{"signal", received}});
  std::signal(SIGINT, SIG_DFL);  // the second signal ends the process at once: safe at any instant
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  const bool in_time = (*app)->stop();
  log->info("stopped", {{"in_time", in_time}});
  if (!in_time) std::_Exit(kTemporary);
  return kOk;
}

}  // namespace tocsin::app
