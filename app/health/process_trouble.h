// What is wrong with this process, over time: which of it people are told as issues, and when it is
// over. Pure: values and times in, issues out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/health/own_issues.h"
#include "core/issue.h"
#include "core/time.h"

namespace tocsin::app {

/// One thing that is wrong at this moment.
struct Trouble {
  ProcessIssue which = ProcessIssue::stage_stands_still;
  std::string unit;  // the stage or the topic; empty: the whole process
  std::string what;  // a sentence
};

/// Lives on one thread.
class ProcessTrouble {
 public:
  ProcessTrouble(std::string cluster, std::string node, std::string role)
      : cluster_(std::move(cluster)), node_(std::move(node)), role_(std::move(role)) {}

  /// All that is wrong now. Returns what is to be published: what has stood long enough to be no
  /// passing thing, again each minute while it stands, and once more when it is over. Without that
  /// repetition an issue times out at the router: a process that was killed has no last word.
  std::vector<core::Issue> update(const std::vector<Trouble>& standing, core::WallTime now);
  /// What update() gave last was not published: it is given again.
  void lost() { last_ = before_; }

 private:
  using Key = std::pair<ProcessIssue, std::string>;
  struct Standing {
    core::WallTime since{};
    core::WallTime told{};
    bool is_told = false;
    std::string what;
  };
  [[nodiscard]] core::Issue issue(const Key& key, const Standing& one, core::IssueStatus status,
                                  core::WallTime now) const;

  std::string cluster_;
  std::string node_;
  std::string role_;
  std::map<Key, Standing> last_;
  std::map<Key, Standing> before_;  // the last update()
};

}  // namespace tocsin::app
