#include "collectors/hook/identity/launch.h"

namespace tocsin::hook {
namespace {

constexpr std::size_t kBootDigits = 8;

// How often a launcher that is still running has started the workers again.
std::string restarts(const Variables& env) {
  std::string out;
  for (const char* name : {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}) {
    if (const auto count = env.integer({name})) out += "/" + std::to_string(*count);
  }
  return out;
}

std::string rendezvous(const Variables& env) {
  const std::string address = env.text({"MASTER_ADDR"});
  if (address.empty()) return {};
  return "@" + address + ":" + env.text({"MASTER_PORT"});
}

}  // namespace

std::string launch_key(const LaunchFacts& facts, const Variables& env) {
  if (facts.given_attempt > 0) return "attempt:" + std::to_string(facts.given_attempt);
  if (const std::string attempt = env.text({"TOCSIN_ATTEMPT"}); !attempt.empty()) {
    return "attempt:" + attempt;
  }
  // `tocsin run` sets it once; a launcher below it may start the workers several times.
  if (const std::string given = env.text({"TOCSIN_LAUNCH"}); !given.empty()) {
    return "launch:" + given + restarts(env);
  }
  std::string launcher(facts.launcher_seed);
  if (const std::string step = env.text({"SLURM_STEP_ID"}); !launcher.empty() && !step.empty()) {
    launcher += "." + step;
  }
  // torchrun also runs inside the others; without an id its rendezvous still tells launches apart.
  if (const std::string elastic = env.text({"TORCHELASTIC_RUN_ID"});
      !elastic.empty() && launcher != "torchelastic:" + elastic) {
    launcher += (launcher.empty() ? "" : "+") + ("torchelastic:" + elastic);
  }
  if (!launcher.empty()) return launcher + restarts(env) + rendezvous(env);
  if (!facts.one_host || facts.boot_id.empty()) return {};
  return "local:" + std::string(facts.boot_id) + "/" + std::string(facts.local);
}

bool marks_at_least(std::string_view mark, std::string_view boot_id, std::int64_t opened) {
  const std::string_view boot = boot_id.substr(0, kBootDigits);
  if (boot.size() != kBootDigits || mark.size() <= kBootDigits + 1) return false;
  if (mark.substr(0, kBootDigits) != boot || mark[kBootDigits] != '/') return false;
  const auto written = number(mark.substr(kBootDigits + 1));
  return written && *written >= opened;
}

}  // namespace tocsin::hook
