// Which issues fire at this moment, as the router knows it: a stop that waits asks for it
// (docs/approvals.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/identity.h"
#include "core/issue.h"
#include "core/mutex.h"

namespace tocsin::actions {

/// Thread-safe: the router's stage writes it, delivery threads and the board of runs read it.
class FiringIssues {
 public:
  /// Nothing is known (any more) until complete(): the router is being restored, or leads no more.
  void start_over();
  void complete();
  void began(const std::string& issue_key, std::uint64_t episode, const core::Issue& issue);
  void over(const std::string& issue_key, std::uint64_t episode);

  /// Does this episode fire? nullopt: it is not known.
  [[nodiscard]] std::optional<bool> fires(const std::string& issue_key,
                                          std::uint64_t episode) const;
  /// The rules of which an issue fires for this attempt. Rules in shadow have no effects.
  [[nodiscard]] std::set<std::string> rules_of(const core::RunUid& run,
                                               std::uint32_t attempt) const;

 private:
  struct Episode {
    std::uint64_t number = 0;
    core::RunUid run;
    std::uint32_t attempt = 0;
    std::string rule;
    bool shadow = false;
  };
  mutable core::Mutex mutex_;
  bool complete_ GUARDED_BY(mutex_) = false;
  std::map<std::string, Episode> episodes_ GUARDED_BY(mutex_);               // by issue key
  std::map<core::RunUid, std::set<std::string>> of_run_ GUARDED_BY(mutex_);  // → issue keys
};

}  // namespace tocsin::actions
