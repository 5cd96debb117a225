#include "collectors/hook/abi/at_exit.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "collectors/hook/abi/process.h"
#include "collectors/hook/identity/bounded_json.h"
#include "core/mutex.h"

namespace tocsin::hook {
namespace {

constexpr int kExitStopped = 77;

bool quiet() {
  const char* given = std::getenv("TOCSIN_QUIET");
  return given != nullptr && *given != '\0' && std::string(given) != "0";
}

struct Registered {
  Ending ending;
  std::chrono::milliseconds timeout{0};
  std::uint64_t issues_told = 0;  // by the caller, before it registered
};
// Leaked: exit() may run while other threads still use it.
Registered& registered() {
  static Registered* const made = new Registered;
  return *made;
}

#if defined(__GLIBC__)
// What the rules found after the interpreter had gone: nobody else can tell it.
void tell_last_issues() {
  std::string all;
  {
    const core::MutexLock lock(process().mutex);
    all = process().last_issues;
  }
  if (all.empty() || quiet()) return;
  for (const auto& issue : nlohmann::json::parse(all, nullptr, false)) {
    if (!issue.is_object() || !issue.value("told", false)) continue;
    if (issue.value("number", std::uint64_t{0}) < registered().issues_told) continue;
    std::fprintf(stderr, "tocsin: %s\n", issue.value("text", "").c_str());
  }
}

void at_exit(int status, void* /*unused*/) noexcept {
  try {
    const Registered& what = registered();
    (void)close_open_client(ending_at(status, what.ending), what.timeout);
    const std::string loss = [] {
      const core::MutexLock lock(process().mutex);
      return process().loss;
    }();
    tell_last_issues();
    if (!loss.empty() && !quiet()) std::fprintf(stderr, "tocsin: %s\n", loss.c_str());
  } catch (...) {  // the process ends anyway, and with its own status
  }
}
#endif

}  // namespace

Ending ending_of(const std::string& given) {
  const nlohmann::json json = parse_given(given);
  if (!json.is_object()) return {given, "", std::nullopt, 0};
  Ending out{json.value("outcome", "unknown"), json.value("error", ""), std::nullopt, 0};
  out.issues_told = json.value("issues_told", std::uint64_t{0});
  if (json.contains("exit_code")) out.exit_code = json["exit_code"].get<int>();
  return out;
}

Ending ending_at(int status, Ending given) {
  const bool stopped = given.outcome == "stopped_by_rule" || given.outcome == "stopped_by_person";
  if (status != 0 && !(stopped && status == kExitStopped)) given.outcome = "failed";
  given.exit_code = status;
  return given;
}

bool close_open_client(const Ending& ending, std::chrono::milliseconds timeout) {
  std::unique_ptr<tocsin_client> handle;
  {
    const core::MutexLock lock(process().mutex);
    handle.reset(std::exchange(process().open, nullptr));
  }
  if (handle == nullptr) return true;
  const bool delivered =
      Client::close(handle->client, ending.outcome, ending.error, ending.exit_code, timeout);
  const core::MutexLock lock(process().mutex);
  process().last_counters = handle->client->counters();
  process().loss = handle->client->loss();
  process().last_issues.clear();
  if (handle->client->judge() != nullptr) {
    process().last_issues = handle->client->judge()->issues(0);
  }
  return delivered;
}

bool close_at_exit(Ending ending, std::chrono::milliseconds timeout) {
#if defined(__GLIBC__)
  const std::uint64_t told = ending.issues_told;
  registered() = {std::move(ending), timeout, told};
  static const bool done = on_exit(at_exit, nullptr) == 0;
  return done;
#else
  (void)ending;
  (void)timeout;
  return false;
#endif
}

}  // namespace tocsin::hook
