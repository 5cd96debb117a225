// Episodes of issues as the topic `issues` holds them, each by its first report.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/issue_feedback.h"
#include "core/record.h"
#include "core/result.h"

namespace tocsin::app {

class IssueEpisodes {
 public:
  struct Episode {
    core::IssueEpisode names;
    std::string fingerprint;
    std::string headline;           // "[error] digits: loss is NaN", of the newest report
    std::set<std::string> reports;  // their IDs
    bool over = false;
  };

  /// Any record of the topic, in the order of its partition.
  void apply(const core::RecordView& record);
  /// `id`: of any report of it, or of the issue (then its newest episode), or the beginning of one.
  /// not_found, failed_precondition: none goes by it, or several.
  [[nodiscard]] core::Result<Episode> choose(const std::string& id) const;

 private:
  std::map<std::string, std::vector<Episode>> episodes_;  // by issue key, in their order
};

}  // namespace tocsin::app
