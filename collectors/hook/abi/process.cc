#include "collectors/hook/abi/process.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "collectors/hook/client/out_place.h"
#include "collectors/hook/client/raw_endpoint.h"
#include "collectors/hook/client/run_report.h"
#include "collectors/hook/client/settings.h"
#include "collectors/hook/commands/local_socket.h"
#include "core/version.h"

namespace tocsin::hook {
namespace {

// "train" for "/home/me/train.py".
std::string script_name(const char* given) {
  std::string name = text(given);
  const std::size_t slash = name.find_last_of('/');
  if (slash != std::string::npos) name.erase(0, slash + 1);
  if (name.size() > 3 && name.ends_with(".py")) name.resize(name.size() - 3);
  return name;
}

}  // namespace

Process& process() {
  static Process* const made = new Process;  // leaked, see above
  return *made;
}

void after_fork_in_child() {
  Process& self = process();
  self.generation.fetch_add(1);
  new (&self.mutex) core::Mutex;
  const core::MutexLock lock(self.mutex);
  self.open = nullptr;
  close_sockets_in_child();
}

std::string text(const char* given) {
  return given == nullptr ? std::string() : std::string(given);
}

core::Result<std::shared_ptr<Client>> make_client(const tocsin_options& options, Process& self) {
  if (options.out != nullptr && *options.out == '\0') {
    return parse_place("out", "").error();
  }
  ProcessFacts facts = this_process();
  facts.script = script_name(options.script);
  auto settings = load_settings(
      {text(options.out), text(options.config), text(options.capture), text(options.labels)},
      facts);
  if (!settings) return settings.error();
  auto identity = derive_identity({text(options.run), text(options.job), text(options.worker),
                                   options.rank, options.world_size, options.attempt},
                                  facts);
  if (!identity) return identity.error();
  for (std::string& cut : bound(*identity)) settings->warnings.push_back(std::move(cut));
  auto plan = CapturePlan::compile(settings->capture);
  if (!plan) return plan.error();
  SessionOptions session;
  session.identity = *identity;
  session.labels = settings->labels;
  session.framework = text(options.framework);
  session.version = core::version();
  session.cluster = settings->cluster;
  // A clock that was set back must not make the second client of a process look like the first.
  self.incarnation = std::max(self.incarnation + 1,
                              static_cast<std::uint64_t>(core::nanoseconds(self.clock.now())));
  session.incarnation = self.incarnation;
  const std::uint64_t incarnation = session.incarnation;
  ClientOptions client_options;
  if (options.queue_bytes > 0) client_options.queue_bytes = options.queue_bytes;
  client_options.out = settings->out;
  client_options.warnings = settings->warnings;
  client_options.judged = facts.environment(kJudgedVariable).has_value();
  client_options.report = facts.environment(kReportVariable).value_or("");
  client_options.spool = spool_directory(*settings, *identity, incarnation);
  client_options.command_share = command_share(*settings, identity->run);
  auto trouble = std::make_shared<Trouble>();
  const core::Clock& clock = self.clock;
  auto endpoints = make_endpoints(*settings, *identity, trouble, incarnation);
  auto made = std::make_shared<Client>(std::move(session), *std::move(plan), std::move(endpoints),
                                       trouble, clock, std::move(client_options),
                                       raw_endpoint(*settings, *identity, incarnation));
  // Without rules the hook is still a hook; counters() say why they are not there.
  if (options.rules != nullptr) (void)made->judge_here(options.rules, text(options.stop));
  return made;
}

}  // namespace tocsin::hook
