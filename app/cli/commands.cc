#include "app/cli/commands.h"

#include <signal.h>
#include <sys/utsname.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "app/cli/vocabulary.h"
#include "app/config/config_reload.h"
#include "app/health/config_trouble.h"
#include "app/process/allocator.h"
#include "app/process/descriptor_limit.h"
#include "app/process/terminal.h"
#include "app/process/version.h"
#include "app/serve/process_metrics.h"
#include "app/view/run_questions.h"
#include "core/system_clock.h"
#include "core/text.h"
#include "core/text_table.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

void print(const config::Diagnostics& diagnostics, const std::string& format, std::ostream& out) {
  if (format == "json") {
    core::ValueList list;
    for (const auto& item : diagnostics.items()) {
      list.push_back(core::ValueMap{{"file", item.location.file},
                                    {"line", std::int64_t{item.location.line}},
                                    {"column", std::int64_t{item.location.column}},
                                    {"grade", std::string(config::to_string(item.grade))},
                                    {"path", item.path},
                                    {"message", item.message}});
    }
    out << core::to_json(core::Value(std::move(list))) << "\n";
    return;
  }
  for (const auto& item : diagnostics.items()) {
    if (format == "github") {
      out << "::" << (item.grade == config::Grade::note ? "notice" : config::to_string(item.grade))
          << " file=" << item.location.file << ",line=" << item.location.line
          << ",col=" << item.location.column << "::" << item.message << "\n";
    } else {
      out << config::to_text(item) << "\n";
    }
  }
}

// Loads and reports the errors; nullopt when there are any. What is only doubtful is for the
// caller.
std::optional<AppConfig> load_or_explain(const Invocation& call,
                                         std::vector<config::Diagnostic>* doubts = nullptr) {
  config::Diagnostics diagnostics;
  AppConfig config =
      load_config(config_path(call.config_file), config::process_environment(), diagnostics);
  if (diagnostics.has_errors()) {
    print(diagnostics, "text", std::cerr);
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
    }
  }
}

}  // namespace

int serve(const Invocation& call, Roles roles) {
  std::vector<config::Diagnostic> doubts;
  auto config = load_or_explain(call, &doubts);
  if (!config) return kConfiguration;
  return serve(call, roles, std::move(*config), doubts);
}

int serve(const Invocation& call, Roles roles, AppConfig loaded,
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
  if (!call.listen.empty()) config->http.listen = call.listen;
  if (!call.log_level.empty()) config->log.level = call.log_level;
  if (!call.log_format.empty()) config->log.format = call.log_format;

  core::SystemClock clock;
  const auto log = make_log(config->log, clock);
  if (roles.evaluate || roles.route) log_doubts(*log, doubts);  // a collector alarms nobody
  AppOptions options;
  options.roles = roles;
  options.host = host_name();
  if (const char* socket = std::getenv("NOTIFY_SOCKET")) options.notify_socket = socket;
  const auto open_transport = [transport = config->transport, topics = config->topics,
                               log = log.get()](core::Telemetry& telemetry) {
    return ingest::Transport::open(transport, topics, *log, telemetry);
  };
  const AppConfig started = *config;
  auto app = App::start(std::move(*config), options, open_transport, clock, *log,
                        std::chrono::seconds(call.start_timeout));
  if (!app) {
    log->error("start_failed", {{"code", std::string(core::to_string(app.error().code))},
                                {"error", app.error().message}});
    return exit_code(app.error());
  }
  log->info("started", {{"http", (*app)->address()}, {"version", build_version()}});
  const auto load = [&call](config::Diagnostics& diagnostics) {
    return load_config(config_path(call.config_file), config::process_environment(), diagnostics);
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

namespace {

// What each question about a run needs of the configured capture; empty where nobody asks one.
std::string questions_text(const AppConfig& config) {
  std::vector<std::string> types;
  for (const auto& rule : config.rules.rules) types.push_back(rule.type);
  std::string out;
  bool any = false;
  for (const RunQuestion& question : run_questions()) {
    std::string why = unasked(question, types);
    any = any || (why.empty() && question.rules[0] != "training_preflight");
    if (why.empty() && question.of_ledger && !config.capture.ledger) why = "capture.ledger is off";
    std::string lead = "  " + std::string(question.name);
    lead.resize(13, ' ');
    out += core::wrapped(lead, why.empty() ? std::string(question.needs) : "not asked: " + why, 80,
                         13);
  }
  return any ? "questions about each run, and what each needs (docs/run-card.md)\n" + out : "";
}

}  // namespace

int check_command(const Invocation& call) {
  const std::string path = config_path(call.config_file);
  config::Diagnostics diagnostics;
  const AppConfig config = load_config(path, config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) check_hosted(config, path, diagnostics);
  print(diagnostics, call.format, std::cout);
  const auto warnings =
      std::count_if(diagnostics.items().begin(), diagnostics.items().end(),
                    [](const auto& item) { return item.grade == config::Grade::warning; });
  const bool bad = diagnostics.has_errors() || (call.strict && warnings > 0);
  if (!bad && call.format == "text") {
    std::cout << questions_text(config) << path << ": ok";
    if (warnings > 0) std::cout << ", " << warnings << (warnings == 1 ? " warning" : " warnings");
    std::cout << "\n";
  }
  return bad ? kConfiguration : kOk;
}

int schema_command(const Invocation& call) {
  if (call.name == "topics" || call.name == "collectors") {
    std::cout << (call.name == "topics" ? ingest::topic_table() : collectors::series_tables());
    return kOk;
  }
  if (call.name == "vocabulary") {
    std::cout << core::to_json(vocabulary()) << "\n";
    return kOk;
  }
  if (call.name == "events") {
    std::cout << (call.markdown ? ingest::event_tables() : ingest::event_schemas());
    return kOk;
  }
  const auto declare = [](config::Reader& in) {
    AppConfig defaults;
    read(in, defaults);
  };
  std::cout << (call.markdown ? config::to_markdown(config::describe(declare))
                              : config::schema("tocsin.yaml", declare));
  return kOk;
}

int version_command(const Invocation& call) {
  if (call.format == "json") {
    std::cout << core::to_json(core::ValueMap{{"name", "tocsin"},
                                              {"version", build_version()},
                                              {"compiler", build_compiler()}})
              << "\n";
    return kOk;
  }
  std::cout << version_text() << "\n";
  return kOk;
}

}  // namespace tocsin::app
