#include "actions/platform/slurm_job.h"

#include <algorithm>
#include <array>

#include "actions/platform/platform_fence.h"
#include "actions/transport/redact.h"

namespace tocsin::actions {
namespace {

constexpr std::array<std::string_view, 9> kTerminal{"COMPLETED", "CANCELLED", "FAILED",
                                                    "TIMEOUT",   "NODE_FAIL", "PREEMPTED",
                                                    "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};

}  // namespace

bool SlurmJobState::has(std::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool SlurmJobState::over() const {
  return !has("COMPLETING") && std::any_of(kTerminal.begin(), kTerminal.end(),
                                           [&](std::string_view one) { return has(one); });
}

std::string SlurmJobState::text() const {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + printable(word, 40);
  return out.empty() ? "in no state" : out;
}

SlurmJobState slurm_job_state(const core::Value& job) {
  SlurmJobState out;
  const core::Value* state = core::find(job, "job_state");
  if (state == nullptr) return out;
  if (const auto* one = core::as<std::string>(*state)) out.words.push_back(*one);
  if (const auto* list = core::as<core::ValueList>(*state)) {
    for (const core::Value& word : *list) {
      if (const auto* text = core::as<std::string>(word)) out.words.push_back(*text);
    }
  }
  return out;
}

std::int64_t slurm_job_id(const core::Value& fence) {
  return whole_at(fence, "job_id").value_or(0);
}

std::string slurm_job_name(std::int64_t id) { return "Slurm job " + std::to_string(id); }

bool slurm_reaches(const core::Value& fence, const std::string& ours) {
  if (core::text_at(fence, "platform") != "slurm") return false;
  const std::string cluster = core::text_at(fence, "cluster");
  if (!ours.empty() && !cluster.empty() && cluster != ours) return false;
  return slurm_job_id(fence) > 0 && whole_at(fence, "restart_cnt").has_value() &&
         (whole_at(fence, "start_time").value_or(0) > 0 ||
          whole_at(fence, "opened").value_or(0) > 0);
}

std::string slurm_difference(const core::Value& job, const core::Value& fence) {
  const std::string there = core::text_at(job, "cluster");
  const std::string ours = core::text_at(fence, "cluster");
  if (!there.empty() && !ours.empty() && there != ours) {
    return "it is in cluster " + printable(there, 64) + ", the run was in " + printable(ours, 64);
  }
  const auto restarts = whole_at(job, "restart_cnt");
  const auto then = whole_at(fence, "restart_cnt");
  if (restarts != then) {
    return "it was restarted " + std::to_string(restarts.value_or(0)) + " times, the run was in " +
           std::to_string(then.value_or(0));
  }
  const auto start = whole_at(job, "start_time");
  const auto known = whole_at(fence, "start_time");
  const bool same = start && (known ? *start == *known : made_before_opening(*start, fence, false));
  if (same) return {};
  return "it started at " + (start ? time_text(*start) : "a time that it does not tell") +
         (known ? ", the run's at " + time_text(*known) : ", after the run had begun");
}

}  // namespace tocsin::actions
