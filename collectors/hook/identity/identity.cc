#include "collectors/hook/identity/identity.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "collectors/collectors.h"
#include "collectors/hook/identity/launch.h"
#include "collectors/hook/identity/platform_ref.h"
#include "collectors/hook/identity/ranks.h"
#include "collectors/hook/identity/variables.h"
#include "core/limits.h"
#include "core/process_identity.h"

namespace tocsin::hook {
namespace {

using core::Result;

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// 0: not known.
std::int64_t start_ticks(std::int64_t pid) {
  const auto stat = core::parse_process_stat(read_file("/proc/" + std::to_string(pid) + "/stat"));
  return stat ? static_cast<std::int64_t>(stat->start_ticks) : 0;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::uint32_t rank_of(const IdentityOptions& options, const Ranks& found) {
  if (options.rank >= 0) return static_cast<std::uint32_t>(options.rank);
  return found.rank && *found.rank >= 0 ? static_cast<std::uint32_t>(*found.rank) : 0;
}

std::uint32_t world_of(const IdentityOptions& options, const Ranks& found) {
  if (options.world_size > 0) return static_cast<std::uint32_t>(options.world_size);
  return found.world && *found.world > 0 ? static_cast<std::uint32_t>(*found.world) : 1;
}

// "worker_3"; of what does not train "ps_0".
std::string worker_of(const IdentityOptions& options, const Ranks& found, std::uint32_t rank) {
  if (!options.worker.empty()) return options.worker;
  if (!found.role.empty()) return found.role + "_" + std::to_string(found.index);
  return "worker_" + std::to_string(rank);
}

// A count of restarts begins anew with every launch; the time does not. Ranks of one launch may
// differ by seconds: the engine joins them (docs/launches.md).
std::uint32_t attempt_of(const IdentityOptions& options, const Variables& env,
                         const ProcessFacts& facts, bool fresh) {
  if (options.attempt > 0) return options.attempt;
  if (const auto given = env.integer({"TOCSIN_ATTEMPT"});
      given && *given > 0 && *given <= std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(*given);
  }
  if (fresh || facts.opened_seconds <= 0) return 1;
  return static_cast<std::uint32_t>(facts.opened_seconds);
}

}  // namespace

ProcessFacts this_process() {
  ProcessFacts facts;
  facts.environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  facts.boot_id = trimmed(read_file("/proc/sys/kernel/random/boot_id"));
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) facts.host = host.data();
  facts.pid = getpid();
  facts.start_ticks = start_ticks(facts.pid);
  facts.pid_namespace = collectors::own_pid_namespace();
  facts.parent_pid = getppid();
  facts.parent_start_ticks = start_ticks(facts.parent_pid);
  timespec since_boot{};
  if (clock_gettime(CLOCK_BOOTTIME, &since_boot) == 0) {
    facts.opened = since_boot.tv_sec * kNanosecondsPerSecond + since_boot.tv_nsec;
  }
  facts.opened_seconds = std::time(nullptr);
  return facts;
}

std::vector<std::string> bound(Identity& identity) {
  std::vector<std::string> out;
  const auto fit = [&](const char* what, std::string& text, std::size_t most) {
    if (!core::bound_name(text, most)) return;
    out.push_back(std::string(what) + ": too long, or no text; it is \"" + text +
                  "\" here (at most " + std::to_string(most) + " bytes)");
  };
  fit("job", identity.job, core::limit::kJobBytes);
  fit("worker", identity.worker, core::limit::kHostBytes);
  if (!identity.host.empty()) fit("host", identity.host, core::limit::kHostBytes);
  (void)core::bound_text(identity.launch, core::limit::kNameBytes);
  return out;
}

Result<Identity> derive_identity(const IdentityOptions& options, const ProcessFacts& facts) {
  const Variables env(facts.environment);
  Identity identity;
  identity.host = facts.host;
  identity.pid = facts.pid;
  identity.pid_start = facts.start_ticks;
  identity.boot_id = facts.boot_id;
  identity.opened = facts.opened;
  identity.job = !options.job.empty() ? options.job : env.text({"TOCSIN_JOB"});
  if (identity.job.empty()) identity.job = facts.script.empty() ? "training" : facts.script;
  const Ranks found = ranks_of(env);
  identity.rank = rank_of(options, found);
  identity.world_size = world_of(options, found);
  identity.worker = worker_of(options, found, identity.rank);

  const Launcher launcher = find_launcher(env, facts.opened_seconds);
  identity.launcher = launcher.name;
  core::ValueMap reference;
  if (!launcher.name.empty() && launcher.name != "torchelastic") {
    identity.platform = launcher.name;
    reference = launcher.ref;
  } else {
    reference = {{"pid", facts.pid}, {"start", facts.start_ticks}};
  }
  if (facts.pid_namespace > 0) reference.emplace_back("pid_namespace", facts.pid_namespace);
  identity.platform_ref = std::move(reference);

  // A parameter server is another process even of one worker.
  const bool alone = identity.world_size <= 1 && found.group.empty();
  const bool one_host = alone || found.one_host.value_or(false);
  std::string local =
      std::to_string(facts.parent_pid) + "/" + std::to_string(facts.parent_start_ticks);
  if (!found.group.empty()) local = identity.job + "/" + found.group;
  bool fresh = false;
  const std::string run = !options.run.empty() ? options.run : env.text({"TOCSIN_RUN"});
  if (!run.empty()) {
    identity.run = core::run_uid_for(identity.job, run);
  } else if (!launcher.seed.empty()) {
    identity.run = core::run_uid_v5(launcher.seed);
  } else if (alone) {
    identity.run = core::run_uid_v4();
    fresh = true;
  } else if (one_host) {
    identity.run = core::run_uid_v5("local:" + facts.boot_id + "/" + local);
  } else {
    return core::Error{core::Code::failed_precondition,
                       "several hosts take part and no launcher names the run: give run= or set "
                       "TOCSIN_RUN to the same text on all of them"};
  }
  identity.attempt = attempt_of(options, env, facts, fresh);
  identity.launch =
      launch_key({launcher.seed, facts.boot_id, local, options.attempt, one_host}, env);
  return identity;
}

}  // namespace tocsin::hook
