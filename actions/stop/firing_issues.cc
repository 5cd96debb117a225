#include "actions/stop/firing_issues.h"

namespace tocsin::actions {

void FiringIssues::start_over() {
  const core::MutexLock lock(mutex_);
  complete_ = false;
  episodes_.clear();
  of_run_.clear();
  rules_.clear();
}

void FiringIssues::complete() {
  const core::MutexLock lock(mutex_);
  complete_ = true;
}

void FiringIssues::began(const std::string& issue_key, std::uint64_t episode, const Issue& issue) {
  const core::MutexLock lock(mutex_);
  auto rule = rules_.find(issue.rule);
  if (rule == rules_.end()) rule = rules_.emplace(issue.rule).first;
  const auto [found, fresh] = episodes_.try_emplace(issue_key);
  if (!fresh) leave_run(*found);
  found->second = {episode, issue.run, &*rule, issue.attempt, issue.shadow};
  of_run_[issue.run].insert(&*found);
}

void FiringIssues::leave_run(const Episodes::value_type& one) {
  const auto run = of_run_.find(one.second.run);
  if (run == of_run_.end()) return;
  run->second.erase(&one);
  if (run->second.empty()) of_run_.erase(run);
}

void FiringIssues::over(const std::string& issue_key, std::uint64_t episode) {
  const core::MutexLock lock(mutex_);
  const auto found = episodes_.find(issue_key);
  if (found == episodes_.end() || found->second.number > episode) return;
  leave_run(*found);
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
  const auto issues = of_run_.find(run);
  if (issues == of_run_.end()) return out;
  for (const Episodes::value_type* one : issues->second) {
    const Episode& episode = one->second;
    if (episode.attempt == attempt && !episode.shadow) out.insert(*episode.rule);
  }
  return out;
}

}  // namespace tocsin::actions
