// What the hooks below `tocsin run` reported, and what follows from it for the exit code.
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "app/cli/run_command.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMaxLine = 64U << 10;
constexpr int kExitStopped = 77;
constexpr int kSignalled = 128;

std::string text(const core::Value& fact, std::string_view name) {
  const core::Value* found = core::find(fact, name);
  const auto* words = core::as<std::string>(found);
  return words == nullptr ? std::string() : *words;
}

std::int64_t whole(const core::Value& fact, std::string_view name) {
  const core::Value* found = core::find(fact, name);
  const auto* number = core::as<std::int64_t>(found);
  return number == nullptr ? 0 : *number;
}

// As text in the report: 64 bits do not survive every reader of JSON.
std::uint64_t incarnation_of(const core::Value& fact) {
  const std::string digits = text(fact, "incarnation");
  std::uint64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

void add_fact(const core::Value& fact, LaunchReport& report) {
  const std::string event = text(fact, "event");
  const std::uint64_t incarnation = incarnation_of(fact);
  if (event == "stopping") {
    report.stopped = true;
  } else if (event == "opened") {
    const auto run = core::parse_run_uid(text(fact, "run"));
    if (!run) return;
    report.stopped = false;
    report.workers.push_back({*run, static_cast<std::uint32_t>(whole(fact, "attempt")),
                              text(fact, "worker"), incarnation, whole(fact, "pid"),
                              whole(fact, "pid_start"), text(fact, "boot_id"), false,
                              core::find(fact, "judges") != nullptr});
  } else if (event == "ended") {
    const core::Value* told = core::find(fact, "told");
    const auto* yes = core::as<bool>(told);
    for (ReportedWorker& worker : report.workers) {
      if (worker.incarnation == incarnation) worker.told = yes != nullptr && *yes;
    }
  }
}

}  // namespace

LaunchReport read_launch_report(const std::string& text) {
  LaunchReport out;
  std::string_view left = text;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    if (const auto fact = core::parse_json(left.substr(0, end), kMaxLine)) add_fact(*fact, out);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return out;
}

int launch_exit_code(int wait_status, std::int64_t child, const LaunchReport& report) {
  if (WIFSIGNALED(wait_status)) return kSignalled + WTERMSIG(wait_status);
  const int code = WEXITSTATUS(wait_status);
  if (!report.stopped) return code;
  // torchrun ends with 1 whatever its workers ended with; a script's own 1 is its own failure.
  const bool launcher = std::none_of(report.workers.begin(), report.workers.end(),
                                     [&](const auto& worker) { return worker.pid == child; });
  return code == 0 || (code == 1 && launcher) ? kExitStopped : code;
}

}  // namespace tocsin::app
