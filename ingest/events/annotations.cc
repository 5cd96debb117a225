#include "ingest/events/annotations.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace tocsin::ingest {

using core::Issue;

std::size_t annotation_bytes(const Issue& issue) {
  std::size_t total = issue.summary.size() + issue.description.size() +
                      issue.recommendation.size() + issue.runbook_url.size();
  for (const auto& [name, text] : issue.annotations) total += name.size() + text.size();
  return total;
}

bool cut_annotations(Issue& issue, std::size_t max_bytes) {
  constexpr std::string_view kMarker = " … (cut)";
  bool cut = false;
  std::size_t names = 0;
  for (const auto& [name, text] : issue.annotations) names += name.size() + kMarker.size();
  while (names > max_bytes / 2) {  // so many that cutting their texts is not enough
    names -= issue.annotations.back().first.size() + kMarker.size();
    issue.annotations.pop_back();
    cut = true;
  }
  std::vector<std::string*> all{&issue.summary, &issue.description, &issue.recommendation,
                                &issue.runbook_url};
  for (auto& [name, text] : issue.annotations) all.push_back(&text);
  for (std::size_t round = 0; round < all.size(); ++round) {
    const std::size_t total = annotation_bytes(issue);
    if (total <= max_bytes) return cut;
    std::string& longest = **std::max_element(
        all.begin(), all.end(), [](const auto* a, const auto* b) { return a->size() < b->size(); });
    const std::size_t over = total - max_bytes + kMarker.size();
    longest =
        std::string(core::cut_utf8(longest, longest.size() > over ? longest.size() - over : 0));
    longest += kMarker;
    cut = true;
  }
  return cut;
}

}  // namespace tocsin::ingest
