#include "actions/stop/firing_issues.h"

namespace tocsin::actions {

void FiringIssues::start_over() {
  const core::MutexLock lock(mutex_);
  complete_ = false;
  episodes_.clear();
  of_run_.clear();
}

void FiringIssues::complete() {
  const core::MutexLock lock(mutex_);
  complete_ = true;
}

void FiringIssues::began(const std::string& issue_key, std::uint64_t episode,
                         const core::Issue& issue) {
  const core::MutexLock lock(mutex_);
  episodes_[issue_key] = {episode, issue.run.uid, issue.run.attempt, issue.rule, issue.shadow};
  of_run_[issue.run.uid].insert(issue_key);
}

void FiringIssues::over(const std::string& issue_key, std::uint64_t episode) {
  const core::MutexLock lock(mutex_);
  const auto found = episodes_.find(issue_key);
  if (found == episodes_.end() || found->second.number > episode) return;
  const auto run = of_run_.find(found->second.run);
  if (run != of_run_.end()) {
    run->second.erase(issue_key);
    if (run->second.empty()) of_run_.erase(run);
  }
  episodes_.erase(found);
}

std::optional<bool> FiringIssues::fires(const std::string& issue_key, std::uint64_t episode) const {
  const core::MutexLock lock(mutex_);
  if (!complete_) return std::nullopt;
  const auto found = episodes_.find(issue_key);
  return found != episodes_.end() && found->second.number >= episode;
}

std::set<std::string> FiringIssues::rules_of(const core::RunUid& run, std::uint32_t attempt) const {
  std::set<std::string> out;
  const core::MutexLock lock(mutex_);
  const auto keys = of_run_.find(run);
  if (keys == of_run_.end()) return out;
  for (const std::string& key : keys->second) {
    const auto one = episodes_.find(key);
    if (one != episodes_.end() && one->second.attempt == attempt && !one->second.shadow) {
      out.insert(one->second.rule);
    }
  }
  return out;
}

}  // namespace tocsin::actions
