#include "routing/flush/message_runs.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "routing/tables/size.h"

namespace tocsin::routing {
namespace {

/// Of the runs in one message: beside its issues they must fit into a record.
constexpr std::size_t kMaxRunBytes = std::size_t{64} * 1024;

void name_report(core::Issue& issue, const Runs& runs) {
  const std::string* where = runs.report_of(issue);
  if (where == nullptr) return;
  const bool told = std::any_of(issue.annotations.begin(), issue.annotations.end(),
                                [](const auto& one) { return one.first == "report"; });
  if (!told) issue.annotations.emplace_back("report", *where);  // else as its producer says
}

bool names(const core::Notification& notification, const core::RunRef& run) {
  return std::any_of(
      notification.runs.begin(), notification.runs.end(), [&](const core::RunTold& known) {
        return known.run.uid == run.uid && (run.attempt == 0 || known.run.attempt == run.attempt);
      });
}

}  // namespace

void add_runs(core::Notification& notification, const Runs& runs) {
  for (core::NotifiedIssue& one : notification.issues) name_report(one.issue, runs);
  std::size_t bytes = 0;
  for (const core::NotifiedIssue& one : notification.issues) {
    const core::RunRef& run = one.issue.run;
    if (run.uid.nil() || names(notification, run) || bytes > kMaxRunBytes) continue;
    if (auto told = runs.told(one.issue)) {
      bytes += approximate_bytes(*told);
      notification.runs.push_back(std::move(*told));
    }
  }
}

}  // namespace tocsin::routing
