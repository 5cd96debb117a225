// The life of one issue, as tests of it and of its run look at it.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {

inline const core::Labels kLiving{{"rule", "nan"}, {"tensor", "a"}, {"severity", "error"}};
inline const core::Labels kRunA{{"rule", "nan"}, {"run_uid", kRun}, {"tensor", "a"}};

class IssueLifeTest : public ::testing::Test {
 protected:
  IssueLifeTest() { h.open(); }

  IssueView view(const core::Labels& labels) {
    const auto found = h.router().find_issue(core::issue_key(labels));
    if (!found) throw std::runtime_error("the router does not know the issue");
    return *found;
  }
  std::vector<std::string> history() {
    std::vector<std::string> out;
    for (const Transition& one : h.transitions) {
      out.push_back(std::to_string(one.episode) + " " + std::string(to_string(one.to)) +
                    (one.resolution == core::Resolution::none ? "" : " ") +
                    std::string(to_string(one.resolution)));
    }
    return out;
  }
  /// A report of a producer that sends no resolves.
  core::Issue foreign() {
    core::Issue issue = h.issue(kLiving, core::IssueStatus::firing);
    issue.explicit_expiry = false;
    issue.sequence = 0;
    return issue;
  }
  /// The same issue said again.
  void refresh() {
    core::Issue again = foreign();
    again.event_id = "again";
    h.report(again);
  }

  Harness h;
};

}  // namespace tocsin::routing
