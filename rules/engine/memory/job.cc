#include "rules/engine/memory/job.h"

namespace tocsin::rules {
namespace {

constexpr int kExitStopped = 77;  // a training process that a rule stopped

// Worst first.
int weight(const std::string& outcome) {
  if (outcome == "failed") return 4;
  if (Job::stopped(outcome)) return 3;
  if (outcome == "lost" || outcome == "unknown") return 2;
  if (outcome == "completed") return 0;
  return 1;
}

}  // namespace

bool Job::stopped(std::string_view outcome) {
  return outcome == "stopped_by_rule" || outcome == "stopped_by_person";
}

std::string Job::outcome_of(std::optional<int> code) {
  if (!code) return "lost";
  if (*code == kExitStopped) return "stopped_by_rule";
  return *code == 0 ? "completed" : "failed";
}

void Job::worsen(const std::string& how, std::optional<int> code) {
  if (outcome.empty() || weight(how) > weight(outcome)) outcome = how;
  if (code && (!exit_code || *exit_code == 0)) exit_code = code;
}

}  // namespace tocsin::rules
