// How often runs may be asked for profiles, and which issues have asked already. Internal to actions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "core/identity.h"
#include "core/time.h"

namespace tocsin::actions {

/// Thread-safe. Known of a run until kForget after the last time that it was asked.
class ProfileBudget {
 public:
  struct Limits {
    core::Duration every = std::chrono::minutes(10);  // least time between two
    std::uint64_t most = 5;                           // of one attempt
  };
  enum class Answer : std::uint8_t { ask, asked_before, too_soon, too_many };

  /// `ask` takes it from the budget; give back() what could not be asked.
  Answer take(const Limits& limits, const core::RunUid& run, std::uint32_t attempt,
              const std::string& command_id, core::WallTime now) {
    const std::lock_guard lock(mutex_);
    std::erase_if(runs_, [&](const auto& one) { return now - one.second.last > kForget; });
    Run& known = runs_[run];
    if (known.attempt != attempt) known = {attempt, {}, core::WallTime{}};
    if (known.asked.contains(command_id)) return Answer::asked_before;
    if (known.asked.size() >= limits.most) return Answer::too_many;
    if (!known.asked.empty() && now - known.last < limits.every) return Answer::too_soon;
    known.asked.insert(command_id);
    known.before = known.last;
    known.last = now;
    return Answer::ask;
  }
  void give_back(const core::RunUid& run, const std::string& command_id) {
    const std::lock_guard lock(mutex_);
    const auto known = runs_.find(run);
    if (known == runs_.end() || known->second.asked.erase(command_id) == 0) return;
    known->second.last = known->second.before;
  }

 private:
  static constexpr core::Duration kForget = std::chrono::hours(48);
  struct Run {
    std::uint32_t attempt = 0;
    std::set<std::string> asked;  // command ids
    core::WallTime last{};
    core::WallTime before{};
  };
  std::mutex mutex_;
  std::map<core::RunUid, Run> runs_;
};

}  // namespace tocsin::actions
