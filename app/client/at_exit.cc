#include "app/client/at_exit.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "app/client/bounded_json.h"
#include "app/client/process.h"

namespace tocsin::app::client {
namespace {

constexpr int kExitStopped = 77;

bool quiet() {
  const char* given = std::getenv("TOCSIN_QUIET");
  return given != nullptr && *given != '\0' && std::string(given) != "0";
}

struct Registered {
  Ending ending;
  std::chrono::milliseconds timeout{0};
};
// Leaked: exit() may run while other threads still use it.
Registered& registered() {
  static Registered* const made = new Registered;
  return *made;
}

#if defined(__GLIBC__)
void at_exit(int status, void* /*unused*/) noexcept {
  try {
    const Registered& what = registered();
    (void)close_open_client(ending_at(status, what.ending), what.timeout);
    const std::string loss = [] {
      const std::lock_guard lock(process().mutex);
      return process().loss;
    }();
    if (!loss.empty() && !quiet()) std::fprintf(stderr, "tocsin: %s\n", loss.c_str());
  } catch (...) {  // the process ends anyway, and with its own status
  }
}
#endif

}  // namespace

Ending ending_of(const std::string& given) {
  const nlohmann::json json = parse_given(given);
  if (!json.is_object()) return {given, "", std::nullopt};
  Ending out{json.value("outcome", "unknown"), json.value("error", ""), std::nullopt};
  if (json.contains("exit_code")) out.exit_code = json["exit_code"].get<int>();
  return out;
}

Ending ending_at(int status, Ending given) {
  const bool stopped = given.outcome == "stopped_by_rule";
  if (status != 0 && !(stopped && status == kExitStopped)) given.outcome = "failed";
  given.exit_code = status;
  return given;
}

bool close_open_client(const Ending& ending, std::chrono::milliseconds timeout) {
  std::unique_ptr<tocsin_client> handle;
  {
    const std::lock_guard lock(process().mutex);
    handle.reset(std::exchange(process().open, nullptr));
  }
  if (handle == nullptr) return true;
  const bool delivered =
      Client::close(handle->client, ending.outcome, ending.error, ending.exit_code, timeout);
  const std::lock_guard lock(process().mutex);
  process().last_counters = handle->client->counters();
  process().loss = handle->client->loss();
  return delivered;
}

bool close_at_exit(Ending ending, std::chrono::milliseconds timeout) {
#if defined(__GLIBC__)
  registered() = {std::move(ending), timeout};
  static const bool done = on_exit(at_exit, nullptr) == 0;
  return done;
#else
  (void)ending;
  (void)timeout;
  return false;
#endif
}

}  // namespace tocsin::app::client
