// Which issues fire at this moment, as the router knows it: a stop that waits asks for it
// (docs/approvals.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/identity.h"
#include "core/mutex.h"

namespace tocsin::actions {

/// Thread-safe: the router's stage writes it, delivery threads and the board of runs read it.
class FiringIssues {
 public:
  /// Nothing is known (any more) until complete(): the router is being restored, or leads no more.
  void start_over();
  void complete();
  struct Issue {
    core::RunUid run;
    std::uint32_t attempt = 0;
    std::string_view rule;
    bool shadow = false;
  };
  void began(const std::string& issue_key, std::uint64_t episode, const Issue& issue);
  void over(const std::string& issue_key, std::uint64_t episode);

  /// Does this episode fire? nullopt: it is not known.
  [[nodiscard]] std::optional<bool> fires(const std::string& issue_key,
                                          std::uint64_t episode) const;
  /// The rules of which an issue fires for this attempt. Rules in shadow have no effects.
  [[nodiscard]] std::set<std::string> rules_of(const core::RunUid& run,
                                               std::uint32_t attempt) const;

 private:
  // Many issues fire, of few rules: there is one text of each.
  struct Episode {
    std::uint64_t number = 0;
    core::RunUid run;
    const std::string* rule = nullptr;
    std::uint32_t attempt = 0;
    bool shadow = false;
  };
  using Episodes = std::unordered_map<std::string, Episode>;  // by issue key
  void leave_run(const Episodes::value_type& one) REQUIRES(mutex_);

  mutable core::Mutex mutex_;
  bool complete_ GUARDED_BY(mutex_) = false;
  Episodes episodes_ GUARDED_BY(mutex_);
  std::map<core::RunUid, std::unordered_set<const Episodes::value_type*>> of_run_
      GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> rules_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::actions
