#include "actions/stop/stop_prefix.h"

#include <algorithm>

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostNames = 5;

}  // namespace

std::vector<core::RunningRun> named_so(std::vector<core::RunningRun> running,
                                       std::string_view prefix) {
  std::erase_if(running, [&](const auto& one) { return !one.run.job.starts_with(prefix); });
  std::sort(running.begin(), running.end(), [](const auto& a, const auto& b) {
    return std::pair(a.run.job, a.run.uid) < std::pair(b.run.job, b.run.uid);
  });
  return running;
}

std::string names_of(const std::vector<core::RunningRun>& jobs) {
  std::string out;
  for (std::size_t i = 0; i < jobs.size() && i < kMostNames; ++i) {
    out += (i == 0 ? "" : ", ") + jobs[i].run.job;
  }
  if (jobs.size() > kMostNames) out += " and " + std::to_string(jobs.size() - kMostNames) + " more";
  return out;
}

core::NotifiedIssue on_behalf(const core::NotifiedIssue& notified, const core::RunningRun& job) {
  core::NotifiedIssue out = notified;
  core::Issue& issue = out.issue;
  if (job.run.uid == issue.run.uid) return out;
  const std::string found = issue.run.job;
  issue.run = job.run;
  issue.labels = job.labels;
  issue.labels.set("rule", issue.rule);
  issue.labels.set("job", job.run.job);
  issue.labels.set("run_uid", to_text(job.run.uid));
  issue.summary += " (found in " + (found.empty() ? "another job" : found) + ")";
  return out;
}

}  // namespace tocsin::actions
