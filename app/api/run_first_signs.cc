#include "app/api/run_first_signs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

#include "core/first_signs.h"

namespace tocsin::app {
namespace {

core::IssueSpan issue_span(const insights::IssueLine& issue) {
  return {issue.key, issue.mode, issue.attempt, issue.step, issue.opened, issue.closed};
}

}  // namespace

void mark_first_signs(std::vector<insights::IssueLine>& issues) {
  std::map<std::string_view, std::vector<std::size_t>> of_runs;
  for (std::size_t at = 0; at < issues.size(); ++at)
    if (!issues[at].run.empty()) of_runs[issues[at].run].push_back(at);
  for (const auto& entry : of_runs) {
    std::vector<core::IssueSpan> spans;
    for (const std::size_t at : entry.second) spans.push_back(issue_span(issues[at]));
    const std::vector<bool> others = core::preceded(spans);
    for (std::size_t which = 0; which < others.size(); ++which)
      if (others[which]) issues[entry.second[which]].first_sign = false;
  }
}

std::vector<insights::IssueLine> begun_before(const insights::IssueLine& one,
                                              const std::vector<insights::IssueLine>& issues) {
  std::vector<insights::IssueLine> out;
  for (const insights::IssueLine& other : issues)
    if (other.run == one.run && core::began_before(issue_span(other), issue_span(one)))
      out.push_back(other);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return *a.step < *b.step; });
  return out;
}

}  // namespace tocsin::app
